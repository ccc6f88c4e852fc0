package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// placeOf returns a place whose client has the ticket b:1, and no answer of Redis about it.
func placeOf() *place {
	p := new(place)
	p.turn(func() string { return "b:1" })
	return p
}

// P24: a first one that says that it lives right behind its call is not watched, whichever of the two the second acts on first.
func TestP24_AliveBeforeTheCallIsActedOn(t *testing.T) {
	p := new(place)
	ticket, _ := p.turn(func() string { return "b:1" })
	p.placeKnown(ticket, 2, 1)
	p.onMessage("w b:1 a:1")
	p.onMessage("a b:1")
	if n, _ := p.takeNotice(); n.watch != "" {
		t.Errorf("it watches %s, which lives", n.watch)
	}
	p.onMessage("w b:1 a:1")
	if n, _ := p.takeNotice(); n.watch != "a:1" {
		t.Errorf("it watches %q, and a:1 was called anew", n.watch)
	}
}

// P24: what was heard before the first one has said that it lives is no reason to watch it, however late it is acted on; what is
// heard afterwards is.
func TestP24_AliveBeforeAnOldAnswer(t *testing.T) {
	p := new(place)
	ticket, _ := p.turn(func() string { return "b:1" })
	p.placeKnown(ticket, 2, 1)
	before := p.alive()
	p.onMessage("a b:1")
	p.watchUnlessAlive("a:1", "", before)
	if p.calledTicket != "" {
		t.Error("it watches a first one that lives")
	}
	p.watchUnlessAlive("a:1", "", p.alive())
	if p.calledTicket != "a:1" {
		t.Error("it does not watch a first one that was called anew")
	}
}

// P24: a called client has calledTimeout from when this one knows of the call. The time begins again for another client, and for the same one
// where that was to be taken out and is called still.
func TestP24_TheTimeOfACalledClient(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		p := placeOf()
		p.placeKnown("b:1", 7, 1)
		step := func(what string, watch, out string, left time.Duration, late string) {
			t.Helper()
			locktest.Equal(t, what+": left", p.watchUnlessAlive(watch, out, p.alive()), left)
			locktest.Equal(t, what+": late", p.overdueTicket(), late)
		}
		step("it learns of the call", "a:1", "", calledTimeout, "")
		locktest.Sleep(60 * time.Millisecond)
		step("it hears of it again", "a:1", "", 40*time.Millisecond, "")
		locktest.Sleep(40 * time.Millisecond)
		step("the time is over", "a:1", "", time.Millisecond, "a:1")
		step("it was to be taken out", "a:1", "a:1", calledTimeout, "")
		locktest.Sleep(60 * time.Millisecond)
		step("another one is called", "c:1", "a:1", calledTimeout, "")
		locktest.Sleep(calledTimeout)
		locktest.Equal(t, "late", p.overdueTicket(), "c:1")
		p.watchFromBehind(time.Second)
		locktest.Equal(t, "late, for one behind the second", p.overdueTicket(), "")
		step("it is the second again", "c:1", "", calledTimeout, "")
		p.clearCalled()
		locktest.Sleep(calledTimeout)
		locktest.Equal(t, "late, where the lock is held", p.overdueTicket(), "")
	})
}

// P24: a called client that is far from Redis, which its ticket says, has longer to come, and a second at most.
func TestP24_TheTimeOfAFarClient(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		for ticket, time := range map[string]time.Duration{
			"a:1": calledTimeout, "a:1:30": calledTimeout, "a:1:360": 360 * time.Millisecond, "a:1:1000": time.Second, "a:1:99999999999": time.Second,
			"a:1:x": calledTimeout, "a:1:-5": calledTimeout, "a:1:": calledTimeout, "a": calledTimeout, "": calledTimeout,
		} {
			p := placeOf()
			locktest.Equal(t, ticket+": left", p.watchUnlessAlive(ticket, "", p.alive()), time)
			locktest.Sleep(time - 1)
			locktest.Equal(t, ticket+": late", p.overdueTicket(), "")
			locktest.Sleep(1)
			locktest.Equal(t, ticket+": late then", p.overdueTicket(), ticket)
			locktest.Equal(t, ticket+": left after it has said that it is alive", p.watchUnlessAlive(ticket, "", p.alive()-1), time)
		}
	})
}

// P24: a client says in its tickets how long it needs to come, where that is longer than calledTimeout: three of its round trips, of which one
// late answer is no measure.
func TestP24_WhatAClientNeedsToCome(t *testing.T) {
	c := &Client{id: "a"}
	for i, step := range []struct {
		roundTrip time.Duration
		ticket    string
	}{
		{0, "a:1"},
		{30 * time.Millisecond, "a:2"},
		{70 * time.Millisecond, "a:3:120"},
		{40 * time.Millisecond, "a:4:120"},
		{time.Hour, "a:5:1000"},
	} {
		if i > 0 {
			c.distance.measured(step.roundTrip)
		}
		locktest.Equal(t, fmt.Sprint("the ticket after ", step.roundTrip), c.newTicket(), step.ticket)
	}
}

