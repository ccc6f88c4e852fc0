package room

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A bench is a room in a test, and the time there. Its client hears its calls as soon as it
// listens.
type bench struct {
	*testing.T
	room  *Room
	now   time.Time
	facts Facts
	names names
	said  []string // the effects of the last step
}

func newBench(t *testing.T, kind Kind) *bench {
	b := &bench{T: t, now: epoch, names: names{client: 1}, facts: Facts{Line: true, Proven: true}}
	set := &Settings{Poll: time.Second, Patience: 10 * time.Second, Silence: 10 * time.Second}
	b.room = new(Room)
	b.room.Reset(set, kind, &b.names)
	return b
}

// A step is an event, what the room says to it, and the state after it.
type step struct {
	event Event
	says  []string
	state string
	after time.Duration // that passes before the event
}

func (b *bench) play(steps []step) {
	b.Helper()
	for i, s := range steps {
		b.now = b.now.Add(s.after)
		ev := s.event
		if ev.Facts == (Facts{}) {
			ev.Facts = b.facts
		}
		b.said = nil
		for _, e := range b.names.step(b.room, b.now, &ev) {
			b.said = append(b.said, describeEffect(&e))
		}
		if fmt.Sprint(b.said) != fmt.Sprint(s.says) {
			b.Fatalf("step %d, %s: it says %q, want %q", i, describe(&ev), b.said, s.says)
		}
		if is := stateNames[b.room.asker.state]; is != s.state {
			b.Fatalf("step %d, %s: it is %s, want %s", i, describe(&ev), is, s.state)
		}
		if len(b.room.asker.queue) > 0 && b.room.asker.state != granted && b.room.Due().IsZero() {
			b.Fatalf("step %d, %s: it sleeps without end", i, describe(&ev))
		}
	}
}

// Events.

func joined(id uint64) Event {
	return Event{What: Joined, Call: Call{ID: id, Terms: Terms{Lease: time.Minute}, Began: epoch}}
}

func endsSoon(ev Event) Event {
	ev.Call.Until = epoch.Add(Soon - 1)
	return ev
}

func left(id uint64, field string) Event {
	return Event{What: Left, Call: Call{ID: id}, Field: field}
}

func answer(n Attempt, a scripts.Answer) Event {
	return Event{What: Answered, Attempt: n, Answer: &a}
}

func taken(n Attempt) Event { return answer(n, scripts.Answer{Held: true}) }

// held is the answer that somebody else has the lock, and that so many are before this client.
func isHeld(n Attempt, before int) Event {
	a := scripts.Answer{TTL: time.Minute, Before: before}
	if before >= 0 {
		a.Score = 7
	}
	return answer(n, a)
}

// in is an answer to an attempt that was in the line with this ticket.
func in(ticket string, ev Event) Event {
	ev.Ticket = ticket
	return ev
}

// ending is an event after which the context of the next head has ended.
func ending(ev Event) Event {
	ev.Facts = Facts{Line: true, Proven: true, Hears: true, HeadEnds: true}
	return ev
}

func failing(n Attempt, err error) Event {
	return Event{What: Answered, Attempt: n, Answer: new(scripts.Answer), Err: err}
}

func live(c Channel) Event {
	return Event{What: Changed, Channel: c, Live: true, Facts: Facts{Line: true, Proven: true, Hears: true}}
}

func whoHears(ev Event) Event {
	ev.Facts = Facts{Line: true, Proven: true, Hears: true}
	return ev
}

func says(all ...string) []string { return all }

var tick = Event{What: Tick}

