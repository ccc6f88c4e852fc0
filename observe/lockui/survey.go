package lockui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// A survey is what one inspection has found: which locks there are, by what clients say of themselves and by the channels. The locks
// themselves are asked about when they are shown, each once.
type survey struct {
	in      *inspect.Inspector
	at      time.Time
	clients []inspect.Client
	ago     time.Duration // so long before at clients was read
	byID    map[string]*inspect.Client
	claims  map[string]*claim
	ordered []*claim // the most urgent ones first
	cycles  []inspect.Cycle
	circled map[string]bool // the locks of cycles

	servers []inspect.Server // of a quorum

	presenceErr, channelsErr error // why one way has found nothing

	mu     sync.Mutex
	looked map[string]*found
}

// A claim is what is known of a lock before it is asked about.
type claim struct {
	name      string
	held      time.Duration // so long, as its holder says
	waited    time.Duration // the longest wait, as those say who wait
	waiting   bool          // somebody says that it waits
	passing   bool          // of the holds and waits, one is not meant to last, or its client is not heard of
	overdue   time.Duration // the longest of these
	contended bool          // there is a channel of it
	listeners int           // connections on it, of a lock of which no client says anything
	rank      int           // how urgent it may be: 0 comes first
	age       time.Duration // the longer of held and waited
}

// found is what Redis says of a lock.
type found struct {
	inspect.Lock // of a semaphore its name and line
	listeners    int
	semaphore    *inspect.Semaphore // nil for a lock
}

// maxListeners bounds the locks that nobody has said anything of, whose listeners are counted.
const maxListeners = 10_000

// said is what clients said of themselves a moment ago. They write every 10 s; to read it all each second would be most of the work.
type said struct {
	clients []inspect.Client
	at      time.Time
}

// saidFresh is how long what clients said is used.
const saidFresh = 5 * time.Second

// newSurvey fails if neither way finds anything. It reads what clients say if last is too old, and leaves that there.
func newSurvey(ctx context.Context, in *inspect.Inspector, last *said) (*survey, error) {
	s := &survey{in: in, at: time.Now(), byID: map[string]*inspect.Client{}, claims: map[string]*claim{}, looked: map[string]*found{}}
	s.servers, _ = in.Servers(ctx) // where none answers, the others say so
	if last.at.IsZero() || s.at.Sub(last.at) >= saidFresh {
		var clients []inspect.Client
		if clients, s.presenceErr = in.Clients(ctx); s.presenceErr == nil {
			*last = said{clients, s.at}
		}
	}
	if s.presenceErr == nil {
		s.clients = last.clients
		s.ago = s.at.Sub(last.at)
		s.addClients()
		s.addCycles()
	}
	s.channelsErr = s.addContended(ctx)
	if s.presenceErr != nil && s.channelsErr != nil {
		return nil, errors.Join(s.presenceErr, s.channelsErr)
	}
	return s, nil
}

// addClients adds what clients say.
func (s *survey) addClients() {
	names := 0
	for i := range s.clients {
		c := &s.clients[i]
		s.byID[c.ID] = c
		names += len(c.Holds) + len(c.Waits)
	}
	s.claims = make(map[string]*claim, names)
	for i := range s.clients {
		c := &s.clients[i]
		for _, hold := range c.Holds {
			k := s.claimOf(s.nameOf(hold.Lock, hold.Semaphore))
			k.held = max(k.held, hold.For+s.since(c))
			if hold.Lasting == "" || c.Quiet() {
				k.passing = true
				if hold.Semaphore == "" { // others have permits too
					k.overdue = max(k.overdue, hold.For+s.since(c))
				}
			}
		}
		for _, wait := range c.Waits {
			k := s.claimOf(wait.Lock)
			k.waiting = true
			k.waited = max(k.waited, wait.For+s.since(c))
			if wait.Lasting == "" {
				k.passing, k.overdue = true, max(k.overdue, wait.For+s.since(c))
			}
		}
	}
}

// addCycles finds out who waits in a circle.
func (s *survey) addCycles() {
	s.cycles, s.circled = inspect.Cycles(s.clients), map[string]bool{}
	for _, cycle := range s.cycles {
		for _, l := range cycle {
			s.circled[l.Hold.Lock] = true
		}
	}
}

func (s *survey) addContended(ctx context.Context) error {
	names, err := s.in.ContendedNames(ctx)
	if err != nil {
		return err
	}
	names = s.withoutPermits(names)
	var others []string // whose holders and waiters say nothing
	for _, name := range names {
		if whole := "{" + name + "}"; s.claims[name] == nil && s.claims[whole] != nil { // they share the channel
			name = whole
		}
		if s.claims[name] == nil && len(others) < maxListeners {
			others = append(others, name)
		}
		s.claimOf(name).contended = true
	}
	if len(others) == 0 {
		return nil
	}
	counts, err := s.in.Listeners(ctx, others...)
	for name, n := range counts {
		s.claims[name].listeners = n
	}
	return err
}

// nameOf is under which name a lock, or for a permit its semaphore, is looked up.
func (s *survey) nameOf(lock, semaphore string) string {
	if semaphore == "" || s.servers != nil { // a quorum has no semaphores
		return lock
	}
	return inspect.AnySlot(semaphore)
}

