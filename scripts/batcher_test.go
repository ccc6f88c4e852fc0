package scripts

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The other tests go by the names of the bounds.
func TestBatcher_TheBoundsAreThosePromised(t *testing.T) {
	if maxOps != 128 || maxInFlight != 2 || maxStalled != 16 || stallAfter != 100*time.Millisecond || manyOps != 8 || maxExtra != 2 || abandonAfter != 5*time.Second {
		t.Errorf("%d ops in a batch, %d batches, %d of them stalled for %v; %d more for %d ops; given up after %v", maxOps, maxInFlight, maxStalled, stallAfter, maxExtra, manyOps, abandonAfter)
	}
}

func TestBatcher_AnOpGoesAloneAndAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		keys, first, second := newKeys(t), newField(), newField()
		began := time.Now()
		for i, op := range []Op{
			Acquire(keys, true, first, lease),
			Level(keys, true, first, lease, 2, 1),
			Transfer(keys, true, second, lease, first),
			Unlock(keys, second, false),
		} {
			mustHear(t, send(s, op))
			if got := g.seen(); len(got) != 1 || !slices.Equal(got[0], []string{op.kind.names[0].(string)}) {
				t.Errorf("op %d went as %v", i, got)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("waiting took %v", took)
		}
	})
}

// Where many wait the server is not to wait for the first batches to be back.
func TestBatcher_ManyDoNotWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := append(fill(t, s, g), sendAcquires(t, s, manyOps-1)...)
		g.mustLeave(t)
		for range maxExtra {
			all = append(all, sendAcquires(t, s, 1)...)
			g.mustLeave(t, manyOps)
			all = append(all, sendAcquires(t, s, manyOps-1)...)
			g.mustLeave(t)
		}
		all = append(all, sendAcquires(t, s, 1)...)
		g.mustLeave(t)
		g.open(maxInFlight + maxExtra)
		mustHear(t, all...)
		if most := g.mostAtOnce(); most != maxInFlight+maxExtra {
			t.Errorf("%d batches were under way at once", most)
		}
		synctest.Wait()
		g.seen()
		mustBeTwo(t, s, g)
	})
}

// Who the last batch has woken may come along with the next one, unless a manyOps waits for it.
func TestBatcher_WhoComesBackComesAlong(t *testing.T) {
	comesBack(t, manyOps-1, func(t *testing.T, s *Scripts, g *gate) *passenger {
		all := append(fill(t, s, g), sendAcquires(t, s, 2)...)
		g.release <- struct{}{}
		g.mustLeave(t, 2)
		return all[1]
	})
}

func TestBatcher_ManyDoNotWaitForWhoComesBack(t *testing.T) {
	comesBack(t, manyOps, func(t *testing.T, s *Scripts, g *gate) *passenger { return fillAll(t, s, g)[0] })
}

// comesBack has so many ops wait while batches are held up, lets the longest go, in which one is alone, and has that one's
// caller send one more. The next batch is to have manyOps. Other goroutines may be chosen by the
// scheduler, though rarely: once in three times is enough.
func comesBack(t *testing.T, waiting int, hold func(*testing.T, *Scripts, *gate) *passenger) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // who is woken runs when the batch lets it
	var seen [][]int
	for range 3 {
		inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
			x := hold(t, s, g)
			next := Acquire(newKeys(t), true, newField(), lease)
			go func() {
				<-x.heard
				send(s, next)
			}()
			sendAcquires(t, s, waiting)
			synctest.Wait()
			g.release <- struct{}{}
			synctest.Wait()
			seen = append(seen, g.sizes())
			g.open(maxInFlight - 1)
		})
		if slices.Equal(seen[len(seen)-1], []int{manyOps}) {
			return
		}
	}
	t.Errorf("the batches had %v ops, want %d once", seen, manyOps)
}

// What comes while all of the batches of many ops hang leaves as soon as it would with two.
func TestBatcher_ManyThatHang(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := append(fillAll(t, s, g), sendAcquires(t, s, 2)...)
		time.Sleep(stallAfter - time.Millisecond)
		g.mustLeave(t)
		time.Sleep(stallAfter + time.Millisecond)
		g.mustLeave(t, 2)
		g.open(maxInFlight + maxExtra + 1)
		mustHear(t, all...)
		mustBeTwo(t, s, g)
	})
}