// beginnings are ways into a state, for the stories below.
var (
	byItself = []step{ // call 1 has the lock, and nobody waits
		{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
		{event: taken(1), says: says("grant 1:1 to call 1"), state: "granted"},
		{event: Event{What: Began, Field: "1:1", At: epoch}, state: "granted"},
		{event: left(1, "1:1"), state: "resting"},
	}
	behindOwn = append(byItself[:4:4], // call 2 waits for call 1's hold
		step{event: joined(2), says: says("1:1 is wanted", "call 2 waits", "listen to the lock's channel"), state: "watching"},
		step{event: live(Own), state: "watching"})
	inLine = []step{ // call 1 is in the line behind another client
		{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
		{event: isHeld(1, scripts.NotInLine), says: says("call 1 waits", "listen to its calls"), state: "watching"},
		{event: live(Calls), says: says("send attempt 2 for 1:1 in line as 1:2"), state: "asking"},
		{event: whoHears(isHeld(2, 1)), state: "watching"},
	}
)

// What a room does, event by event. Each story goes on from a beginning.
func TestStories(t *testing.T) {
	for name, steps := range map[string][]step{
		"a free lock is taken with one attempt, and unlocked with one release": append(byItself[:4:4],
			step{event: Event{What: Unlocking, Field: "1:1"}, says: says("release 1:1"), state: "resting"},
			step{event: Event{What: Released, Field: "1:1", Got: true}, state: "resting"},
			step{event: Event{What: Ended, Field: "1:1"}, state: "resting"}),
		"a call that comes while an attempt is under way waits for its turn": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: taken(1), says: says("grant 1:1 to call 1"), state: "granted"},
			{event: Event{What: Began, Field: "1:1", At: epoch}, state: "granted"},
			{event: left(1, "1:1"), says: says("listen to the lock's channel"), state: "watching"},
		},
		"a hold is passed on to the next call": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1"}, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"},
			step{event: taken(2), says: says("1:1 is passed on", "grant 1:2 to call 2"), state: "granted"}),
		"a pass that Redis refuses becomes a release": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1"}, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"},
			step{event: answer(2, scripts.Answer{}), says: says("release 1:1"), state: "watching"}),
		"a pass without an answer becomes a release, and its claim is asked for": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1"}, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"},
			step{event: Event{What: GaveUp, Field: "1:1"}, says: says("send attempt 3 for 1:2", "release 1:1"), state: "asking"},
			step{event: taken(2), state: "asking"}),
		"who waits for a pass leaves": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1"}, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"},
			step{event: left(2, ""), says: says("take back attempt 2", "abandon 1:2", "stop listening to the lock's channel"), state: "resting"},
			step{event: taken(2), says: says("1:1 is passed on"), state: "resting"}),
		"nothing is passed on to a call that ends": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1", Facts: Facts{Line: true, HeadEnds: true}}, says: says("release 1:1"), state: "watching"}),
		"a run of passes ends": append(behindOwn[:6:6],
			step{event: Event{What: Unlocking, Field: "1:1"}, after: maxRun + 1, says: says("release 1:1"), state: "watching"}),
		"who is refused listens for calls, and enters the line": inLine,
		"who is called asks": append(inLine[:4:4],
			step{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
			step{event: taken(3), says: says("grant 1:1 to call 1"), state: "granted"}),
		"who is called yields to an outsider, and asks then": append(inLine[:4:4],
			step{event: whoHears(Event{What: Message, Text: "c 1:2 1"}), state: "yielding"},
			step{event: whoHears(Event{What: Told}), state: "yielding"},
			step{event: whoHears(tick), after: 5 * time.Millisecond, says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"}),
		"a message about another release is left to others": append(inLine[:4:4],
			step{event: whoHears(Event{What: Told}), state: "watching"}),
		"a call for a place that was left is passed on": append(inLine[:4:4],
			step{event: left(1, ""), says: says("abandon 1:1", "leave the line with 1:2"), state: "resting"},
			step{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), says: says("leave the line with 1:2"), state: "resting"},
			step{event: tick, after: lingerTime, says: says("stop listening to its calls"), state: "resting"}),
		"a release that comes after the leave of its ticket is followed by another leave": append(inLine[:4:4],
			step{event: whoHears(joined(2)), says: says("call 2 waits"), state: "watching"},
			step{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
			step{event: whoHears(taken(3)), says: says("grant 1:1 to call 1"), state: "granted"},
			step{event: whoHears(Event{What: Began, Field: "1:1", At: epoch}), state: "granted"},
			step{event: whoHears(left(1, "1:1")), says: says("listen to the lock's channel"), state: "watching"},
			step{event: whoHears(Event{What: Unlocking, Field: "1:1"}), after: maxRun + 1, says: says("release 1:1 and enter as 1:3"), state: "watching"},
			step{event: whoHears(left(2, "")), says: says("stop listening to the lock's channel", "leave the line with 1:3"), state: "resting"},
			step{event: whoHears(Event{What: Released, Field: "1:1", Ticket: "1:3", Score: 9, Got: true}), says: says("leave the line with 1:3"), state: "resting"}),
		"a call that ends soon has those before it asked": {
			{event: endsSoon(joined(1)), says: says("send attempt 1 for 1:1 and looks"), state: "asking"},
			{event: isHeld(1, scripts.NotInLine), says: says("call 1 waits", "listen to its calls"), state: "watching"},
			{event: live(Calls), says: says("send attempt 2 for 1:1 in line as 1:2 and looks"), state: "asking"},
			{event: whoHears(isHeld(2, 1)), state: "watching"},
			{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
		},
		"a message that comes during an attempt is heeded after its answer": append(inLine[:4:4],
			step{event: live(Calls), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
			step{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), state: "asking"},
			step{event: whoHears(isHeld(3, 0)), says: says("send attempt 4 for 1:1 in line as 1:2"), state: "asking"}),
		"who leaves while an attempt may enter the line leaves the line twice": {
			inLine[0], inLine[1], inLine[2],
			{event: left(1, ""), says: says("take back attempt 2", "abandon 1:1", "leave the line with 1:2"), state: "resting"},
			{event: in("1:2", isHeld(2, 0)), says: says("leave the line with 1:2"), state: "resting"},
		},
		"and where a call without an attempt of its own is the last to leave": {
			inLine[0], inLine[1], inLine[2],
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: ending(left(1, "")), after: youngAttempt, says: says("take back attempt 2"), state: "resting"},
			{event: left(2, ""), says: says("abandon 1:1", "leave the line with 1:2"), state: "resting"},
			{event: in("1:2", isHeld(2, 0)), says: says("leave the line with 1:2"), state: "resting"},
		},
		"an attempt that was taken back enters the line after the next has taken the lock": {
			inLine[0], inLine[1], inLine[2],
			{event: whoHears(joined(2)), says: says("call 2 waits"), state: "asking"},
			{event: whoHears(left(1, "")), after: youngAttempt, says: says("take back attempt 2", "send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
			{event: whoHears(in("1:2", isHeld(2, 0))), state: "asking"},
			{event: whoHears(in("1:2", taken(3))), says: says("leave the line with 1:2", "grant 1:1 to call 2"), state: "granted"},
		},
		"the next call goes on with the attempt of the one that leaves": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: left(1, ""), state: "asking"},
			{event: taken(1), says: says("grant 1:1 to call 2"), state: "granted"},
		},
		"but not with an old one": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: left(1, ""), after: youngAttempt, says: says("take back attempt 1", "send attempt 2 for 1:1"), state: "asking"},
			{event: taken(1), state: "asking"},
		},
		"who was called asks again where the attempt that came of it is taken back": append(inLine[:4:4],
			step{event: whoHears(joined(2)), says: says("call 2 waits"), state: "watching"},
			step{event: whoHears(Event{What: Message, Text: "c 1:2 0"}), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"},
			step{event: whoHears(left(1, "")), after: youngAttempt, says: says("take back attempt 3", "send attempt 4 for 1:1 in line as 1:2"), state: "asking"}),
		"what is granted to a call that leaves without it is abandoned": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: taken(1), says: says("grant 1:1 to call 1"), state: "granted"},
			{event: left(1, ""), says: says("abandon 1:1"), state: "resting"},
		},
		"for a head that ends nothing is sent, and the next one asks": append(inLine[:4:4],
			step{event: whoHears(joined(2)), says: says("call 2 waits"), state: "watching"},
			step{event: Event{What: Message, Text: "c 1:2 0", Facts: Facts{Line: true, Hears: true, HeadEnds: true}}, state: "resting"},
			step{event: whoHears(left(1, "")), says: says("send attempt 3 for 1:1 in line as 1:2"), state: "asking"}),
		"an error that passes is followed by an attempt for the same claim": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: failing(1, io.ErrNoProgress), state: "watching"},
			{event: tick, after: 10 * time.Millisecond, says: says("send attempt 2 for 1:1 and looks"), state: "asking"},
			{event: failing(1, io.ErrNoProgress), state: "asking"},
			{event: taken(2), says: says("grant 1:1 to call 1"), state: "granted"},
		},
		"an error that does not pass ends the call": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: failing(1, replyError("WRONGTYPE")), says: says("fail call 1: WRONGTYPE"), state: "granted"},
			{event: left(1, ""), says: says("abandon 1:1"), state: "resting"},
		},
		"a call has so much patience with errors": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: failing(1, io.ErrNoProgress), after: 10 * time.Second, says: says("fail call 1: multiple Read calls return no data or error"), state: "granted"},
		},
		"a call ends when its patience does, and not with the attempt after it": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: failing(1, io.ErrNoProgress), after: 9*time.Second + 995*time.Millisecond, state: "watching"},
			{event: tick, after: 5 * time.Millisecond, says: says("fail call 1: multiple Read calls return no data or error"), state: "granted"},
		},
		"the error of a call that is to join takes no patience from who waits": append(inLine[:4:4],
			step{event: whoHears(Event{What: Trying, Field: "1:3"}), state: "watching"},
			step{event: whoHears(Event{What: Asked, Field: "1:3", Err: io.ErrNoProgress, Got: true, At: epoch}), state: "watching"},
			step{event: whoHears(tick), after: 20 * time.Second, says: says("send attempt 3 for 1:1 in line as 1:2 and looks"), state: "asking"},
			step{event: whoHears(taken(3)), says: says("grant 1:1 to call 1"), state: "granted"}),
		"silence is an error, and the attempt is repeated": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: tick, after: 9 * time.Second, state: "asking"},
			{event: tick, after: time.Second, says: says("take back attempt 1", "fail call 1: no answer from Redis in time: context deadline exceeded"), state: "granted"},
		},
		"an answer that comes too late is no grant": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: Event{What: Answered, Attempt: 1, Answer: &scripts.Answer{Held: true}, Late: true}, state: "watching"},
			{event: tick, after: 10 * time.Millisecond, says: says("send attempt 2 for 1:1 and looks"), state: "asking"},
		},
		"without a line all who listen ask": {
			{event: out(joined(1)), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: out(isHeld(1, -1)), says: says("call 1 waits", "listen to the lock's channel"), state: "watching"},
			{event: out(Event{What: Changed, Channel: Own, Live: true}), says: says("send attempt 2 for 1:1"), state: "asking"},
			{event: out(isHeld(2, -1)), state: "watching"},
			{event: out(Event{What: Told}), says: says("send attempt 3 for 1:1"), state: "asking"},
		},
		"who may not use the line any more leaves it": append(inLine[:4:4],
			step{event: out(live(Calls)), says: says("leave the line with 1:2", "send attempt 3 for 1:1"), state: "asking"}),
		"a hold of this client that is over, and has the lock, is freed": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: answer(1, scripts.Answer{TTL: time.Minute, Before: -1, Own: "1:0"}), says: says("free 1:0", "call 1 waits", "listen to its calls"), state: "watching"},
		},
		"a shutdown lets those leave first that it ends": {
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: failing(1, replyError("WRONGTYPE")), says: says("fail call 1: WRONGTYPE"), state: "granted"},
			{event: Event{What: Left, Call: Call{ID: 1}, Facts: Facts{Line: true, Draining: true}}, says: says("abandon 1:1"), state: "watching"},
			{event: tick, after: time.Millisecond, says: says("send attempt 2 for 1:2"), state: "asking"},
		},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, Kind{Passes: 32}).play(steps) })
	}
}