// P26: a client leaves the messages of a release to others while it is in the line, as far as Redis has said or a release is to enter it, is
// not the first, and has not been the second for secondListensAfter.
func TestP26_WhoIsInTheLineAndBehind(t *testing.T) {
	for what, c := range map[string]struct {
		becomes        func(p *place) // of placeOf
		inLine, behind bool
	}{
		"no answer so far":                {becomes: func(*place) {}},
		"the answer to another stay":      {becomes: func(p *place) { p.placeKnown("b:9", 7, 1) }},
		"the first":                       {becomes: func(p *place) { p.placeKnown("b:1", 7, 0) }, inLine: true},
		"the third":                       {becomes: func(p *place) { p.placeKnown("b:1", 7, 2) }, inLine: true, behind: true},
		"the second, which is called":     {becomes: func(p *place) { p.placeKnown("b:1", 7, 1); p.onMessage("c b:1 0") }, inLine: true},
		"the second, which was taken out": {becomes: func(p *place) { p.placeKnown("b:1", 7, 1); p.onMessage("d b:1") }},
		"the second, whose channel was away": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			p.channelLost()
		}},
		"the second, which is back": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			p.channelLost()
			p.placeKnown("b:1", 7, 1)
		}, inLine: true, behind: true},
		"the second for a while": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			time.Sleep(secondListensAfter - 1)
			p.placeKnown("b:1", 7, 1)
		}, inLine: true, behind: true},
		"the second for long": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			time.Sleep(secondListensAfter - 1)
			p.placeKnown("b:1", 7, 1)
			time.Sleep(time.Nanosecond)
		}, inLine: true},
		"the second again, and the first between": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			time.Sleep(secondListensAfter)
			p.placeKnown("b:1", 7, 0)
			p.placeKnown("b:1", 7, 1)
		}, inLine: true, behind: true},
		"a new stay, and the second for long in the old one": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			time.Sleep(secondListensAfter)
			p.leave("b:1")
			p.turn(func() string { return "b:2" })
			p.placeKnown("b:2", 9, 1)
		}, inLine: true, behind: true},
		"a release enters it":                {becomes: (*place).entersByRelease, behind: true},
		"a release has entered it":           {becomes: func(p *place) { p.entersByRelease(); p.entered("b:1", 9) }, inLine: true, behind: true},
		"a release has not entered it":       {becomes: func(p *place) { p.entersByRelease(); p.entered("b:1", 0) }},
		"a release has entered another stay": {becomes: func(p *place) { p.entersByRelease(); p.entered("b:9", 9) }},
		"it has left":                        {becomes: func(p *place) { p.placeKnown("b:1", 7, 1); p.leave("b:1") }},
		"another stay has left":              {becomes: func(p *place) { p.placeKnown("b:1", 7, 1); p.leave("b:9") }, inLine: true, behind: true},
		"a new stay, and a release was to enter the old one": {becomes: func(p *place) {
			p.entersByRelease()
			p.leave("b:1")
			p.turn(func() string { return "b:2" })
		}},
		"a new stay, and the channel was away in the old one": {becomes: func(p *place) {
			p.placeKnown("b:1", 7, 1)
			p.channelLost()
			p.leave("b:1")
			p.turn(func() string { return "b:2" })
			p.entered("b:2", 9)
		}, inLine: true, behind: true},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				p := placeOf()
				c.becomes(p)
				locktest.Equal(t, "in the line", p.inLine(), c.inLine)
				locktest.Equal(t, "behind", p.behind(), c.behind)
			})
		})
	}
}

// P22: a client whose channel was away enters with its old place, but not one that was taken out as late, before or after that.
func TestP22_ThePlaceToEnterWith(t *testing.T) {
	const away, late = "", "d b:1"
	for _, c := range []struct {
		heard []string
		place int64
	}{
		{heard: nil},
		{heard: []string{away}, place: 7},
		{heard: []string{away, away}, place: 7},
		{heard: []string{late}},
		{heard: []string{away, late}},
		{heard: []string{late, away}},
	} {
		p := placeOf()
		p.placeKnown("b:1", 7, 0)
		for _, text := range c.heard {
			if text == away {
				p.channelLost()
			} else {
				p.onMessage(text)
			}
		}
		if ticket, place := p.turn(func() string { return "b:2" }); ticket != "b:1" || place != c.place {
			t.Errorf("after %q it enters with %s and place %d, want place %d", c.heard, ticket, place, c.place)
		}
	}
}