func TestBatcher_WhatComesMeanwhileGoesTogether(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		first := fillAll(t, s, g)
		rest := sendAcquires(t, s, 3*maxOps+manyOps-1) // at last no manyOps
		g.mustLeave(t)
		for _, want := range [][]int{{maxOps}, {maxOps}, {maxOps}, {}, {}, {manyOps - 1}} {
			g.release <- struct{}{}
			g.mustLeave(t, want...)
		}
		g.open(maxInFlight)
		mustHear(t, append(first, rest...)...)
		for i, x := range rest { // those of a batch are told of its first
			if leader := i - i%maxOps; (x.with == nil) != (i == leader) || x.with != nil && x.with != Caller(rest[leader]) {
				t.Errorf("op %d is told of another batch", i)
			}
		}
		if most := g.mostAtOnce(); most != maxInFlight+maxExtra {
			t.Errorf("%d batches were under way at once", most)
		}
		if synctest.Wait(); len(s.batchers.first.inFlight) != 0 || len(s.batchers.first.waiting) != 0 {
			t.Errorf("at the end %d batches are under way, and %d ops wait", len(s.batchers.first.inFlight), len(s.batchers.first.waiting))
		}
	})
}

// The same without virtual time, over sockets: a proxy keeps the replies to the first batches.
func TestBatcher_AHundredOpsTakeFewCommands(t *testing.T) {
	realtime.Test(t, "batches that do not stall for 100 ms")
	addr := redistest.Start(t)
	load(t, redistest.Client(t, addr))
	proxy := redistest.NewProxy(t, addr)
	s := New(redistest.Client(t, proxy.Addr()))
	g := &gate{}
	s.rdb.AddHook(g)
	var all []*passenger
	for i := range maxInFlight + maxExtra {
		sha, n := acquire.sha, 1
		if i >= maxInFlight {
			sha, n = batched.sha, manyOps
		}
		kept := proxy.On(fmt.Sprint("reply ", i), redistest.Script(sha), redistest.HoldReply)
		all = sendAcquires(t, s, n)
		<-kept.Fired()
		defer kept.Release()
		if i == maxInFlight+maxExtra-1 {
			all = append(all, sendAcquires(t, s, 100)...)
			kept.Release()
		}
	}
	mustHear(t, all...)
	if got := g.sizes(); len(got) > maxInFlight+maxExtra+2 { // one; one more where a stall was seen on a slow machine
		t.Errorf("100 ops took batches of %v", got[maxInFlight+maxExtra:])
	}
}

func TestBatcher_ABatchKeepsTheOrderInWhichItWasSent(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		c, first, second := newCaller(t, s.rdb), newField(), newField()
		c.mustHold(first)
		g.seen()
		fill(t, s, g)
		all := []*passenger{
			send(s, Acquire(c.keys, true, second, lease)),
			send(s, Unlock(c.keys, first, false)),
			send(s, Acquire(c.keys, true, second, lease)),
			send(s, Level(c.keys, true, second, lease, 2, 1)),
		}
		g.open(maxInFlight)
		if early := <-all[0].heard; early.Held || early.err != nil || early.TTL <= 0 {
			t.Errorf("before the unlock acquire hears %+v", early)
		}
		mustHear(t, all[1:]...)
		c.hash(map[string]string{second: "2", second + "#": "1"})
		if got := g.seen(); len(got) != 1 || strings.Join(got[0], " ") != "batch acquire unlock acquire level" {
			t.Errorf("they went as %v", got)
		}
	})
}

// What goes in two batches may overtake: whoever needs an order waits for the answer.
func TestBatcher_FlightsKeepNoOrder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		c, first, second := newCaller(t, s.rdb), newField(), newField()
		c.mustHold(first)
		g.close(true)
		released := send(s, Unlock(c.keys, first, false))
		synctest.Wait()
		g.open(0)
		if got := <-send(s, Acquire(c.keys, true, second, lease)).heard; got.Held || got.err != nil {
			t.Errorf("the acquire that was sent after the unlock hears %+v: this test no longer shows why", got)
		}
		g.open(1)
		mustHear(t, released)
	})
}

