package scripts

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// confirmedOrNot are the ways in which a change may travel in a cluster. The confirmation is one that no replica is
// needed for.
func confirmedOrNot(t *testing.T, rdb *redis.ClusterClient, run func(t *testing.T, s *Scripts)) {
	for what, confirm := range map[string]bool{"plain": false, "confirmed": true} {
		t.Run(what, func(t *testing.T) {
			s := New(rdb)
			if confirm {
				s.Confirm(Confirmation{Timeout: time.Second})
			}
			run(t, s)
		})
	}
}

// P14: a slot is on its way to another node, and so are some of its locks: a script for those and the others is refused
// (TRYAGAIN), and each is renewed where it is. One that is gone is gone.
func TestP14_ASlotThatMovesEndsNoHold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for _, n := range []int{2, maxScript + 3} {
		t.Run(fmt.Sprint(n, " holds"), func(t *testing.T) {
			tag := newKeys(t).Lock
			holds := make([]Renewal, n)
			for i := range holds {
				holds[i] = Renewal{Keys: KeysOf(fmt.Sprintf("{%s}-%d", tag, i)), Field: newField(), Lease: time.Hour}
				if a, err := New(c.rdb).Do(t.Context(), Acquire(holds[i].Keys, false, holds[i].Field, lease)); err != nil || !a.Held {
					t.Fatalf("%+v, %v", a, err)
				}
			}
			c.migrate(holds[0].Keys, holds[0].Keys.Lock, holds[n-1].Keys.Lock)
			long := time.Hour
			confirmedOrNot(t, c.rdb, func(t *testing.T, s *Scripts) {
				for range 2 { // the node that gets the slot knows the script the second time
					long += time.Hour
					for i := range holds {
						holds[i].Lease = long
					}
					s.Renew(t.Context(), holds)
					for i, h := range holds {
						if h.Err != nil {
							t.Errorf("hold %d of %d: renew says %v", i, n, h.Err)
						} else if left := c.rdb.PTTL(t.Context(), h.Keys.Lock).Val(); left < long-time.Minute {
							t.Errorf("hold %d of %d lasts for %v", i, n, left)
						}
					}
				}
				gone := []Renewal{holds[0], {Keys: holds[0].Keys, Field: newField(), Lease: lease}, holds[1]}
				s.Renew(t.Context(), gone)
				if gone[0].Err != nil || !errors.Is(gone[1].Err, ErrGone) || gone[2].Err != nil {
					t.Errorf("of three holds, of which one is gone, renew says %v, %v, %v", gone[0].Err, gone[1].Err, gone[2].Err)
				}
				if s.single.Load() {
					t.Error("what passes is remembered")
				}
			})
		})
	}
}

// P14: of acquires that are sent together in a slot that moves each gets what it would get alone. Where all are of keys
// that are nowhere yet, the old node sends them to the new one, and that refuses them together (TRYAGAIN).
func TestP14_ASlotThatMovesFailsNoBatch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	tag := newKeys(t).Lock
	of := func(n int) *Keys { return KeysOf(fmt.Sprintf("{%s}-%d", tag, n)) }
	held := newField()
	for i := range 2 {
		if a, err := New(c.rdb).Do(t.Context(), Acquire(of(i), false, held, lease)); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	c.migrate(of(0), of(0).Lock)
	next := 2
	confirmedOrNot(t, c.rdb, func(t *testing.T, s *Scripts) {
		for what, held := range map[string][]Op{
			"new ones":    nil,
			"moved":       {Acquire(of(0), false, held, lease)},
			"not yet":     {Acquire(of(1), false, held, lease)},
			"one of each": {Acquire(of(0), false, held, lease), Acquire(of(1), false, held, lease)},
		} {
			ops := held
			for len(ops) < 32 {
				ops = append(ops, Acquire(of(next), false, newField(), lease))
				next++
			}
			for _, far := range []Op{{}, Acquire(newKeys(t), true, newField(), lease)} { // one slot, or more
				ops := ops
				if far.kind != nil {
					ops = append(ops[:31:31], far)
				}
				for i, o := range together(s, ops...) {
					if o.err != nil || !o.Held {
						t.Errorf("%s: op %d hears %+v", what, i, o)
					}
				}
			}
			if a, err := s.Do(t.Context(), ops[0]); err != nil || !a.Held {
				t.Errorf("%s: one alone: %+v, %v", what, a, err)
			}
		}
	})
}

