package room

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
)

// Settings are those of a client that its rooms share.
type Settings struct {
	Poll     time.Duration
	Patience time.Duration
	Silence  time.Duration // how long an attempt is waited for at most
}

// A Shell is what a room uses. Its methods may not call the room.
type Shell interface {
	Field() string  // of a claim; never used again
	Ticket() string // of a stay in the line; never used again
	Do(e *Effect)   // does what is to be done, and does not keep it
}

// A Room is what one client knows of one lock: who waits for it, and what is done about that. A
// room is small where nobody waits, and nobody else wants the lock.
type Room struct {
	set      *Settings
	shell    Shell
	kind     Kind
	attempts Attempt // so far: the number of the latest
	ends     uint32  // of holds, so far: an answer from before an end says nothing
	facts    Facts
	own      own
	asker    *asker  // nobody where nobody waits
	others   *others // alone before somebody else wanted the lock
	health   *Health // nothing before Redis has said something

	now time.Time // of the step
}

// others is what a room knows of others who want the lock, and of how it hears of them.
type others struct {
	place    *line.Place // nil before the client had to wait for another one
	heard    [2]hearing  // by Channel
	calledBy string      // the own hold whose release has called the first client in the line
	// the own hold that was lost last by the clock alone: Redis lets it run out
	lost  string
	tries []try
	pass  pass
	// until when the room listens for calls without anybody waiting; zero for not
	lingers time.Time
	yields  time.Time // until when others come first, where there is no line
}

// alone is what a room knows of others where there are none. It does not change.
var alone = new(others)

// contend returns what the room knows of others, to be changed.
func (r *Room) contend() *others {
	if r.others == alone {
		r.others = new(others)
	}
	return r.others
}

// An asker is the queue, and what is done for the head of it.
type asker struct {
	queue []Call // of which the first is the head
	course
}

// course is how far an asker is.
type course struct {
	state    state
	underWay Attempt   // whose answer is waited for; 0 for none
	sent     time.Time // when that wait began
	silent   time.Time // since when attempts, one after the other, had no answer; zero for none
	due      time.Time // when the asker looks by itself; zero for never
	claim    claim
	freed    bool   // the lock may be free: a release was heard, or the client's own hold is over
	passed   string // the own hold that the head was granted by a local pass; "" for none
	// an earlier attempt with the same ticket was answered since the one under way was sent
	overtakes bool
	pauses    command.Backoff
	blocker   string    // the own hold that was seen last at a look,
	since     time.Time // for the first time
}

// nobody is the asker where nobody waits. It does not change.
var nobody = new(asker)

type state uint8

const (
	resting state = iota
	watching
	yielding
	asking
	passing
	granted
)

// askers are those that have begun nothing, and are used again.
var askers = sync.Pool{New: func() any { return new(asker) }}

// A claim is what takes the lock next.
type claim struct {
	field  string // "" for none
	terms  Terms
	ends   uint32 // Room.ends, when the last attempt was sent
	ticket string // with which the last attempt was in the line
	doubt  bool   // an attempt of it has no answer
}

// own is what a room knows of its client's own hold.
type own struct {
	field string // "" for none
	kept  bool   // the hold is listened for
	run   run
}

// A hearing is what a room knows of a channel.
type hearing struct{ asked, live bool }

// Reset makes a zero room one for a lock of this kind, or one that nobody uses, and where nobody is
// listened for, one for another lock.
func (r *Room) Reset(set *Settings, kind Kind, shell Shell) {
	r.set, r.kind, r.shell = set, kind, shell
	r.own, r.ends, r.asker, r.others, r.health = own{}, 0, nobody, alone, nothing
}

// Step takes an event, and has its shell do what is to be done, one after the other.
func (r *Room) Step(now time.Time, ev *Event) {
	// who has waited for the shell's mutex may come with an older time
	if r.facts = ev.Facts; now.After(r.now) {
		r.now = now
	}
	r.take(ev)
	if !ev.More {
		r.settle()
	}
}

// emit has the shell do what is to be done.
func (r *Room) emit(e Effect) {
	in := effect(e.Do)
	*in = e
	r.do(in)
}

// effect returns an effect for do. Effects are large values: on the way to a command they do not
// belong on the stack, which stays at 4 KiB for a caller that waits.
func effect(do Do) *Effect {
	e := effects.Get().(*Effect)
	e.Do = do
	return e
}

// do has the shell do what is to be done.
func (r *Room) do(e *Effect) {
	r.shell.Do(e)
	*e = Effect{}
	effects.Put(e)
}

func fails(err error) *Effect {
	e := effect(Fail)
	e.Err = err
	return e
}

func (r *Room) takeBack(a Attempt) {
	e := effect(TakeBack)
	e.Attempt = a
	r.do(e)
}

func (r *Room) abandon(field string, doubt bool) {
	e := effect(Abandon)
	e.Field, e.Doubt = field, doubt
	r.do(e)
}

func (r *Room) freeOver(field string) {
	e := effect(FreeOver)
	e.Field = field
	r.do(e)
}

// effects are those that are over, and are used again.
var effects = sync.Pool{New: func() any { return new(Effect) }}

func (r *Room) take(ev *Event) {
	switch ev.What {
	case Joined:
		r.join(&ev.Call)
	case Left:
		if ev.Begins {
			r.began(ev)
		}
		r.leave(ev.Call.ID, ev.Field)
	case Answered:
		r.answered(ev)
	case Message:
		r.hear(ev.Text)
	case Told:
		r.told()
	case Changed:
		r.changed(ev.Channel, ev.Live)
	case Trying, Tried, Asked, Lost:
		r.beside(ev)
	case Tick:
	default:
		r.ofHold(ev)
	}
}

// settle does all that is to be done now.
func (r *Room) settle() {
	for len(r.asker.queue) > 0 && r.asker.state != granted {
		switch {
		case r.asker.underWay != 0 && r.isDue():
			r.silence()
		case r.asker.underWay != 0:
			return
		case r.mayAsk() && r.heed():
		case r.isDue():
			r.look()
		default:
			return
		}
	}
	if len(r.asker.queue) == 0 && !r.others.lingers.IsZero() && (r.facts.Draining || !r.now.Before(r.others.lingers)) {
		r.lingerOver()
	}
}

// mayAsk tells whether no hold of the client's own keeps its calls from asking.
func (r *Room) mayAsk() bool { return r.own.field == "" || r.kind.Shared }

func (r *Room) isDue() bool { return !r.asker.due.IsZero() && !r.now.Before(r.asker.due) }

// Due is when a Tick is to come at the latest; zero for never.
func (r *Room) Due() time.Time {
	if len(r.asker.queue) > 0 {
		return r.asker.due
	}
	return r.others.lingers
}

// Unused tells whether nobody waits, holds, tries or is listened for.
func (r *Room) Unused() bool {
	return len(r.asker.queue) == 0 && r.own.field == "" && len(r.others.tries) == 0 && r.others.lingers.IsZero() &&
		!r.others.heard[Calls].asked && !r.others.heard[Own].asked
}

// Watching tells whether the head of the queue waits for a message.
func (r *Room) Watching() bool { return r.asker.state == watching }

// Silent is since when attempts, one after the other, had no answer; zero for none.
func (r *Room) Silent() time.Time { return r.asker.silent }

// Entered tells whether the client has been in the line, or was to enter it.
func (r *Room) Entered() bool { return r.others.place != nil && r.others.place.Entered() }

// Health is what Redis has said last to the calls of the room.
func (r *Room) Health() *Health { return r.health }
