package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/scripts"
)

// Client is what a client with rlock.WithPresence says of itself, every 10 s.
type Client struct {
	ID      string
	Name    string // of WithPresence
	Host    string
	PID     int
	Program string
	Since   time.Time     // the first time that it was said, by the server's clock
	Seen    time.Time     // the last time, by the server's clock
	Silent  time.Duration // since Seen, when it was read. The client is shown until its longest lease is over, and for half a minute at least

	Holds     []Hold // a thousand at most, the oldest ones
	MoreHolds int    // and so many others
	Waits     []Wait // a thousand at most, the longest ones, longest first
	MoreWaits int    // and so many others
	Cut       bool   // something was longer than any client writes, and was not read
}

// quiet is how long a client may have said nothing that lives: it says it every 10 s.
const quiet = 13 * time.Second

// Quiet tells that the client should have been heard of again by now: it was heard of last c.Silent ago. Its process has ended, stands
// still, or does not reach Redis.
func (c *Client) Quiet() bool { return c.Silent >= quiet }

// Hold is a lock that a client holds, as it said at Client.Seen.
type Hold struct {
	Lock  string
	Mode  string        // "read" or "write" of a read-write lock, otherwise ""
	Field string        // the holder's in Redis
	Token int64         // 0 for a lock without tokens
	For   time.Duration // so long, until Client.Seen

	Lasting   string // of rlock.Lasting, 32 bytes of any text at most; "" for a hold without it
	Semaphore string // whose permit it is, as that of a Lock; "" for another hold
}

// Wait is a lock that a client waits for, as it said at Client.Seen.
type Wait struct {
	Lock  string
	Mode  string        // "read" or "write" of a read-write lock, otherwise ""
	Calls int           // so many calls wait
	For   time.Duration // the first of them so long, until Client.Seen: of those without rlock.Lasting, if there are any

	Lasting   string // where all have rlock.Lasting: as Hold.Lasting, of the first; otherwise ""
	Semaphore string // for whose permit they wait; "" of a lock
}

// Clients returns the clients that say that they are there, by name, host and process id.
func (in *Inspector) Clients(ctx context.Context) ([]Client, error) {
	if in.parts != nil {
		all, err := within(ctx, in, func() ([]Client, error) { return in.clientsOfAll(ctx) })
		if err != nil {
			return nil, fmt.Errorf("inspect: Clients: %w", err)
		}
		return all, nil
	}
	said, err := within(ctx, in, func() ([]presence.Client, error) { return presence.Read(ctx, in.rdb) })
	if err != nil {
		return nil, fmt.Errorf("inspect: Clients: %w", err)
	}
	all := make([]Client, len(said))
	for i := range said {
		all[i] = clientOf(&said[i])
	}
	return all, nil
}

func clientOf(said *presence.Client) Client {
	c := Client{ID: said.ID, Name: said.Name, Host: said.Host, PID: said.PID, Program: said.Program, Since: said.Since, Seen: said.Seen, Silent: said.Silent, MoreHolds: said.MoreHolds, MoreWaits: said.MoreWaits, Cut: said.Cut}
	for _, h := range said.Holds {
		hold := Hold{Lock: h.Lock, Mode: h.Mode, Field: h.Field, Token: h.Token, For: h.For, Lasting: h.Lasting}
		if of, _, is := scripts.SlotOf(h.Lock); is && permitField.MatchString(h.Field) {
			hold.Semaphore = of
		}
		c.Holds = append(c.Holds, hold)
	}
	for _, w := range said.Waits {
		c.Waits = append(c.Waits, Wait{Lock: w.Lock, Mode: w.Mode, Calls: w.Calls, For: w.For, Lasting: w.Lasting, Semaphore: scripts.SemaphoreOf(w.Lock)})
	}
	return c
}

// clientsByID has the clients that were asked about; nil for one that says nothing of itself.
type clientsByID map[string]*Client

// add asks about those of the clients that are not known yet.
func (known clientsByID) add(ctx context.Context, rdb redis.UniversalClient, ids []string) error {
	var fresh []string
	for _, id := range ids {
		if _, is := known[id]; !is {
			known[id] = nil
			fresh = append(fresh, id)
		}
	}
	said, err := presence.Of(ctx, rdb, fresh...)
	for i := range said {
		c := clientOf(&said[i])
		known[c.ID] = &c
	}
	return err
}