// P14: a lock in a slot that moves, whose key is still at the old node: who waits for it is told what it is told at other times,
// and it is released. Its line, which may be nowhere yet, is left out meanwhile: the old node refuses what needs keys that are
// here and others that are not (TRYAGAIN).
func TestP14_ASlotThatMovesAndTheLine(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	tag := newKeys(t).Lock
	keys := KeysOf(fmt.Sprintf("{%s}-held", tag))
	n := 0
	confirmedOrNot(t, c.rdb, func(t *testing.T, s *Scripts) {
		field := newField()
		if a, err := s.Do(t.Context(), Acquire(keys, false, field, lease)); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
		if n++; n == 1 {
			c.migrate(keys)
		}
		for _, op := range []Op{
			Acquire(keys, false, newField(), lease).InTurn(Turn{}),
			Acquire(keys, false, newField(), lease).InTurn(Turn{Ticket: "a:1"}),
		} {
			if a, err := s.Do(t.Context(), op); err != nil || a.Held || a.TTL <= 0 || a.Before != NotInLine || a.Outside != 0 {
				t.Errorf("alone: %+v, %v", a, err)
			}
			for i, o := range together(s, op, op) {
				if o.err != nil || o.Held || o.TTL <= 0 || o.Before != NotInLine {
					t.Errorf("op %d hears %+v", i, o)
				}
			}
		}
		for _, op := range []Op{Unlock(keys, field, true).Calling("", 0), Unlock(keys, field, true).Calling("a:1", 1)} {
			if a, err := s.Do(t.Context(), op); err != nil || a.Outside != 0 {
				t.Errorf("a release: %+v, %v", a, err)
			}
		}
		if state, err := s.Inspect(t.Context(), keys, field); err != nil || state.Locked {
			t.Errorf("it is not released: %+v, %v", state, err)
		}
	})
}

// P14: the right to one lock's key was taken away: the others are renewed.
func TestP14_AForbiddenKeyEndsNoOtherHold(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	admin := server.Client()
	for _, n := range []int{3, maxScript + 3} {
		for _, confirm := range []bool{false, true} {
			holds := held(t, admin, n)
			prefix := fmt.Sprintf("allowed-%d-%v", n, confirm)
			for i := range holds {
				if i == 1 {
					continue
				}
				name := fmt.Sprint(prefix, i)
				if err := admin.Rename(t.Context(), holds[i].Keys.Lock, name).Err(); err != nil {
					t.Fatal(err)
				}
				holds[i].Keys = KeysOf(name)
			}
			as(t, server, prefix, "~"+prefix+"*", "+@all")
			s := New(server.Client(func(o *redis.Options) { o.Username, o.Password = prefix, "secret" }))
			if confirm {
				s.Confirm(Confirmation{Timeout: time.Second})
			}
			for range 2 {
				s.Renew(t.Context(), holds)
				judge(t, holds[1].Err, false, false)
				mustBeRenewed(t, admin, append(holds[:1:1], holds[2:]...))
			}
			if s.single.Load() {
				t.Error("a right that is missing is remembered")
			}
		}
	}
}

