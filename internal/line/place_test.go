package line

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/scripts"
)

// A visit is a place in a test, and the time there.
type visit struct {
	*Place
	now     time.Time
	tickets int
}

// visitor returns a place whose client has the ticket b:1, and no answer of Redis about it.
func visitor() *visit {
	v := &visit{Place: new(Place), now: time.Unix(1_700_000_000, 0)}
	v.turn()
	return v
}

func (v *visit) fresh() string {
	v.tickets++
	return fmt.Sprint("b:", v.tickets)
}

// turn sends an attempt.
func (v *visit) turn() scripts.Turn { return v.Turn(v.now, true, v.fresh) }

func (v *visit) after(d time.Duration) { v.now = v.now.Add(d) }

// held is an answer: the lock is held, and so many clients are before this one.
func (v *visit) held(before int) (time.Duration, Listening) {
	return v.Refused(v.now, &scripts.Answer{TTL: time.Minute, Score: 7, Before: before}, time.Second, false)
}

// isFree is an answer: it is the turn of the client with this ticket, and so many clients are
// before this one.
func (v *visit) isFree(head string, before int) time.Duration {
	after, _ := v.Refused(v.now, &scripts.Answer{TTL: scripts.NoKey, Score: 7, Before: before, Head: head}, time.Second, false)
	return after
}

func (v *visit) hear(text string) string { return v.Hear(v.now, text) }

func (v *visit) heed(own int) (Reaction, time.Duration) { return v.Heed(v.now, own) }

// P24: a first one that says that it lives right behind its call is not watched, whichever of the
// two the second acts on first.
func TestP24_AliveBeforeTheCallIsActedOn(t *testing.T) {
	v := visitor()
	v.held(1)
	v.hear("w b:1 a:1")
	v.hear("a b:1")
	does, _ := v.heed(0)
	locktest.Equal(t, "what it does about one that lives", does, Nothing)
	v.hear("w b:1 a:1")
	does, after := v.heed(0)
	locktest.Equal(t, "what it does about one that was called anew", does, Watch)
	locktest.Equal(t, "for how long", after, CalledTimeout)
	v.after(CalledTimeout)
	locktest.Equal(t, "whom it takes out then", v.turn().Stale, "a:1")
}

// P24: an answer to an attempt that was sent before the first one has said that it lives is no
// reason to watch it; a later answer is.
func TestP24_AliveBeforeAnOldAnswer(t *testing.T) {
	v := visitor()
	v.hear("a b:1")
	v.isFree("a:1", 1)
	v.after(CalledTimeout)
	locktest.Equal(t, "whom it takes out after an old answer", v.turn().Stale, "")
	v.isFree("a:1", 1)
	v.after(CalledTimeout)
	locktest.Equal(t, "whom it takes out after a later one", v.turn().Stale, "a:1")
}

// P24: a called client has CalledTimeout from when this one knows of the call. The time begins
// again for another client, for the same one where that was to be taken out and is called still,
// and for one that a message says is called anew.
func TestP24_TheTimeOfACalledClient(t *testing.T) {
	v := visitor()
	step := func(what, head string, left time.Duration) {
		t.Helper()
		locktest.Equal(t, what+": left", v.isFree(head, 1), left)
	}
	late := func(what, want string) {
		t.Helper()
		locktest.Equal(t, what+": late", v.turn().Stale, want)
	}
	step("it learns of the call", "a:1", CalledTimeout)
	late("at once", "")
	v.after(60 * time.Millisecond)
	step("it hears of it again", "a:1", 40*time.Millisecond)
	v.after(40 * time.Millisecond)
	step("the time is over", "a:1", time.Millisecond)
	late("the time is over", "a:1")
	step("it was to be taken out", "a:1", CalledTimeout)
	v.after(60 * time.Millisecond)
	step("another one is called", "c:1", CalledTimeout)
	v.after(CalledTimeout)
	late("another one is called", "c:1")
	v.isFree("c:1", 2)
	late("for one behind the second", "")
	step("it is the second again", "c:1", CalledTimeout)
	v.held(2)
	v.after(CalledTimeout)
	late("where the lock is held", "")

	v.isFree("c:1", 1)
	v.after(60 * time.Millisecond)
	v.hear("w b:1 c:1")
	_, after := v.heed(0)
	locktest.Equal(t, "left after a message about the same call", after, 40*time.Millisecond)
	v.hear("w b:1 c:1 1")
	_, after = v.heed(0)
	locktest.Equal(t, "left after a message about another one", after, CalledTimeout)
	v.after(CalledTimeout)
	v.held(1)
	late("where the second finds the lock held", "c:1")
	v.Leave(v.now, "b:1")
	late("in another stay", "")
}