func TestBatcher_TakeBackBeforeAndAfter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		held := fill(t, s, g)
		waiting := sendAcquires(t, s, 5)
		back := []*passenger{waiting[0], waiting[2], waiting[4]}
		for _, x := range back {
			if !s.TakeBack(&x.op) {
				t.Error("an op that waits is not given back")
			}
			if s.TakeBack(&x.op) {
				t.Error("an op is given back twice: who asks last may not be the one who waits for it")
			}
		}
		for _, x := range held {
			if s.TakeBack(&x.op) {
				t.Error("an op is given back that was sent")
			}
		}
		g.open(maxInFlight)
		mustHear(t, append(held, waiting[1], waiting[3])...)
		g.mustLeave(t, 2)
		for _, x := range back {
			if len(x.heard) > 0 || x.sending.Load() != 0 {
				t.Errorf("an op that was taken back was sent %d times and heard %d answers", x.sending.Load(), len(x.heard))
			}
			mustHash(t, s.rdb, x.op.keys, nil)
		}
		for _, x := range append(held, waiting[1], waiting[3]) {
			if s.TakeBack(&x.op) || x.sending.Load() != 1 || len(x.heard) != 0 {
				t.Errorf("an op that was answered: sent %d times, %d more answers", x.sending.Load(), len(x.heard))
			}
		}
		again := send(s, back[0].op) // it may be sent later
		mustHear(t, again)
	})
}

// A batch for which nothing is left does not leave.
func TestBatcher_AllTakenBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		held := fill(t, s, g)
		for range 200 {
			x := sendAcquires(t, s, 1)
			g.mustLeave(t) // those that were taken back are no manyOps
			if !s.TakeBack(&x[0].op) {
				t.Error("an op that waits is not given back")
			}
		}
		g.open(maxInFlight)
		mustHear(t, held...)
		g.mustLeave(t)
		mustHear(t, sendAcquires(t, s, 1)...)
		g.mustLeave(t, 1)
	})
}

// Whatever many goroutines do at once: each op is answered once and right, or was taken back and never sent.
func TestBatcher_ManyGoroutinesAtOnce(t *testing.T) {
	realtime.Test(t, "how many operations go together")
	rdb := redistest.New(t)
	g := newGate(t, rdb)
	s := New(rdb)
	const workers, rounds = 64, 20
	var all sync.WaitGroup
	var asked, takenBack, twice sync.Map
	for w := range workers {
		keys := newKeys(t)
		rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
		all.Go(func() {
			token := int64(0)
			for range rounds {
				field := newField()
				x := send(s, Acquire(keys, true, field, lease))
				if rng.IntN(4) == 0 && s.TakeBack(&x.op) {
					takenBack.Store(x, true)
					continue
				}
				asked.Store(x, true)
				got := <-x.heard
				got.Copies = 0 // on a busy machine there are some
				if got.err != nil || got.Answer != (Answer{Held: true, Token: token + 1}) {
					t.Errorf("worker %d after token %d: acquire hears %+v", w, token, got)
					return
				}
				token++
				x = send(s, Unlock(keys, field, false))
				asked.Store(x, true)
				if got := <-x.heard; got.err != nil || !got.Held {
					t.Errorf("worker %d: unlock hears %+v", w, got)
					return
				}
			}
		})
	}
	all.Wait()
	ops := 0
	for x := range asked.Range {
		ops++
		if x := x.(*passenger); x.sending.Load() != 1 || len(x.heard) != 0 {
			twice.Store(x, true)
		}
	}
	for x := range takenBack.Range {
		if x := x.(*passenger); x.sending.Load() != 0 || len(x.heard) != 0 {
			twice.Store(x, true)
		}
	}
	for x := range twice.Range {
		t.Errorf("%s was sent %d times", x.(*passenger).op.kind.names[0], x.(*passenger).sending.Load())
	}
	sum, sizes := 0, g.sizes()
	for _, n := range sizes {
		sum += n
		if n > maxOps {
			t.Errorf("a batch of %d", n)
		}
	}
	if sum != ops || len(sizes) > ops/2 {
		t.Errorf("%d ops went in %d batches, of %d ops", ops, len(sizes), sum)
	}
}
