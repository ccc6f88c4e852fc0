package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/quorums"
)

// said is what a server of a test says: whom it names ("-" for nobody, "?" for no answer, "young" for nobody, by a server that does not count), for how many seconds,
// which token, and who waits.
type said struct {
	who     string
	seconds int
	token   int64
	line    string
}

func viewOf(of, home int, all ...said) Lock {
	ids := map[byte]string{}
	id := func(name byte) string {
		if ids[name] == "" {
			ids[name] = quorums.NewID(of)
		}
		return ids[name]
	}
	v := view{name: "l", home: home}
	for i, s := range all {
		p := ServerPart{Server: fmt.Sprint(i), Lock: Lock{Name: "l", Token: s.token, Waiting: len(s.line)}}
		for _, w := range []byte(s.line) {
			p.Lock.Line = append(p.Lock.Line, Waiter{Client: string(w)})
		}
		switch s.who {
		case "?":
			p = ServerPart{Server: p.Server, Err: errors.New("no answer")}
		case "-", "young":
		default:
			p.Lock.Holder = &Holder{Field: s.who, Client: id(s.who[0])}
			p.Lock.Quorum = of
			if p.Lock.TTL = time.Duration(s.seconds) * time.Second; s.seconds < 0 {
				p.Lock.TTL = NoExpiry
			}
		}
		v.parts, v.counts = append(v.parts, p), append(v.counts, s.who != "?" && s.who != "young")
	}
	return v.lock()
}

// The majority of the quorum's servers says who has the lock, and for how long it has it; otherwise it is free, or nobody can say.
func TestMajority(t *testing.T) {
	free, away, young := said{who: "-"}, said{who: "?"}, said{who: "young"}
	a := func(seconds int) said { return said{who: "a", seconds: seconds, token: 7} }
	b := said{who: "b", seconds: 50, token: 9}
	for name, c := range map[string]struct {
		of      int
		all     []said
		who     string
		ttl     time.Duration
		token   int64
		unknown string
		part    bool
	}{
		"on all":                          {5, []said{a(10), a(20), a(30), a(40), a(50)}, "a", 30 * time.Second, 7, "", false},
		"on three":                        {5, []said{a(30), free, a(10), b, a(20)}, "a", 10 * time.Second, 7, "", false},
		"without a lease on two of three": {5, []said{a(-1), a(9), a(-1), free, free}, "a", 9 * time.Second, 7, "", false},
		"without a lease":                 {5, []said{a(-1), a(-1), a(-1), a(9), free}, "a", NoExpiry, 7, "", false},
		"also on one that is young":       {3, []said{a(10), a(20), young}, "a", 10 * time.Second, 7, "", false},
		"free":                            {5, []said{free, free, free, free, free}, "", 0, 0, "", false},
		"left on two":                     {5, []said{a(10), a(10), free, free, free}, "", 0, 7, "", false},
		"split":                           {5, []said{a(10), a(10), b, b, free}, "", 0, 9, "", false},
		"split, and one away":             {5, []said{a(10), a(10), b, b, away}, "", 0, 9, "may have it too", false},
		"left on one, and one away":       {5, []said{a(10), free, free, free, away}, "", 0, 7, "", false},
		"left on two, and one forgot":     {5, []said{a(10), a(10), free, free, young}, "", 0, 7, "may have it too", false},
		"two answer":                      {5, []said{a(10), free, away, away, away}, "", 0, 7, "2 of 5 servers answer and count, 3 are needed", false},
		"half of four":                    {4, []said{a(10), a(10), free, free}, "", 0, 7, "", false},
		"two of three were asked":         {3, []said{a(10), a(20)}, "a", 10 * time.Second, 7, "", true},
		"two of five were asked":          {5, []said{a(10), a(20)}, "", 0, 7, "2 of 5 servers answer and count", true},
	} {
		l := viewOf(c.of, 0, c.all...)
		who := ""
		if l.Holder != nil {
			who = l.Holder.Field
		}
		if who != c.who || l.TTL != c.ttl || l.Token != c.token || (l.Unknown == "") != (c.unknown == "") || !strings.Contains(l.Unknown, c.unknown) || l.IsPart() != c.part || len(l.Servers) != len(c.all) {
			t.Errorf("%s: %q, %v, token %d, unknown: %q, part: %v", name, who, l.TTL, l.Token, l.Unknown, l.IsPart())
		}
	}
}

// Who waits at the home comes first, and then who waits elsewhere; nobody twice.
func TestLineOfAQuorum(t *testing.T) {
	l := viewOf(3, 1, said{who: "-", line: "xa"}, said{who: "-", line: "abc"}, said{who: "?"})
	var line []string
	for _, w := range l.Line {
		line = append(line, w.Client)
	}
	if !slices.Equal(line, []string{"a", "b", "c", "x"}) || l.Waiting != 4 || !l.Servers[1].Home || l.Servers[0].Home {
		t.Errorf("%q, %d wait", line, l.Waiting)
	}
}
