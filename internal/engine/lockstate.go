package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// A lockState is the shell of a room, which is what the client knows of one lock: it has what the
// room is not to know, gives the room the events, and does what the room says, with mu held. It
// exists while somebody uses it.
type lockState struct {
	client *Client
	key    stateKey
	keys   *scripts.Keys // of the lock

	// how many calls, holds and timers use the state; guarded by client.mu
	users    int32
	checking atomic.Bool          // Redis is to be asked soon whether the hold is still there
	news     atomic.Pointer[news] // nil before there has been a subscription

	mu   sync.Mutex
	room room.Room
	calls
	sent
	freed  bool  // the lock of a hold that is over was freed (P38)
	exited exit  // of the latest hold that is to be unlocked without a pass
	hold   *hold // the client's own, as far as it knows; nil for none
	// when the command was sent that has taken hold; zero where that is to be unlocked
	takenAt time.Time
	// the hold has lasted for a while: messages on the channel may be about it
	holdFollowed bool
	channels     *[2]Subscription // by room.Channel; nil before there has been one
	counted      counted
	// uses the state while the room listens without calls; nil for none
	lingers *time.Timer
}

// counted is what the client knows of whether the server counts it where it is called (P33). Another
// connection may lead to another server, so that each change of the channel is counted.
type counted struct {
	changes atomic.Uint32 // with the bus's mutex held
	seen    uint32        // of them, by the step under way
	proven  uint32        // seen by the latest attempt that has entered the line
}

// sent is what the room has sent.
type sent struct {
	// that the attempts are for, or that the head of the queue was granted; nil for none
	claimed *hold
	latest  attempt    // of them
	passed  *hold      // that the head was granted by a local handoff, until it begins; nil for none
	pass    *unlocking // for which an Unlock waits; nil for none
}

// An attempt is one that the room has sent.
type attempt struct {
	command *command.Command // nil for none
	number  room.Attempt
	ticket  string // with which it is in the line; "" for none
	changes uint32 // counted.seen, when it was sent
}

// A stateKey tells the states of locks apart. Both sides of a read-write lock have its name.
type stateKey struct {
	name string
	side scripts.Side
}

// stateKey is the key of the lock's state.
func (l *Lock) stateKey() stateKey { return stateKey{name: l.id.Name, side: l.keys.Side()} }

// lockState returns the state of the lock, and counts one user of the state more. The user calls
// removeUser in the end.
func (l *Lock) lockState() *lockState {
	c, key := l.client, l.stateKey()
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.locks[key]
	if ls == nil {
		ls = c.newState(key, l, l.kind)
		c.locks[key] = ls
	}
	ls.users++
	return ls
}

// newState returns a state without users, of the lock, or of one hold of it, which is as that of a
// plain one. With c.mu held.
func (c *Client) newState(key stateKey, l *Lock, k kind) (ls *lockState) {
	if n := len(c.spareStates); n > 0 {
		ls, c.spareStates = c.spareStates[n-1], c.spareStates[:n-1]
	} else {
		ls = &lockState{client: c}
	}
	ls.key = key
	ls.mu.Lock() // others may look at a state that they have seen before it was given back
	defer ls.mu.Unlock()
	ls.keys = l.keys
	of := room.Kind{
		Once: k.shared() || c.limits.several(), Shared: k.shared(), Together: k.together(),
		Passes: int32(c.set.Handoffs), LocalPasses: int32(c.set.LocalHandoffs), Tries: int32(c.limits.Tries),
	}
	if of.Shared {
		of.LocalPasses = 0
	}
	ls.room.Reset(&c.rooms, of, ls)
	return ls
}

// ownState returns a state for one share alone, and counts a user.
func (l *Lock) ownState() *lockState {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.newState(stateKey{}, l, plain{})
	ls.users = 1
	return ls
}

// stateInUse returns the state with this key, and counts a user; nil where nobody uses one.
func (c *Client) stateInUse(key stateKey) *lockState {
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.locks[key]
	if ls != nil {
		ls.users++
	}
	return ls
}

// stateOfHold returns the state of the client's hold with this field, a new one where there is no
// such hold, and counts a user.
func (l *Lock) stateOfHold(field string) *lockState {
	c := l.client
	c.mu.Lock()
	for h := c.firstHold; h != nil; h = h.next {
		if h.attempts.Field == field {
			defer c.mu.Unlock()
			h.lockState.users++
			return h.lockState
		}
	}
	c.mu.Unlock()
	return l.ownState()
}

// addUser counts one user more of the state, which has one already.
func (ls *lockState) addUser() {
	ls.client.mu.Lock()
	ls.users++
	ls.client.mu.Unlock()
}

// removeUser counts one user less of the state. The client forgets the state with its last user.
func (ls *lockState) removeUser() {
	ls.client.mu.Lock()
	defer ls.client.mu.Unlock()
	ls.client.removeUserLocked(ls)
}