// P18, P19: what is said of another stay of the client, or says nothing, changes nothing. A call for another stay is one that the client is to
// pass on.
func TestP19_MessagesOfAnotherStay(t *testing.T) {
	for text, ghost := range map[string]string{
		"": "", "c": "", "c b:9 0": "b:9", "w b:9 a:1": "", "w b:9 a:1 1": "", "n b:9": "", "a b:9": "", "d b:9": "",
		"x b:1": "", "c b:1": "", "w b:1": "",
	} {
		p := placeOf()
		p.placeKnown("b:1", 7, 1)
		p.watchUnlessAlive("a:1", "", p.alive())
		locktest.Equal(t, text+": to pass on", p.onMessage(text), ghost)
		if p.pending() || p.alive() != 0 || !p.inLine() || p.firstFor() != 0 || p.calledTicket != "a:1" {
			t.Errorf("%q has changed the place", text)
		}
	}
}

// What a client has heard is there once. An attempt asks about a call and a lost place: they are no news any more when the attempt is sent.
func TestNoticesOfAPlace(t *testing.T) {
	p := placeOf()
	p.onMessage("w b:1 a:1")
	p.onMessage("n b:1")
	p.onMessage("c b:1 3") // and so nobody is to be watched
	locktest.Equal(t, "pending", p.pending(), true)
	n, _ := p.takeNotice()
	locktest.Equal(t, "heard", n, notice{called: true, listeners: 3, moved: true})
	locktest.Equal(t, "pending when it was taken", p.pending(), false)

	fresh := func() string { return "b:2" }
	p.onMessage("c b:1 0")
	p.turn(fresh)
	locktest.Equal(t, "pending after an attempt", p.pending(), false)
	p.leaveToNext()
	p.onMessage("n b:1")
	p.turn(fresh)
	n, _ = p.takeNotice()
	locktest.Equal(t, "heard before an attempt", n, notice{moved: true})
	p.leave("b:1")
	p.leaveToNext()
	locktest.Equal(t, "pending without a place", p.pending(), false)
}

// P32: a client that is behind the second in the line of a free lock looks after twice its last stay, within 10 polls. A leave without a ticket, or with
// another one, is no stay.
func TestP32_TheLastStay(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		p := new(place)
		fresh := func() string { return "b:1" }
		p.leave("")
		locktest.Equal(t, "given up without a ticket", p.giveUp(), "")
		locktest.Equal(t, "before the first stay", p.watchFromBehind(time.Second), 2*calledTimeout)
		for _, stay := range []time.Duration{3 * time.Second, 2 * time.Second, time.Millisecond, time.Hour} {
			p.turn(fresh)
			locktest.Sleep(stay)
			p.turn(fresh) // another attempt of the same stay
			locktest.Equal(t, "given up", p.giveUp(), "b:1")
			locktest.Sleep(time.Second)
			p.leave("")
			p.leave("b:1")
			locktest.Equal(t, "given up again", p.giveUp(), "")
			locktest.Equal(t, "it looks after", p.watchFromBehind(time.Second), min(max(2*stay, 2*calledTimeout), 10*time.Second))
		}
	})
}

// P27: a client that was called leaves the lock to outsiders where others than itself have heard of the release, and not again in a stay in
// which it was called in vain. For a second after that it is beside outsiders.
func TestP27_WhenAClientYields(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		p := placeOf()
		yields := func(what string, listeners, known int, want time.Duration) {
			t.Helper()
			locktest.Equal(t, what, p.yieldFor(notice{called: true, listeners: listeners}, known), want)
		}
		yields("nobody heard", 0, 0, 0)
		yields("only this client heard", 1, 1, 0)
		yields("another one heard", 1, 0, yieldTime)
		yields("another one heard too", 2, 1, yieldTime)
		locktest.Equal(t, "beside outsiders", p.besideOutsiders(), false)
		locktest.Sleep(time.Millisecond)
		p.calledInVain()
		yields("it was called in vain in this stay", 1, 0, 0)
		locktest.Equal(t, "beside outsiders then", p.besideOutsiders(), true)
		locktest.Sleep(time.Millisecond)
		p.leave("b:1")
		p.turn(func() string { return "b:2" })
		yields("it was called in vain in another stay", 1, 0, yieldTime)
		locktest.Sleep(maxNoYield - 2*time.Millisecond)
		locktest.Equal(t, "beside outsiders for a while", p.besideOutsiders(), true)
		locktest.Sleep(time.Millisecond)
		locktest.Equal(t, "beside outsiders after a second", p.besideOutsiders(), false)
		for range maxUnusedYields + 1 {
			yields("the last yields may have been used", 1, 0, yieldTime)
			p.yieldEnded(false)
		}
		yields("none was used", 1, 0, 0)
	})
}