// withoutPermits takes the locks of slots that a permit has, and of which no client says anything, out
// of the names of locks: their holders listen on the locks' channels. A lock that others wait for stays.
func (s *survey) withoutPermits(names []string) []string {
	var slots []string
	for _, name := range names {
		if of, _, is := inspect.SlotOf(name); is && len(slots) < maxLocks && s.nameOf(name, of) != name && s.claims[name] == nil {
			slots = append(slots, name)
		}
	}
	if len(slots) == 0 {
		return names
	}
	all, err := s.locks(slots)
	if err != nil { // they are asked about again when they are shown
		return names
	}
	permits := map[string]bool{}
	for _, f := range all {
		if permits[f.Name] = f.Semaphore != "" && f.Waiting == 0 && f.listeners < 2; permits[f.Name] {
			s.claimOf(s.nameOf(f.Name, f.Semaphore)).contended = true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return permits[name] })
}

func (s *survey) claimOf(name string) *claim {
	k := s.claims[name]
	if k == nil {
		k = &claim{name: name}
		s.claims[name] = k
	}
	return k
}

// since is how long before the survey the client had written what was read of it.
func (s *survey) since(c *inspect.Client) time.Duration {
	if s.byID[c.ID] != nil { // LookWith asks about no client that the survey has
		return c.Silent + s.ago
	}
	return c.Silent // read with its lock
}

// locks asks about these locks, in this order. Those that were asked about for another page are not asked about again.
func (s *survey) locks(names []string) ([]*found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing, single, semaphores []string
	for _, name := range names {
		if s.looked[name] != nil || slices.Contains(missing, name) {
			continue
		}
		missing = append(missing, name)
		if of := inspect.SemaphoreOf(name); of != "" && s.servers == nil {
			semaphores = append(semaphores, of)
		} else {
			single = append(single, name)
		}
	}
	if len(missing) > 0 {
		locks, err := s.in.LookWith(ctx, s.clients, single...)
		if err != nil {
			return nil, err
		}
		var all []inspect.Semaphore
		if len(semaphores) > 0 {
			if all, err = s.in.SlotsWith(ctx, s.clients, semaphores...); err != nil {
				return nil, err
			}
		}
		var listeners map[string]int
		if s.channelsErr == nil {
			if listeners, err = s.in.Listeners(ctx, missing...); err != nil {
				return nil, err
			}
		}
		for _, l := range locks {
			s.looked[l.Name] = &found{l, listeners[l.Name], nil}
		}
		for i, of := range all {
			name := inspect.AnySlot(of.Name)
			s.looked[name] = &found{inspect.Lock{Name: name, Semaphore: of.Name, Other: of.Other, Waiting: of.Waiting, Line: of.Line}, listeners[name], &all[i]}
		}
	}
	all := make([]*found, len(names))
	for i, name := range names {
		all[i] = s.looked[name]
	}
	return all, nil
}

// of tells which locks the clients on this host hold or wait for.
func (s *survey) of(host string) map[string]bool {
	names := map[string]bool{}
	for i := range s.clients {
		if s.clients[i].Host != host {
			continue
		}
		for _, hold := range s.clients[i].Holds {
			names[s.nameOf(hold.Lock, hold.Semaphore)] = true
		}
		for _, wait := range s.clients[i].Waits {
			names[wait.Lock] = true
		}
	}
	return names
}

// trouble says why less is seen than usual.
func (s *survey) trouble() (all []string) {
	switch {
	case s.presenceErr != nil:
		all = append(all, fmt.Sprintf("What clients say of themselves cannot be read: who holds what, and for how long, is unknown. %s", plain.Error(s.presenceErr, "")))
	case len(s.clients) == 0:
		all = append(all, "No client says what it holds (rlock.WithPresence): only locks that somebody waits for are found, and no ages are known.")
	}
	if s.channelsErr != nil {
		all = append(all, fmt.Sprintf("The channels cannot be read: locks that only Redisson, or clients without presence, wait for are missing. %s", plain.Error(s.channelsErr, "")))
	}
	return all
}

// sources says what was asked, and blind what that cannot show.
func (s *survey) sources() (used, blind []string) {
	if s.presenceErr != nil {
		used = append(used, "Presence: it cannot be read.")
		blind = append(blind, "locks that nobody waits for", "who holds a lock but for its id, and for how long")
	} else {
		holds, more, cut := 0, 0, 0
		for i := range s.clients {
			holds += len(s.clients[i].Holds)
			more += s.clients[i].MoreHolds + s.clients[i].MoreWaits
			if s.clients[i].Cut {
				cut++
			}
		}
		used = append(used, fmt.Sprintf("Presence: %s of rlock.WithPresence, which name %s.", count(len(s.clients), "client"), count(holds, "held lock")))
		blind = append(blind, "locks that a client without presence, or Redisson, holds while nobody waits", "ages of such holds", "locks taken less than 15 s ago, while nobody waits")
		if more > 0 {
			blind = append(blind, fmt.Sprintf("%s that clients hold or wait for beyond the thousand that each names", count(more, "lock")))
		}
		if cut > 0 {
			blind = append(blind, fmt.Sprintf("what %s of more than the page reads", count(cut, "client")+map[bool]string{true: " says", false: " say"}[cut == 1]))
		}
	}
	if s.channelsErr != nil {
		used = append(used, "Channels: they cannot be read.")
		blind = append(blind, "waiters of Redisson, and of clients without presence")
	} else {
		n := 0
		for _, k := range s.claims {
			if k.contended {
				n++
			}
		}
		used = append(used, fmt.Sprintf("Channels on which clients listen for releases, Redisson's too: of %s.", count(n, "lock")))
		blind = append(blind, "how many calls of a Redisson client wait, and for how long")
	}
	return used, blind
}