// removeUserLocked is lockState.removeUser with c.mu held.
func (c *Client) removeUserLocked(ls *lockState) {
	if ls.users--; ls.users == 0 {
		delete(c.locks, ls.key)
		if len(c.spareStates) < maxSpare && ls.reset() {
			c.spareStates = append(c.spareStates, ls)
		}
		c.idleIfUnused()
	}
}

// maxSpare bounds the states that are kept to be used again.
const maxSpare = 1024

// reset makes an unused state as if it were new; false where a message or a timer may still be
// about the lock that it was for.
func (ls *lockState) reset() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.news.Load() != nil {
		return false
	}
	ls.sent = sent{}
	return true
}

// Field implements room.Shell.
func (ls *lockState) Field() string {
	return ls.first.kind.field(ls.client, ls.first.keys)
}

// Ticket implements room.Shell.
func (ls *lockState) Ticket() string {
	return ls.client.distance.Ticket(ls.keys.TicketOf(ls.client.newField()))
}

// facts are what the client knows of its server.
func (c *Client) facts() room.Facts {
	sharded, known := c.bus.Known()
	forbidden := c.lineForbidden()
	return room.Facts{
		Line:      !forbidden && c.hasLine(sharded, known),
		Forbidden: forbidden,
		Sharded:   sharded,
		Proven:    c.lineProven.Load(),
		Draining:  isClosed(c.draining),
	}
}

// step gives the room an event. With ls.mu held.
func (ls *lockState) step(now time.Time, ev *room.Event) {
	ev.Facts = ls.client.facts()
	// in a quorum it moves
	ev.Facts.Hears = ls.channels != nil && ls.channels[room.Calls] != nil && ls.channels[room.Calls].Live()
	ls.counted.seen = ls.counted.changes.Load()
	ev.Facts.Proven = ev.Facts.Proven && ls.counted.seen == ls.counted.proven
	ev.Facts.Listens = ls.ownListeners(ls.keys) > 0
	ev.Facts.HeadEnds = ls.first != nil && isClosed(ls.first.bound.end)
	ls.room.Step(now, ev)
}

// lock takes mu for what steps, and returns the time.
func (ls *lockState) lock() time.Time {
	ls.mu.Lock()
	now := time.Now()
	ls.hearAnswers(now)
	return now
}

// hearAnswers gives the room the answers that are there: an attempt whose answer has come is not
// silent, whoever is the next to step. It tells whether there was one. With ls.mu held.
func (ls *lockState) hearAnswers(now time.Time) (any bool) {
	if ls.pass != nil && ls.pass.command != nil && ls.pass.command.Done() {
		ls.answered(now, ls.pass.attempt)
		any = true
	}
	if ls.latest.command != nil && ls.latest.command.Done() {
		ls.answered(now, ls.latest)
		any = true
	}
	return any
}

// happened is step, of something that happened to this hold or call.
func (ls *lockState) happened(ev room.Event) {
	now := ls.lock()
	defer ls.unlock(now)
	ls.step(now, &ev)
}

// unlock sees to all that has changed, and gives ls.mu back, which was taken at this time.
func (ls *lockState) unlock(now time.Time) {
	ls.see(now)
	ls.unlockSeen()
}

// unlockSeen is unlock where nothing has changed since all was seen to.
func (ls *lockState) unlockSeen() {
	due := ls.room.Due()
	switch {
	case due.IsZero():
	case ls.first != nil:
		ls.first.wakeup.NotifyAt(due)
	case ls.lingers == nil:
		ls.addUser()
		ls.lingers = time.AfterFunc(max(time.Until(due), 1), ls.lingerEnded)
	}
	ls.mu.Unlock()
}

// see gives the room what has come, and the time. With ls.mu held.
func (ls *lockState) see(now time.Time) {
	for {
		due := ls.room.Due()
		switch {
		case ls.hearNews(now, false):
		case ls.hearAnswers(now):
		case !due.IsZero() && !now.Before(due):
			ls.step(now, &room.Event{What: room.Tick})
		default:
			return
		}
	}
}

// lingerEnded lets the room stop listening, as nobody has come back.
func (ls *lockState) lingerEnded() {
	now := ls.lock()
	if ls.lingers == nil { // it was fired again as it ended
		ls.mu.Unlock()
		return
	}
	ls.step(now, &room.Event{What: room.Tick})
	if due := ls.room.Due(); ls.first == nil && !due.IsZero() {
		ls.lingers.Reset(max(time.Until(due), 1))
		ls.mu.Unlock()
		return
	}
	ls.lingers = nil
	ls.mu.Unlock()
	ls.removeUser()
}

// endLinger ends a lingering, as the client is shutting down.
func (ls *lockState) endLinger() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.lingers != nil {
		ls.lingers.Reset(1)
	}
}

// currentHold returns the client's own hold of the lock, or nil.
func (ls *lockState) currentHold() *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.hold
}