// P24: a called client that is far from Redis, which its ticket says, has longer to come, and a
// second at most.
func TestP24_TheTimeOfAFarClient(t *testing.T) {
	for ticket, time := range map[string]time.Duration{
		"a:1": CalledTimeout, "a:1:30": CalledTimeout, "a:1:360": 360 * time.Millisecond, "a:1:1000": time.Second, "a:1:99999999999": time.Second,
		"a:1:x": CalledTimeout, "a:1:-5": CalledTimeout, "a:1:": CalledTimeout, "a": CalledTimeout,
	} {
		v := visitor()
		locktest.Equal(t, ticket+": left", v.isFree(ticket, 1), time)
		v.after(time - 1)
		locktest.Equal(t, ticket+": late", v.turn().Stale, "")
		v.after(1)
		locktest.Equal(t, ticket+": late then", v.turn().Stale, ticket)
		v.hear("a b:1")
		locktest.Equal(t, ticket+": left after it has said that it is alive", v.isFree(ticket, 1), time)
	}
}

// P24: a client says in its tickets how long it needs to come, where that is longer than
// CalledTimeout: three of its round trips, of which one late answer is no measure.
func TestP24_WhatAClientNeedsToCome(t *testing.T) {
	var d Distance
	for i, step := range []struct {
		roundTrip time.Duration
		ticket    string
	}{
		{0, "a:1"},
		{30 * time.Millisecond, "a:1"},
		{70 * time.Millisecond, "a:1:120"},
		{40 * time.Millisecond, "a:1:120"},
		{time.Hour, "a:1:1000"},
	} {
		if i > 0 {
			d.Measured(step.roundTrip)
		}
		locktest.Equal(t, fmt.Sprint("the ticket after ", step.roundTrip), d.Ticket("a:1"), step.ticket)
	}
}

// P26: a client leaves the messages of a release to others while it is in the line, as far as Redis
// has said or a release is to enter it, is not the first, and has not been the second for
// secondListensAfter.
func TestP26_WhoIsInTheLineAndBehind(t *testing.T) {
	byRelease := func(v *visit) { v.EnterByRelease(v.now, v.fresh) }
	for what, c := range map[string]struct {
		becomes        func(v *visit) // of visitor
		inLine, behind bool
	}{
		"no answer so far":                {becomes: func(*visit) {}},
		"the first":                       {becomes: func(v *visit) { v.held(0) }, inLine: true},
		"the third":                       {becomes: func(v *visit) { v.held(2) }, inLine: true, behind: true},
		"the second, which is called":     {becomes: func(v *visit) { v.held(1); v.hear("c b:1 0") }, inLine: true},
		"the second, which was taken out": {becomes: func(v *visit) { v.held(1); v.hear("d b:1") }},
		"the second, whose channel was away": {becomes: func(v *visit) {
			v.held(1)
			v.ChannelLost()
		}},
		"the second, which is back": {becomes: func(v *visit) {
			v.held(1)
			v.ChannelLost()
			v.held(1)
		}, inLine: true, behind: true},
		"the second for a while": {becomes: func(v *visit) {
			v.held(1)
			v.after(secondListensAfter - 1)
			v.held(1)
		}, inLine: true, behind: true},
		"the second for long": {becomes: func(v *visit) {
			v.held(1)
			v.after(secondListensAfter - 1)
			v.held(1)
			v.after(1)
		}, inLine: true},
		"the second again, and the first between": {becomes: func(v *visit) {
			v.held(1)
			v.after(secondListensAfter)
			v.held(0)
			v.held(1)
		}, inLine: true, behind: true},
		"a new stay, and the second for long in the old one": {becomes: func(v *visit) {
			v.held(1)
			v.after(secondListensAfter)
			v.Leave(v.now, "b:1")
			v.turn()
			v.held(1)
		}, inLine: true, behind: true},
		"a release enters it":                {becomes: byRelease, behind: true},
		"a release has entered it":           {becomes: func(v *visit) { byRelease(v); v.EnteredByRelease("b:1", 9) }, inLine: true, behind: true},
		"a release has not entered it":       {becomes: func(v *visit) { byRelease(v); v.EnteredByRelease("b:1", 0) }},
		"a release has entered another stay": {becomes: func(v *visit) { byRelease(v); v.EnteredByRelease("b:9", 9) }},
		"it has left":                        {becomes: func(v *visit) { v.held(1); v.Leave(v.now, "b:1") }},
		"another stay has left":              {becomes: func(v *visit) { v.held(1); v.Leave(v.now, "b:9") }, inLine: true, behind: true},
		"a new stay, and a release was to enter the old one": {becomes: func(v *visit) {
			byRelease(v)
			v.Leave(v.now, "b:1")
			v.turn()
		}},
		"a new stay, and the channel was away in the old one": {becomes: func(v *visit) {
			v.held(1)
			v.ChannelLost()
			v.Leave(v.now, "b:1")
			v.turn()
			v.EnteredByRelease("b:2", 9)
		}, inLine: true, behind: true},
	} {
		t.Run(what, func(t *testing.T) {
			v := visitor()
			c.becomes(v)
			locktest.Equal(t, "in the line", v.InLine(), c.inLine)
			locktest.Equal(t, "behind", v.Behind(v.now), c.behind)
		})
	}
}

