package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// A lockRow is a lock as ls, show and top print it. Times are in seconds in JSON.
type lockRow struct {
	Name      string      `json:"name"`
	Holder    *holderRow  `json:"holder"`              // null: the lock is free
	TTL       seconds     `json:"ttl"`                 // -1: it stays for ever
	Token     int64       `json:"token"`               // the last one that was given
	Listeners int         `json:"listeners"`           // connections
	Waiting   int         `json:"waiting"`             // clients in the line
	Line      []waitRow   `json:"line"`                // the first of them
	Other     string      `json:"not,omitempty"`       // what stands at the key and is no lock
	Stuck     string      `json:"stuck,omitempty"`     // why it does not come free, of one that somebody waits for
	Counter   string      `json:"counter,omitempty"`   // why it gives no token
	Semaphore string      `json:"semaphore,omitempty"` // of a permit, and of a semaphore itself
	Taken     int         `json:"taken,omitempty"`     // slots of a semaphore
	Seen      int         `json:"seen,omitempty"`      // so many slots a semaphore has at least
	Oldest    seconds     `json:"oldest,omitempty"`    // the age of a semaphore's oldest permit
	Mode      string      `json:"mode,omitempty"`      // read or write, of a read-write lock that somebody has
	Reading   int         `json:"reading,omitempty"`   // so many read
	Readers   []readerRow `json:"readers,omitempty"`   // the first of them
	Cycle     []linkRow   `json:"cycle,omitempty"`     // the circle of clients in which its holder waits
	quorumRow
	lock inspect.Lock       // of a semaphore, the name that stands for all slots, and the line
	of   *inspect.Semaphore // nil for a lock
}

type holderRow struct {
	Field  string     `json:"holder"` // for --holder
	Count  int        `json:"count"`
	Age    seconds    `json:"age,omitempty"`
	Client *clientRow `json:"client,omitempty"`

	Lasting string `json:"lasting,omitempty"` // what it does meanwhile, of a hold that is meant to last
}

// readerRow is one that reads.
type readerRow struct {
	holderRow
	TTL seconds `json:"ttl"` // of its own lease
}

type waitRow struct {
	ID     string     `json:"id"`
	Mode   string     `json:"mode,omitempty"` // read or write, of a read-write lock
	Calls  int        `json:"calls,omitempty"`
	Age    seconds    `json:"age,omitempty"`
	Client *clientRow `json:"client,omitempty"`

	Lasting string `json:"lasting,omitempty"` // it stands by for a hold that is meant to last
}

type clientRow struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Since   time.Time `json:"since"`
	Seen    time.Time `json:"seen"`
	Silent  seconds   `json:"silent"` // since Seen
	Holds   int       `json:"holds"`
	Waits   int       `json:"waits"`
}

// seconds is a duration that is a number of seconds in JSON.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

// viewer reads locks.
type viewer struct {
	at  *connection
	rdb redis.UniversalClient   // of a quorum that of the first server
	all []redis.UniversalClient // the servers of a quorum, or the one Redis
	*inspect.Inspector
	longHold time.Duration // from when on a hold that others wait for is stuck
	partOnly bool          // force-unlock may release a quorum's hold on the servers that it knows alone
}

// view opens the connection for a command that shows or frees locks.
func (c *connection) view() (*viewer, error) {
	all, err := c.openAll()
	if err != nil {
		return nil, err
	}
	in, err := c.inspector(all)
	if err != nil {
		closeAll(all)
		return nil, err
	}
	return &viewer{at: c, rdb: all[0], all: all, Inspector: in, longHold: defaultLongHold}, nil
}

func (v *viewer) close() { closeAll(v.all) }

// used is what is known without a walk through all keys.
type used struct {
	rows     []lockRow       // of what clients with presence, or others who wait, name
	unlisted int             // so many locks more clients hold beyond those that they name
	cycles   []inspect.Cycle // of clients
}

