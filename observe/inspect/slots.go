package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// Semaphore is what is known of a semaphore.
type Semaphore struct {
	Name string
	// Slots has the lock of slot i at i: of so many slots as were asked for, or of Seen. Their Line
	// and Waiting are those who wait for this lock, and not for a permit.
	Slots []Lock
	// Seen is how many slots there are at least: each permit has its slot among them, as has each
	// slot whose counter has given a token.
	Seen int
	// Beyond are the slots seen that are none of Slots: some program says more permits, or did.
	Beyond []int
	// Taken is how many of Slots nobody else can have: somebody has them, or Other says what
	// stands there.
	Taken   int
	Waiting int      // clients in the line for a permit
	Line    []Waiter // the first MaxLine of them, the next one first
	// Other is why SlotsWith sees nothing of it, in words, as for the lack of a right.
	Other string

	held bool // somebody has a permit
}

// Exists tells whether there is such a semaphore: somebody has a permit or waits for one, or slot 0
// has given a token. A fenced lock that has the name of slot 0 looks the same.
func (s *Semaphore) Exists() bool {
	return s.held || s.Waiting > 0 || len(s.Slots) > 0 && (s.Slots[0].Token > 0 || s.Slots[0].Counter != "")
}

// Full tells that all Slots are taken.
func (s *Semaphore) Full() bool { return s.Taken > 0 && s.Taken == len(s.Slots) }

// Waited tells whether somebody waits for a permit: in the line, or, where all Slots are taken, as one
// of so many connections that listen on the channel of AnySlot (Listeners).
func (s *Semaphore) Waited(listeners int) bool { return s.Waiting > 0 || listeners > 0 && s.Full() }

// Lasts tells that all Slots are taken, by holds that are meant to last (rlock.Lasting), and whose
// clients are heard of: others may wait for long.
func (s *Semaphore) Lasts() bool {
	return s.Full() && !slices.ContainsFunc(s.Slots, func(l Lock) bool { return !l.Lasts() || l.TTL == NoExpiry || l.Holder.By.Quiet() })
}

// Blocked says why those who wait get no permit, in words: the lowest free slot gives no token, or
// nobody is there who would give a permit back. It is "" where a permit may come free by itself.
func (s *Semaphore) Blocked() string {
	for i, l := range s.Slots {
		if l.Holder == nil && l.Other == "" {
			if l.Counter != "" {
				return fmt.Sprintf("slot %d is free, but %s", i, l.Counter)
			}
			return ""
		}
	}
	if s.Full() && !slices.ContainsFunc(s.Slots, func(l Lock) bool {
		return l.Holder != nil && l.TTL != NoExpiry && !(l.Holder.By != nil && l.Holder.By.Quiet())
	}) {
		return "all slots are taken, without a lease or by holders that are not heard of"
	}
	return ""
}

// AnySlot returns the name that stands for all slots of the semaphore: clients wait in its line, and
// listen on its channel.
func AnySlot(semaphore string) string { return scripts.PermitsOf(semaphore, 1).Lock }

// SemaphoreOf returns the semaphore whose AnySlot the name is, as fenced.NewSemaphore takes its name;
// "" for the name of a lock.
func SemaphoreOf(name string) string { return scripts.SemaphoreOf(name) }

// SlotOf returns the semaphore that has a slot whose lock has this name, and that slot; false for a
// name that no slot has. Lock.Semaphore tells whether a permit has it.
func SlotOf(lock string) (semaphore string, slot int, is bool) { return scripts.SlotOf(lock) }

const (
	// slotsBatch is how many slots are asked about in one round trip: more than of locks, as the
	// largest semaphore would take 21 of them. The server turns to others after each.
	slotsBatch = 128
	// someSlots is of how many slots SlotsWith asks at first.
	someSlots = 16
)

// Slots returns the locks of the slots of a semaphore with so many permits, 1 to 1,024, and the line
// of those who wait for a permit, as fenced.NewSemaphore takes name and permits. With 0 permits it
// returns those that are seen: the number of permits is stored nowhere. It asks about all slots that
// there may be, 128 at a time. What a slot has that is no lock is Other of its lock. A quorum has no
// semaphores: Slots of an Inspector of NewQuorum returns an error.
func (in *Inspector) Slots(ctx context.Context, semaphore string, permits int) (Semaphore, error) {
	if permits < 0 || permits > scripts.MostPermits {
		return Semaphore{}, fmt.Errorf("inspect: Slots: %d permits: use 1 to %d, or 0 for those that are seen", permits, scripts.MostPermits)
	}
	all, err := within(ctx, in, func() ([]*asked, error) {
		return in.askSlots(ctx, []string{semaphore}, scripts.MostPermits, clientsByID{})
	})
	if err == nil {
		err = all[0].err
	}
	if err != nil {
		return Semaphore{}, fmt.Errorf("inspect: Slots: %w", err)
	}
	return all[0].semaphore(permits), nil
}