// P26: a client that is in the line enters by no release; one that has left it enters with a new
// ticket, and with its own where its place is not known.
func TestP26_TheTicketOfARelease(t *testing.T) {
	v := visitor()
	locktest.Equal(t, "whose place is not known", v.EnterByRelease(v.now, v.fresh), "b:1")
	v.held(3)
	locktest.Equal(t, "in the line", v.EnterByRelease(v.now, v.fresh), "")
	v.Leave(v.now, "b:1")
	locktest.Equal(t, "out of the line", v.EnterByRelease(v.now, v.fresh), "b:2")
}

// P22: a client whose channel was away enters with its old place, but not one that was taken out as
// late, before or after that.
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
		v := visitor()
		v.held(0)
		for _, text := range c.heard {
			if text == away {
				v.ChannelLost()
			} else {
				v.hear(text)
			}
		}
		if turn := v.turn(); turn.Ticket != "b:1" || turn.Score != c.place {
			t.Errorf("after %q it enters with %s and place %d, want place %d", c.heard, turn.Ticket, turn.Score, c.place)
		}
	}
}

// P31: a client that would not hear a call enters no line.
func TestP31_WhoDoesNotHearEntersNoLine(t *testing.T) {
	p := new(Place)
	locktest.Equal(t, "the ticket", p.Turn(time.Now(), false, func() string { return "b:1" }).Ticket, "")
	locktest.Equal(t, "it has entered", p.Entered(), false)
	locktest.Equal(t, "the ticket of one that hears", p.Turn(time.Now(), true, func() string { return "b:1" }).Ticket, "b:1")
	locktest.Equal(t, "it has entered then", p.Entered(), true)
}

// P18, P19: what is said of another stay of the client, or says nothing, changes nothing. A call
// for another stay is one that the client is to pass on.
func TestP19_MessagesOfAnotherStay(t *testing.T) {
	for text, ghost := range map[string]string{
		"": "", "c": "", "c b:9 0": "b:9", "w b:9 a:1": "", "w b:9 a:1 1": "", "n b:9": "", "a b:9": "", "d b:9": "",
		"x b:1": "", "c b:1": "", "w b:1": "",
	} {
		v := visitor()
		v.isFree("a:1", 1)
		before := *v.Place
		locktest.Equal(t, text+": to pass on", v.hear(text), ghost)
		if *v.Place != before {
			t.Errorf("%q has changed the place", text)
		}
	}
}

// What a client has heard is there once. An attempt asks about a call and a lost place: they are no
// news any more when the attempt is sent.
func TestNoticesOfAPlace(t *testing.T) {
	v := visitor()
	v.hear("w b:1 a:1")
	v.hear("n b:1")
	v.hear("c b:1 0") // and so nobody is to be watched
	locktest.Equal(t, "pending", v.Pending(), true)
	does, _ := v.heed(0)
	locktest.Equal(t, "what it does", does, Ask)
	locktest.Equal(t, "pending when it was heeded", v.Pending(), false)

	v.hear("c b:1 0")
	v.turn()
	locktest.Equal(t, "pending after an attempt", v.Pending(), false)
	v.hear("n b:1")
	v.turn()
	does, after := v.heed(0)
	locktest.Equal(t, "what it does about what is no news", does, Watch)
	locktest.Equal(t, "for how long", after, FirstListensAfter)
	v.Leave(v.now, "b:1")
	locktest.Equal(t, "pending without a place", v.Pending(), false)
	does, _ = v.heed(0)
	locktest.Equal(t, "what it does without a notice", does, Nothing)
}

// P18: an attempt is a look where nothing was heard, and the client has waited for its time.
func TestP18_WhatIsALook(t *testing.T) {
	v := visitor()
	v.held(1)
	v.Due(false)
	locktest.Equal(t, "an attempt whose time has come", v.turn().Look, true)
	locktest.Equal(t, "the next one", v.turn().Look, false)
	v.hear("c b:1 0")
	v.heed(0)
	locktest.Equal(t, "after a call", v.turn().Look, false)
	v.Due(true)
	locktest.Equal(t, "after a yield", v.turn().Look, false)
}