// out is an event at a client whose user lacks a right to the line.
func out(ev Event) Event {
	ev.Facts = Facts{Forbidden: true}
	return ev
}

type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// A hold goes on for the next call, of which Redis is not told, where there is a token and the call
// asks for the same.
func TestLocalPasses(t *testing.T) {
	unlocking := Event{What: Unlocking, Field: "1:1", Tokens: 1, Call: Call{Terms: Terms{Lease: time.Minute}}}
	otherTerms, noToken := unlocking, unlocking
	otherTerms.Call.Terms.Fenced, noToken.Tokens = true, 0
	passed := append(behindOwn[:6:6], step{event: unlocking, says: says("grant 1:1 to call 2, locally", "1:1 goes on"), state: "granted"})
	for name, steps := range map[string][]step{
		"to a call that begins": append(passed[:7:7],
			step{event: Event{What: Began, Field: "1:1", Got: true}, state: "granted"},
			step{event: left(2, "1:1"), says: says("stop listening to the lock's channel"), state: "resting"}),
		"to a call that leaves": append(passed[:7:7],
			step{event: left(2, ""), says: says("abandon 1:1", "stop listening to the lock's channel"), state: "resting"}),
		"and another call comes": append(passed[:7:7],
			step{event: joined(3), says: says("call 3 waits"), state: "granted"},
			step{event: left(2, ""), says: says("abandon 1:1", "send attempt 2 for 1:2"), state: "asking"}),
		"not on other terms": append(behindOwn[:6:6],
			step{event: otherTerms, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"}),
		"not without a token": append(behindOwn[:6:6],
			step{event: noToken, says: says("pass by attempt 2 from 1:1 to 1:2"), state: "passing"}),
		"not after the run": append(behindOwn[:6:6],
			step{event: unlocking, after: maxRun + 1, says: says("release 1:1"), state: "watching"}),
	} {
		t.Run(name, func(t *testing.T) { newBench(t, local).play(steps) })
	}
}

// What is different where an attempt without an answer may have taken any part of what is asked
// for.
func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Kind
		steps []step
	}{
		"a permit is asked for with a claim of its own each time": {permit, []step{
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: failing(1, io.ErrNoProgress), says: says("abandon 1:1"), state: "watching"},
			{event: tick, after: 10 * time.Millisecond, says: says("send attempt 2 for 1:2 and looks"), state: "asking"},
		}},
		"an attempt for a permit is for one call": {permit, []step{
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: left(1, ""), says: says("take back attempt 1", "abandon 1:1", "send attempt 2 for 1:2"), state: "asking"},
		}},
		"a ticket with which an attempt for nobody takes a permit enters anew": {permit, []step{
			inLine[0], inLine[1], inLine[2],
			{event: whoHears(joined(2)), says: says("call 2 waits"), state: "asking"},
			{event: whoHears(left(1, "")), says: says("take back attempt 2", "abandon 1:1", "send attempt 3 for 1:3 in line as 1:2"), state: "asking"},
			{event: whoHears(in("1:2", isHeld(3, 0))), state: "watching"},
			{event: whoHears(in("1:2", taken(2))), says: says("send attempt 4 for 1:3 in line as 1:2"), state: "asking"},
		}},
		"who reads has all others of the queue ask": {reads, []step{
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: taken(1), says: says("grant 1:1 to call 1"), state: "granted"},
			{event: left(1, "1:1"), says: says("all others ask beside"), state: "resting"},
		}},
		"a look is not put off by a call that leaves to ask beside": {reads, []step{
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: joined(2), says: says("call 2 waits"), state: "asking"},
			{event: isHeld(1, scripts.NotInLine), says: says("call 1 waits", "listen to its calls"), state: "watching"},
			{event: live(Calls), says: says("send attempt 2 for 1:1 in line as 1:2"), state: "asking"},
			{event: whoHears(joined(3)), says: says("call 3 waits"), state: "asking"},
			{event: whoHears(taken(2)), says: says("grant 1:1 to call 1"), state: "granted"},
			{event: whoHears(left(1, "1:1")), says: says("all others ask beside"), state: "resting"},
			{event: live(Calls), says: says("send attempt 3 for 1:3 in line as 1:4"), state: "asking"},
			{event: whoHears(isHeld(3, 0)), state: "watching"},
			{event: whoHears(joined(4)), says: says("call 4 waits"), state: "watching"},
			{event: whoHears(left(2, "")), state: "watching"},
			{event: whoHears(left(3, "")), state: "watching"},
			{event: whoHears(tick), after: 20 * time.Millisecond, says: says("send attempt 4 for 1:3 in line as 1:4 and looks"), state: "asking"},
		}},
		"several servers are asked so often": {Kind{Once: true, Tries: 1}, []step{
			{event: joined(1), says: says("send attempt 1 for 1:1"), state: "asking"},
			{event: isHeld(1, -1), says: says("fail call 1: not acquired: held by someone else"), state: "granted"},
		}},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, c.kind).play(c.steps) })
	}
}