// SlotsWith is Slots with 0 permits of each of these semaphores, in this order, for who has asked for
// Clients a moment ago, as LookWith is. It asks about 16 slots at first, and goes on until as many
// again as it has seen show nothing. An acquire takes the lowest free slot: SlotsWith misses only
// a permit that is left far above where counters expire, and that no client says. A semaphore whose
// keys the Redis user may not read has Other.
func (in *Inspector) SlotsWith(ctx context.Context, clients []Client, semaphores ...string) ([]Semaphore, error) {
	known := make(clientsByID, len(clients))
	for _, c := range clients { // copies, as in LookWith
		known[c.ID] = &c
	}
	semaphores = slices.Clone(semaphores)
	all, err := within(ctx, in, func() ([]*asked, error) { return in.askSlots(ctx, semaphores, someSlots, known) })
	if err != nil {
		return nil, fmt.Errorf("inspect: SlotsWith: %w", err)
	}
	found := make([]Semaphore, len(all))
	for i, a := range all {
		found[i] = a.semaphore(0)
	}
	return found, nil
}

// isPermit tells whether the hold of a slot's lock is a permit, and isSeen whether the slot has one,
// or had. What else stands there tells of no slot.
func isPermit(h *Holder) bool { return h != nil && permitField.MatchString(h.Field) }
func isSeen(l Lock) bool      { return isPermit(l.Holder) || l.Token > 0 || l.Counter != "" }

// asked is a semaphore about whose slots is being asked.
type asked struct {
	Semaphore
	keys  *scripts.Keys
	slots []Lock // so far
	began bool
	err   error // why nothing is seen
}

// next returns the names that are to be asked about next: at first the name of all slots and so many
// slots, then those up to twice as many as are seen.
func (a *asked) next(first int) (names []string) {
	if a.Other != "" {
		return nil
	}
	if !a.began {
		names = append(names, a.keys.Lock)
	}
	for slot := len(a.slots); slot < min(max(first, 2*a.Seen), scripts.MostPermits); slot++ {
		names = append(names, a.keys.SlotName(slot))
	}
	return names
}

// take keeps what is said of the names of next.
func (a *asked) take(locks []Lock) {
	if !a.began {
		a.began, a.Waiting, a.Line, locks = true, locks[0].Waiting, locks[0].Line, locks[1:]
	}
	for _, l := range locks {
		if l.Other == unreadable {
			a.Other = unreadable
		}
		a.held = a.held || isPermit(l.Holder)
		if isSeen(l) {
			a.Seen = max(a.Seen, len(a.slots)+1)
		}
		if l.Holder == nil || isPermit(l.Holder) {
			l.Semaphore = a.Name
		}
		a.slots = append(a.slots, l)
	}
}

// semaphore is what was found, of so many permits; 0 for those that are seen.
func (a *asked) semaphore(permits int) Semaphore {
	s := a.Semaphore
	if permits == 0 {
		permits = min(s.Seen, len(a.slots))
	}
	s.Slots = a.slots[:permits:permits]
	for i, l := range a.slots {
		switch {
		case i >= permits && isSeen(l):
			s.Beyond = append(s.Beyond, i)
		case i < permits && (l.Holder != nil || l.Other != ""):
			s.Taken++
		}
	}
	return s
}

// askSlots asks about these semaphores, which may outlast ctx: of each about the first slots, and then
// about twice as many as are seen.
func (in *Inspector) askSlots(ctx context.Context, semaphores []string, first int, known clientsByID) ([]*asked, error) {
	if in.parts != nil {
		return nil, errors.New("a quorum has no semaphores: use an inspector of one Redis")
	}
	said := map[string]int{} // so many slots there are, as clients say
	for _, c := range known {
		for i := 0; c != nil && i < len(c.Holds); i++ {
			if h := &c.Holds[i]; h.Semaphore != "" {
				_, slot, _ := scripts.SlotOf(h.Lock)
				said[h.Semaphore] = max(said[h.Semaphore], slot+1)
			}
		}
	}
	all := make([]*asked, len(semaphores))
	for i, name := range semaphores {
		if name == "" {
			return nil, errors.New("the semaphore's name is empty: give it one")
		}
		keys := scripts.PermitsOf(name, scripts.MostPermits)
		all[i] = &asked{keys: keys, Semaphore: Semaphore{Name: name, Seen: said[scripts.SemaphoreOf(keys.Lock)]}}
		if _, is := in.rdb.(*redis.ClusterClient); is {
			if err := keys.CheckCluster(); err != nil {
				all[i].Other, all[i].err = err.Error(), err
			}
		}
	}
	for {
		var names []string
		of := map[*asked]int{} // how many of the names
		for _, a := range all {
			next := a.next(first)
			names, of[a] = append(names, next...), len(next)
		}
		if len(names) == 0 {
			return all, nil
		}
		locks, err := in.ask(ctx, names, known, slotsBatch)
		if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
			return nil, err
		}
		for _, a := range all {
			switch n := of[a]; {
			case n > 0 && err != nil:
				a.Other, a.err = unreadable, err
			case n > 0:
				a.take(locks[:n])
				locks = locks[n:]
			}
		}
	}
}