// P32: a client that is behind the second in the line of a free lock looks after twice its last
// stay, within 10 polls. A leave without a ticket, or with another one, is no stay.
func TestP32_TheLastStay(t *testing.T) {
	v := &visit{Place: new(Place), now: time.Unix(1_700_000_000, 0)}
	v.Leave(v.now, "")
	locktest.Equal(t, "given up without a ticket", v.GiveUp(v.now), "")
	v.turn()
	locktest.Equal(t, "before the first stay", v.isFree("a:1", 2), 2*CalledTimeout)
	for i, stay := range []time.Duration{3 * time.Second, 2 * time.Second, time.Millisecond, time.Hour} {
		ticket := fmt.Sprint("b:", i+1)
		v.turn()
		v.after(stay)
		v.turn() // another attempt of the same stay
		locktest.Equal(t, "given up", v.GiveUp(v.now), ticket)
		v.after(time.Second)
		v.Leave(v.now, "")
		v.Leave(v.now, ticket)
		locktest.Equal(t, "given up again", v.GiveUp(v.now), "")
		v.turn()
		locktest.Equal(t, "it looks after", v.isFree("a:1", 2), min(max(2*stay, 2*CalledTimeout), 10*time.Second))
	}
}

// P24, P32: a client behind the second, whose look has had those before it asked for a sign of
// life, looks again when their time is over.
func TestP24_BehindTheSecondAfterALook(t *testing.T) {
	v := visitor()
	v.Due(false)
	v.turn()
	locktest.Equal(t, "it waits", v.isFree("a:1", 2), CalledTimeout+time.Millisecond)
	v.after(CalledTimeout)
	locktest.Equal(t, "Redis knows who is late", v.turn().Stale, "")
}

// P25: who listens on the lock's own channel too.
func TestP25_WhoListens(t *testing.T) {
	for what, c := range map[string]struct {
		becomes func(v *visit) // of visitor
		before  int
		soon    bool
		want    Listening
	}{
		"the first":                          {becomes: func(*visit) {}, want: AsBefore},
		"the first for a while":              {becomes: func(v *visit) { v.held(0); v.after(FirstListensAfter) }, want: Listens},
		"the first, whose call ends soon":    {becomes: func(*visit) {}, soon: true, want: Listens},
		"the first, which is called in vain": {becomes: func(v *visit) { v.hear("c b:1 0"); v.heed(0); v.turn() }, want: Listens},
		"the second":                         {becomes: func(*visit) {}, before: 1, want: Ignores},
		"the second for a while":             {becomes: func(v *visit) { v.held(1); v.after(secondListensAfter) }, before: 1, want: Listens},
		"the third for long":                 {becomes: func(v *visit) { v.held(2); v.after(time.Hour) }, before: 2, want: Ignores},
	} {
		v := visitor()
		c.becomes(v)
		_, got := v.Refused(v.now, &scripts.Answer{TTL: time.Minute, Score: 7, Before: c.before}, time.Second, c.soon)
		locktest.Equal(t, what, got, c.want)
	}
}

// P27: a client that was called leaves the lock to outsiders where others than itself have heard of
// the release, and not again in a stay in which it was called in vain. For a second after that it
// is beside outsiders.
func TestP27_WhenAClientYields(t *testing.T) {
	v := visitor()
	called := func(what string, listeners, own int, does Reaction, after time.Duration) {
		t.Helper()
		v.hear(fmt.Sprint("c ", v.ticket, " ", listeners))
		got, d := v.heed(own)
		locktest.Equal(t, what, got, does)
		locktest.Equal(t, what+": for how long", d, after)
	}
	called("nobody heard", 0, 0, Ask, 0)
	called("only this client heard", 1, 1, Ask, 0)
	called("another one heard", 1, 0, Yield, yieldTime)
	called("another one heard too", 2, 1, Yield, yieldTime)
	locktest.Equal(t, "beside outsiders", v.BesideOutsiders(v.now), false)
	v.after(time.Millisecond)
	v.turn()
	v.held(0)
	called("it was called in vain in this stay", 1, 0, Ask, 0)
	locktest.Equal(t, "beside outsiders then", v.BesideOutsiders(v.now), true)
	v.after(time.Millisecond)
	v.Leave(v.now, "b:1")
	v.turn()
	called("it was called in vain in another stay", 1, 0, Yield, yieldTime)
	v.after(maxNoYield - 2*time.Millisecond)
	locktest.Equal(t, "beside outsiders for a while", v.BesideOutsiders(v.now), true)
	v.after(time.Millisecond)
	locktest.Equal(t, "beside outsiders after a second", v.BesideOutsiders(v.now), false)
	for range maxUnusedYields + 1 {
		called("the last yields may have been used", 1, 0, Yield, yieldTime)
		v.Due(true)
		v.turn()
		v.Taken(v.now)
	}
	called("none was used", 1, 0, Ask, 0)
}

