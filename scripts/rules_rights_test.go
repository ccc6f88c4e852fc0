package scripts

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P30: whatever command of the line a user may not use, its client does not enter, takes a free lock, and hears that it is without the
// line; alone, and in company, where its neighbours hear nothing of that.
func TestP30_OneCommandRefused(t *testing.T) {
	server := redistest.Real(t)
	for _, command := range []string{"zadd", "zcard", "zrange", "zrank", "zrem", "zscore", "time", "publish"} {
		limited := as(t, server, "no-"+command, "~*", "&*", "+@all", "-"+command)
		for _, company := range []bool{false, true} {
			name := command + " alone"
			if company {
				name = command + " in company"
			}
			t.Run(name, func(t *testing.T) {
				s := newStand(t, server.Client(), limited, "a")
				do := func(op Op) (a Answer) {
					t.Helper()
					if !company {
						return s.do(op)
					}
					other := newKeys(t) // the neighbours: one before, one after
					said := together(s.Scripts, Acquire(other, false, newField(), lease), op, Acquire(other, false, newField(), lease).InTurn(Turn{}))
					if n := said[2]; n.err != nil || n.Outside != 0 || n.Held || said[0].Outside != 0 {
						t.Errorf("the neighbours hear %+v and %+v", said[0], n)
					}
					if said[1].err != nil {
						t.Fatal(said[1].err)
					}
					return said[1].Answer
				}
				full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
				full.mustHold(newField())
				wait := func(ticket, stale string) Answer {
					t.Helper()
					return do(Acquire(s.keys, true, newField(), lease).InTurn(Turn{Ticket: ticket, Stale: stale, Unproven: true}))
				}
				if a := wait("a:1", ""); a.Outside != Forbidden || a.Held || a.Before != NotInLine || a.TTL <= 0 {
					t.Errorf("who waits is told %+v", a)
				}
				s.tickets()
				full.enter("b:1")
				s.free()
				used := command == "zrange" || command == "zrem" || command == "publish" // of these, by who takes a lock before a late first one
				if a := wait("a:2", "b:1"); !a.Held || (a.Outside != 0) != used {
					t.Errorf("whoever asks for the free lock is told %+v", a)
				}
			})
		}
	}
}

// P30: a release works without any right to the line, and says so. So does a leave. A ticket that the release entered is taken out.
func TestP30_ReleaseWithOneCommandRefused(t *testing.T) {
	server := redistest.Real(t)
	for command, used := range map[string]bool{"zadd": true, "zcard": true, "zrange": true, "publish": true, "zrem": false, "zrank": false, "zscore": false} {
		t.Run(command, func(t *testing.T) {
			s := newStand(t, server.Client(), as(t, server, "may-not-"+command, "~*", "&*", "+@all", "-"+command), "", "b", "c")
			full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
			holder := withTurn("x", 3, false)
			full.mustHold(holder)
			full.enter("b:1", "c:1")
			a := s.release(holder, "a:1")
			if !a.Held || (a.Outside != 0) != used || (a.Score == 0) != used {
				t.Errorf("the release says %+v", a)
			}
			mustHash(t, s.direct, s.keys, nil)
			if used {
				s.tickets("b:1", "c:1")
			}
			if used && command != "publish" {
				if a.Receivers != 1 {
					t.Errorf("%d were told on the lock's own channel", a.Receivers)
				}
			}
		})
	}
	t.Run("who may not leave calls nobody", func(t *testing.T) {
		s := newStand(t, server.Client(), as(t, server, "stays", "~*", "&*", "+@all", "-zrem"), "a", "b", "")
		s.queue("a:1", "b:1")
		s.free()
		if a := s.leave("a:1"); a.Outside == 0 || !a.Stays {
			t.Errorf("it is told %+v", a)
		}
		s.hears()
	})
	t.Run("the dead who may not be taken out are passed once", func(t *testing.T) {
		s := newStand(t, server.Client(), as(t, server, "no-end", "~*", "&*", "+@all", "-zrem"))
		full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
		holder := full.queue()
		dead := make([]redis.Z, 700)
		for i := range dead {
			dead[i] = redis.Z{Score: float64(i), Member: "dead:" + strings.Repeat("1", i+1)}
		}
		if err := s.direct.ZAdd(t.Context(), s.keys.Line, dead...).Err(); err != nil {
			t.Fatal(err)
		}
		if a := s.release(holder, ""); !a.Held || a.Outside == 0 || a.More {
			t.Errorf("the release says %+v", a)
		}
	})
}