// P54: the slot of a semaphore moves, and a part of its keys is at the new node. No permit is given there whose slot somebody has at the old node, none is
// released there that is at the old one, and no script stops in the middle.
func TestP54_NoPermitWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	confirmedOrNot(t, c.rdb, func(t *testing.T, s *Scripts) {
		jobs := PermitsOf(newKeys(t).Lock, 3)
		var fields [3]string
		for i := range fields {
			fields[i] = newField()
			if a, err := s.Do(t.Context(), Acquire(jobs, true, fields[i], time.Hour).InTurn(Turn{})); err != nil || a.Slot != i {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		counter := KeysOf(jobs.SlotName(2)).Token
		locktest.NoError(t, c.rdb.ZAdd(t.Context(), jobs.Line, redis.Z{Score: 1, Member: "a:1"}).Err())
		refused := func(when string) {
			t.Helper()
			another := newField()
			ops := []Op{
				Acquire(jobs, true, another, lease), Acquire(jobs, false, another, lease),
				Acquire(jobs, true, another, lease).InTurn(Turn{}), Acquire(jobs, true, another, lease).InTurn(Turn{Ticket: "b:1"}),
				Unlock(jobs, fields[0], false), Unlock(jobs, fields[0], false).Calling("", 0), Leave(jobs, "a:1", false),
			}
			for i, op := range ops {
				if a, err := s.Do(t.Context(), op); !split(err) {
					t.Errorf("%s: op %d hears %+v, %v", when, i, a, err)
				}
			}
			for i, o := range together(s, ops...) {
				if !split(o.err) {
					t.Errorf("%s: op %d of a batch hears %+v", when, i, o)
				}
			}
		}
		more, finish := c.migrate(jobs)
		refused("none of the keys has moved")
		more(jobs.SlotName(2), jobs.Line, counter)
		refused("the last slot has moved")
		more()
		refused("all keys have moved")
		finish()
		for i, field := range fields {
			if state, err := s.Inspect(t.Context(), KeysOf(jobs.SlotName(i)), field); err != nil || state.Count != 1 {
				t.Errorf("slot %d: %+v, %v", i, state, err)
			}
		}
		if a, err := s.Do(t.Context(), Unlock(jobs, fields[1], false).Calling("", 0)); err != nil || !a.Held {
			t.Errorf("a release when the slot has moved: %+v, %v", a, err)
		}
	})
}

// P54: the slot of a read-write lock moves, and the keys of those that read are not where its hash is. Nobody writes beside them, no renewal says that one is
// gone, and no release takes the others' hold with it.
func TestP54_NoWriterWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	confirmedOrNot(t, c.rdb, func(t *testing.T, s *Scripts) {
		name := newKeys(t).Lock
		read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
		fields := [2]string{newField(), newField()}
		for _, field := range fields {
			if a, err := s.Do(t.Context(), Acquire(read, true, field, time.Hour)); err != nil || !a.Held {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		locktest.NoError(t, c.rdb.ZAdd(t.Context(), read.Line, redis.Z{Score: 1, Member: "aw:1"}).Err())
		renewal := func() error {
			holds := []Renewal{{Keys: read, Field: fields[0], Lease: 2 * time.Hour}, {Keys: read, Field: fields[1], Lease: 2 * time.Hour}}
			s.Renew(t.Context(), holds)
			return errors.Join(holds[0].Err, holds[1].Err)
		}
		refused := func(when string) {
			t.Helper()
			ops := []Op{
				Acquire(write, true, write.FieldOf(newField()), lease), Acquire(read, false, newField(), lease),
				Acquire(write, true, write.FieldOf(newField()), lease).InTurn(Turn{}), Acquire(write, true, write.FieldOf(newField()), lease).InTurn(Turn{Ticket: "bw:1"}),
				Unlock(read, fields[0], false), Unlock(read, fields[0], false).Calling("", 0), Leave(read, "aw:1", false),
			}
			for i, op := range ops {
				if a, err := s.Do(t.Context(), op); !split(err) {
					t.Errorf("%s: op %d hears %+v, %v", when, i, a, err)
				}
			}
			for i, o := range together(s, ops...) {
				if !split(o.err) {
					t.Errorf("%s: op %d of a batch hears %+v", when, i, o)
				}
			}
			if state, err := s.InspectReadWrite(t.Context(), read, fields[0]); !split(err) {
				t.Errorf("%s: inspect says %+v, %v", when, state, err)
			}
		}
		more, finish := c.migrate(read)
		refused("none of the keys has moved")
		locktest.NoError(t, renewal())
		more(name, read.Line, read.Token)
		refused("the hash has moved")
		if err := renewal(); errors.Is(err, ErrGone) || !Passing(err) {
			t.Errorf("a renewal of holds whose keys are at both nodes: %v", err)
		}
		more()
		refused("all keys have moved")
		locktest.NoError(t, renewal())
		finish()
		for _, field := range fields {
			if state, err := s.InspectReadWrite(t.Context(), read, field); err != nil || state.Count != 1 {
				t.Errorf("%s: %+v, %v", field, state, err)
			}
		}
		redistest.Eventually(t, 30*time.Second, func() bool { return renewal() == nil }, "the holds are renewed at the new node") // the client learns of that
		if a, err := s.Do(t.Context(), Unlock(read, fields[1], false).Calling("", 0)); err != nil || !a.Held {
			t.Errorf("a release when the slot has moved: %+v, %v", a, err)
		}
	})
}