// used asks for what is known without a walk through all keys.
func (v *viewer) used(ctx context.Context) (u used, err error) {
	clients, err := v.Clients(ctx)
	if err != nil {
		return u, err
	}
	u.cycles = inspect.Cycles(clients)
	names, slots := map[string]bool{}, map[string]bool{}
	add := func(name, semaphore string) {
		if semaphore != "" && len(v.all) == 1 {
			slots[semaphore] = true
		} else {
			names[name] = true
		}
	}
	for _, c := range clients {
		for _, h := range c.Holds {
			add(h.Lock, h.Semaphore)
		}
		for _, w := range c.Waits {
			add(w.Lock, w.Semaphore)
		}
	}
	said := maps.Clone(names)
	contended, err := v.ContendedNames(ctx)
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) { // a user without the right to PUBSUB sees less
		return u, err
	}
	for _, name := range contended {
		add(name, inspect.SemaphoreOf(name))
	}
	locks, err := v.LookWith(ctx, clients, slices.Sorted(maps.Keys(names))...)
	if err != nil {
		return u, err
	}
	locks = slices.DeleteFunc(locks, func(l inspect.Lock) bool {
		return l.Holder == nil && l.Waiting == 0 && l.Other == "" && l.Unknown == "" && leftOn(l) == 0
	})
	for _, c := range clients {
		more := c.MoreHolds
		for _, l := range locks {
			if more > 0 && !said[l.Name] && l.Holder != nil && l.Holder.Client == c.ID {
				more--
			}
		}
		u.unlisted += more
	}
	locks, semaphores, err := v.fold(ctx, clients, locks, slots)
	if err == nil {
		u.rows, err = v.rows(ctx, locks, semaphores...)
	}
	addCycles(u.rows, u.cycles)
	return u, err
}

// notListed says that clients hold so many locks more.
func notListed(n int) string {
	if n == 1 {
		return "1 more lock is not listed"
	}
	return fmt.Sprintf("%d more locks are not listed", n)
}

// rows adds to locks and semaphores what else is to be shown.
func (v *viewer) rows(ctx context.Context, locks []inspect.Lock, semaphores ...inspect.Semaphore) ([]lockRow, error) {
	names := make([]string, len(locks), len(locks)+len(semaphores))
	for i, l := range locks {
		names[i] = l.Name
	}
	for _, s := range semaphores {
		names = append(names, inspect.AnySlot(s.Name))
	}
	listeners := map[string]int{}
	if len(names) > 0 {
		if found, err := v.Listeners(ctx, names...); err == nil { // otherwise a right is missing
			listeners = found
		}
	}
	rows := make([]lockRow, len(locks), len(names))
	for i, l := range locks {
		rows[i] = lockRow{
			Name: l.Name, TTL: inSeconds(l.TTL), Token: l.Token, Listeners: listeners[l.Name], Waiting: l.Waiting, Line: []waitRow{}, Other: l.Other, Counter: l.Counter, Semaphore: l.Semaphore,
			Mode: l.Mode, Reading: l.Reading, quorumRow: quorumOf(l), lock: l,
		}
		if h := l.Holder; h != nil {
			rows[i].Holder = &holderRow{h.Field, h.Count, age(h.For, h.By), clientOf(h.By), h.Lasting}
		}
		for _, h := range l.Readers {
			rows[i].Readers = append(rows[i].Readers, readerRow{holderRow{h.Field, h.Count, age(h.For, h.By), clientOf(h.By), h.Lasting}, inSeconds(h.TTL)})
		}
	}
	for _, s := range semaphores {
		rows = append(rows, v.semaphoreRow(s, listeners[inspect.AnySlot(s.Name)]))
	}
	for i := range rows {
		for _, w := range rows[i].lock.Line {
			rows[i].Line = append(rows[i].Line, waitRow{w.Client, w.Mode, w.Calls, age(w.For, w.By), clientOf(w.By), w.Lasting})
		}
		rows[i].Stuck = rows[i].stuck(v.longHold)
	}
	return rows, ctx.Err()
}

// inSeconds is what is left of a lease.
func inSeconds(ttl time.Duration) seconds {
	if ttl == inspect.NoExpiry {
		return seconds(-time.Second)
	}
	return seconds(ttl)
}

