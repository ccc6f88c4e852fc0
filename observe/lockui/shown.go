package lockui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// shownLock is a lock as the page and its JSON show it.
type shownLock struct {
	Name        string        `json:"name"`
	State       state         `json:"state"`         // how urgent it is
	Why         string        `json:"why,omitempty"` // of a stuck one
	Holder      *shownHolder  `json:"holder,omitempty"`
	TTL         milliseconds  `json:"ttl_ms"`
	NeverEnds   bool          `json:"never_ends,omitempty"` // the lock has no lease
	Token       int64         `json:"token,omitempty"`      // the last one that was given
	Waiting     int           `json:"waiting_clients"`      // in the line
	Calls       int           `json:"waiting_calls"`        // of those of Line that say so: at least so many
	LongestWait milliseconds  `json:"longest_wait_ms"`      // of Line
	Listeners   int           `json:"listening_clients"`
	Line        []shownWaiter `json:"line,omitempty"`
	More        int           `json:"more_waiting_clients,omitempty"` // after Line
	Other       string        `json:"other,omitempty"`                // what it is, if it is no lock
	Semaphore   string        `json:"semaphore,omitempty"`            // of a permit, and of a semaphore itself
	Mode        string        `json:"mode,omitempty"`                 // read or write, of a read-write lock that somebody has
	Reading     int           `json:"reading,omitempty"`              // so many read
	Readers     []shownReader `json:"readers,omitempty"`              // the first of them
	shownQuorum
	shownSlots

	Bar   int           `json:"-"` // percent of a lease that are left
	lease time.Duration // a whole one
	seen  inspect.Lock

	standby bool         // all that wait, as far as that is known, wait for a hold that is meant to last
	overdue milliseconds // the longest wait of the others
}

// shownHolder is who has a lock.
type shownHolder struct {
	Field  string       `json:"field"`
	Client string       `json:"client"`
	By     *process     `json:"by,omitempty"` // nil for one without presence
	Count  int          `json:"count"`
	For    milliseconds `json:"held_ms,omitempty"` // 0 where nobody says
	Token  int64        `json:"token,omitempty"`
	Young  bool         `json:"young,omitempty"` // taken since its client wrote last

	Lasting string `json:"lasting,omitempty"` // what it does meanwhile, of a hold that is meant to last
}

// shownReader is one that reads.
type shownReader struct {
	shownHolder
	TTL milliseconds `json:"ttl_ms"` // of its own lease
}

// shownWaiter is a client in the line.
type shownWaiter struct {
	Client string       `json:"client"`
	Mode   string       `json:"mode,omitempty"` // read or write, of a read-write lock
	By     *process     `json:"by,omitempty"`
	Calls  int          `json:"calls,omitempty"`
	For    milliseconds `json:"waited_ms,omitempty"`

	Lasting string `json:"lasting,omitempty"` // it stands by for a hold that is meant to last
}

// process is a process.
type process struct {
	Name    string       `json:"name"`
	Host    string       `json:"host"`
	PID     int          `json:"pid"`
	Program string       `json:"program"`
	Silent  milliseconds `json:"silent_ms"` // so long its client had written nothing when it was read
	quiet   bool
}

func newProcess(c *inspect.Client) *process {
	if c == nil {
		return nil
	}
	return &process{Name: c.Name, Host: c.Host, PID: c.PID, Program: c.Program, Silent: milliseconds(c.Silent), quiet: c.Quiet()}
}

// Quiet tells that the process should have been heard of again by now.
func (p *process) Quiet() bool { return p != nil && p.quiet }

// shownClient is a client with presence.
type shownClient struct {
	ID string `json:"id"`
	process
	Since       time.Time    `json:"since"`
	Holds       int          `json:"holds"`
	LongestHold milliseconds `json:"longest_hold_ms"`
	Waits       int          `json:"waits"`
	LongestWait milliseconds `json:"longest_wait_ms"`
}

func newClient(s *survey, c *inspect.Client) *shownClient {
	shown := &shownClient{ID: c.ID, process: *newProcess(c), Since: c.Since.UTC(), Holds: len(c.Holds) + c.MoreHolds, Waits: len(c.Waits) + c.MoreWaits}
	for _, hold := range c.Holds {
		shown.LongestHold = max(shown.LongestHold, milliseconds(hold.For+s.since(c)))
	}
	for _, wait := range c.Waits {
		shown.LongestWait = max(shown.LongestWait, milliseconds(wait.For+s.since(c)))
	}
	return shown
}

// Others is how many read beside Holder.
func (l *shownLock) Others() int { return l.Reading - 1 }

// Unlisted is how many read that are not among Readers.
func (l *shownLock) Unlisted() int { return max(l.Reading-len(l.Readers), 0) }

// LeaseText says in words what the bar shows.
func (l *shownLock) LeaseText() string {
	if l.TTL > milliseconds(l.lease) {
		return fmt.Sprintf("%v left", l.TTL)
	}
	return fmt.Sprintf("%v of %v left", l.TTL, milliseconds(l.lease))
}

// Low tells that the watchdog would have renewed the lease by now: it does so every third of it.
func (l *shownLock) Low() bool { return l.Bar < 60 }

// AtLeast tells that more calls may wait than Calls.
func (l *shownLock) AtLeast() bool {
	return l.More > 0 || slices.ContainsFunc(l.Line, func(w shownWaiter) bool { return w.Calls == 0 })
}

// milliseconds is a duration: in JSON a number of milliseconds, on the page what a person reads at a glance.
type milliseconds time.Duration

// MarshalJSON writes whole milliseconds.
func (d milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).Milliseconds())
}

// String is the duration in its two largest units.
func (d milliseconds) String() string {
	t := time.Duration(d)
	day := 24 * time.Hour
	switch {
	case t < time.Minute:
		return fmt.Sprintf("%d s", t/time.Second)
	case t < time.Hour:
		return fmt.Sprintf("%d min %02d s", t/time.Minute, t%time.Minute/time.Second)
	case t < day:
		return fmt.Sprintf("%d h %02d min", t/time.Hour, t%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %d h", t/day, t%day/time.Hour)
	}
}

// count is the number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// maxBrief is how many letters of a name a list shows: two lines or so.
const maxBrief = 100

// brief is the name as a list shows it: of a very long one the beginning and the end, so that it does not push all else off the page.
func brief(name string) string { return plain.Brief(plain.Name(name), maxBrief) }

// short is the beginning of a client's id, enough to tell it from others.
func short(id string) string {
	if len(id) > 8 && id[8] == '-' {
		id = id[:8] + "…"
	}
	return brief(id)
}

// at is a link beside this page, with parameters: names and values in turn.
func at(page string, parameters ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return page + "?" + values.Encode()
}