// P27: a call is in vain where the client then finds the lock with a client that is in no line, and
// not where it is another one's turn. A look after that is no call.
func TestP27_ACallIsInVainOnce(t *testing.T) {
	v := visitor()
	vain := func(what string, ago time.Duration, is bool) {
		t.Helper()
		locktest.Equal(t, what, !v.calledInVainAt.IsZero() && v.now.Sub(v.calledInVainAt) == ago, is)
	}
	v.hear("c b:1 0")
	v.heed(0)
	v.turn()
	v.isFree("a:1", 1)
	vain("where it is another one's turn", 0, false)
	v.turn()
	v.held(0)
	vain("where it looks", 0, false)
	v.hear("c b:1 0")
	v.heed(0)
	v.turn()
	v.held(0)
	vain("where another one has the lock", 0, true)
	v.after(time.Second)
	v.turn()
	v.held(0)
	vain("where it looks after that", time.Second, true)
}

// P27: a call that nobody has acted on in its stay is no call of the next stay.
func TestP27_ACallEndsWithItsStay(t *testing.T) {
	v := visitor()
	v.held(0)
	v.hear("c b:1 1")
	v.heed(0) // it yields, and the call of the client gives up
	v.Due(true)
	locktest.Equal(t, "given up", v.GiveUp(v.now), "b:1")
	v.turn()
	_, listening := v.held(0)
	locktest.Equal(t, "beside outsiders", v.BesideOutsiders(v.now), false)
	locktest.Equal(t, "it listens", listening, AsBefore)
	v.hear("c b:2 1")
	does, _ := v.heed(0)
	locktest.Equal(t, "what it does when it is called", does, Yield)
}

// P27: a call is in vain also where the client has heard something else before it asks.
func TestP27_AYieldAndAnotherNotice(t *testing.T) {
	v := visitor()
	v.held(1)
	v.hear("c b:1 1")
	v.heed(0)
	v.hear("n b:1")
	v.heed(0)
	v.Due(false)
	v.turn()
	v.held(0)
	locktest.Equal(t, "beside outsiders", v.BesideOutsiders(v.now), true)
}

// P27: a yield counts once, however many holds the client hands on after it.
func TestP27_AYieldCountsOnce(t *testing.T) {
	v := visitor()
	for range maxUnusedYields {
		v.hear("c b:1 1")
		v.heed(0)
		v.Due(true)
		v.turn()
		v.isFree("a:1", 1)
		v.Taken(v.now)
	}
	locktest.Equal(t, "it may yield again", v.yields.allows(v.now), true)
}

// P7, P30: who is in no line looks ever more rarely while it would hear of a release, each poll at
// a key that never expires, at the end of a lease, and soon where it is to enter the line.
func TestP30_LooksOutsideTheLine(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		what             string
		ttl              time.Duration
		quiet            int
		entering, listen bool
		want             time.Duration
	}{
		{what: "the first time", ttl: time.Minute, listen: true, want: s},
		{what: "after two looks", ttl: time.Minute, quiet: 2, listen: true, want: 4 * s},
		{what: "after many", ttl: time.Minute, quiet: 100, listen: true, want: 10 * s},
		{what: "after many, and it does not hear", ttl: time.Minute, quiet: 100, want: s},
		{what: "at a key that never expires", ttl: scripts.NoExpiry, quiet: 100, listen: true, want: s},
		{what: "at the end of a lease", ttl: 300 * time.Millisecond, quiet: 100, listen: true, want: 301 * time.Millisecond},
		{what: "about to enter the line", ttl: time.Minute, entering: true, want: CalledTimeout},
		{what: "where it is the turn of another one", ttl: scripts.NoKey, quiet: 100, listen: true, want: CalledTimeout},
	} {
		p := new(Place)
		for range c.quiet {
			p.Due(false)
		}
		a := scripts.Answer{TTL: c.ttl, Before: scripts.NotInLine, Head: "a:1"}
		locktest.Equal(t, c.what, p.RefusedOutside(time.Now(), &a, s, c.entering, c.listen), c.want)
	}
}