// age is a time that a client has said, by now.
func age(said time.Duration, by *inspect.Client) seconds {
	if said > 0 && by != nil {
		said += by.Silent
	}
	return seconds(said)
}

func clientOf(c *inspect.Client) *clientRow {
	if c == nil {
		return nil
	}
	return &clientRow{c.ID, c.Name, c.Host, c.PID, c.Program, c.Since, c.Seen, seconds(c.Silent), len(c.Holds) + c.MoreHolds, len(c.Waits) + c.MoreWaits}
}

// age is how long the lock, or a semaphore's oldest permit, is held, 0 where that is not known.
func (r *lockRow) age() time.Duration {
	if r.Holder == nil {
		return time.Duration(r.Oldest)
	}
	return time.Duration(r.Holder.Age)
}

// here tells whether the holder, or that of a permit, is a process of this machine.
func (r *lockRow) here() bool {
	host, err := os.Hostname()
	is := func(l inspect.Lock) bool { return l.Holder != nil && l.Holder.By != nil && l.Holder.By.Host == host }
	return err == nil && (is(r.lock) || r.of != nil && slices.ContainsFunc(r.of.Slots, is))
}

var lockColumns = []string{"NAME", "HOLDER", "COUNT", "TTL", "TOKEN", "AGE", "LISTENERS", "WAITERS"}

// cells are the columns of a table.
func (r *lockRow) cells() []string {
	c := []string{plain.Name(r.Name), "(free)", unknown, unknown, number(r.Token), span(r.age()), number(int64(r.Listeners)), number(int64(r.Waiting))}
	switch h := r.lock.Holder; {
	case r.of != nil && r.Other == "":
		c[1] = fmt.Sprintf("(semaphore: %d taken of %d seen", r.Taken, r.Seen)
		if why := r.of.Blocked(); why != "" && !r.of.Full() {
			c[1] += "; " + why
		}
		c[1] += ")"
	case r.Other != "":
		c[1] = "(" + plain.Name(r.Other) + ")"
	case h != nil:
		c[1], c[2], c[3] = process(h.By, h.Field), number(int64(h.Count)), r.ttl()
		switch {
		case r.Mode == "write":
			c[1] += " (writes)"
		case r.Reading > 1:
			c[1] += fmt.Sprintf(" (%d read)", r.Reading)
		case r.Reading == 1:
			c[1] += " (reads)"
		}
		if h.Lasting != "" {
			c[1] += " (" + plain.Name(h.Lasting) + ")"
		}
	case r.Counter != "":
		c[1] = "(free, but " + r.Counter + ")"
	}
	c[1] = byMajority(r.lock, c[1])
	return c
}

func (r *lockRow) ttl() string { return left(r.lock.TTL) }

// left is what is left of a lease.
func left(ttl time.Duration) string {
	if ttl == inspect.NoExpiry {
		return "for ever"
	}
	return span(ttl)
}

// field is the holder as --holder takes it.
func (r *lockRow) field() string {
	if r.Holder == nil {
		return unknown
	}
	return plain.Name(r.Holder.Field)
}

// orders are what lists of locks can be sorted by; the largest comes first, but for names and what is left of leases.
var orders = map[string]func(a, b *lockRow) int{
	"name":    func(a, b *lockRow) int { return strings.Compare(byName(a.Name), byName(b.Name)) },
	"age":     func(a, b *lockRow) int { return cmp.Compare(b.age(), a.age()) },
	"ttl":     func(a, b *lockRow) int { return cmp.Compare(a.TTL, b.TTL) },
	"token":   func(a, b *lockRow) int { return cmp.Compare(b.Token, a.Token) },
	"waiters": func(a, b *lockRow) int { return cmp.Compare(b.Waiting, a.Waiting) },
}

// sortRows sorts by one of orders, then by name.
func sortRows(rows []lockRow, by string) {
	slices.SortFunc(rows, func(a, b lockRow) int { return cmp.Or(orders[by](&a, &b), orders["name"](&a, &b)) })
}
