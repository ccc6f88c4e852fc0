package scripts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A connection may be dead without anybody telling, and go-redis wait for it for ever. A batch has a bound of its own.

// mustBeAbandoned fails the test unless each op hears now, once, that no answer came.
func mustBeAbandoned(t *testing.T, all ...*passenger) {
	t.Helper()
	synctest.Wait()
	for i, x := range all {
		if len(x.heard) != 1 {
			t.Fatalf("op %d heard %d answers", i, len(x.heard))
		}
		got := <-x.heard
		judge(t, got.err, true, true)
		if got.Answer != (Answer{}) || !strings.Contains(fmt.Sprint(got.err), "ReadTimeout") {
			t.Errorf("op %d hears %+v", i, got)
		}
	}
}

// mustHearNothing fails the test if one of them hears anything.
func mustHearNothing(t *testing.T, all ...*passenger) {
	t.Helper()
	synctest.Wait()
	for i, x := range all {
		if len(x.heard) > 0 {
			t.Errorf("op %d hears %+v", i, <-x.heard)
		}
	}
}

func TestBatcher_ABatchThatHangsIsAbandoned(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		for range 2 {
			bound := s.batchers.bound
			hanging := fill(t, s, g)
			third := sendAcquires(t, s, 3)
			time.Sleep(2 * stallAfter)
			g.mustLeave(t, 3)
			time.Sleep(bound - 2*stallAfter - time.Millisecond)
			mustHearNothing(t, append(hanging, third...)...)
			time.Sleep(time.Millisecond)
			mustBeAbandoned(t, hanging...)
			mustHearNothing(t, third...)
			time.Sleep(2 * stallAfter)
			mustBeAbandoned(t, third...)

			// Their ops are used again while go-redis is not done with them. Their late answers are nobody's.
			again := append(hanging, third...)
			for _, x := range again {
				x.op = Acquire(newKeys(t), true, newField(), lease)
				s.Send(&x.op, x)
			}
			synctest.Wait()
			flown := len(g.seen())
			for range maxInFlight + 1 { // those that have waited longest
				g.release <- struct{}{}
			}
			mustHearNothing(t, again...)
			g.open(flown)
			mustHear(t, again...)
			mustBeTwo(t, s, g)
		}
	})
}

// However many connections are dead, each is waited for once, and who comes later is served over another one.
func TestBatcher_AllPlacesAreAbandoned(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		hanging := fill(t, s, g)
		for n := maxInFlight; n < maxStalled; n++ {
			hanging = append(hanging, sendAcquires(t, s, 1)...)
			time.Sleep(2 * stallAfter)
			g.mustLeave(t, 1)
		}
		late := sendAcquires(t, s, 3)
		time.Sleep(time.Second)
		g.mustLeave(t)
		g.open(0)
		mustHear(t, late...)
		time.Sleep(s.batchers.bound)
		mustBeAbandoned(t, hanging...)
		for range hanging {
			g.release <- struct{}{}
		}
		mustHearNothing(t, hanging...)
		mustBeTwo(t, s, g)
	})
}

// What has been told to have no answer is not sent any more: nobody would release what it takes.
func TestBatcher_WhatIsAbandonedIsNotSentLater(t *testing.T) {
	for what, early := range map[string]bool{"before it was sent": true, "when the server has not got the script": false} {
		t.Run(what, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
				for _, n := range []int{1, 3} {
					if err := s.rdb.ScriptFlush(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					g.seen()
					g.close(early)
					all := sendAcquires(t, s, n)
					time.Sleep(2*s.batchers.bound + time.Second)
					mustBeAbandoned(t, all...)
					flown := len(g.seen())
					g.open(flown)
					mustHearNothing(t, all...)
					for _, x := range all {
						mustHash(t, s.rdb, x.op.keys, nil)
					}
				}
			})
		})
	}
}

// A client that ends its reads has the first word, and so has the time that replicas have.
func TestBatcher_TheBoundOfAFlight(t *testing.T) {
	rdb := func(reads time.Duration) *redis.Client { return redis.NewClient(&redis.Options{ReadTimeout: reads}) }
	cluster := func(reads time.Duration) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: reads})
	}
	for _, c := range []struct {
		rdb  redis.UniversalClient
		want time.Duration
	}{
		{rdb(-1), abandonAfter}, {rdb(-2), abandonAfter}, {rdb(time.Minute), abandonAfter + time.Minute},
		{cluster(-1), abandonAfter}, {cluster(time.Minute), abandonAfter + time.Minute},
	} {
		s := New(c.rdb)
		s.Confirm(Confirmation{Replicas: 1, Timeout: time.Hour})
		if s.batchers.bound != c.want || s.confirmed.bound != c.want+time.Hour {
			t.Errorf("a batch has %v, and %v with a confirmation, want %v", s.batchers.bound, s.confirmed.bound, c.want)
		}
		_ = c.rdb.Close()
	}
	if defaults := rdb(0); New(defaults).batchers.bound <= defaults.Options().PoolTimeout {
		t.Error("with go-redis's defaults batches are abandoned before it says that its pool is exhausted")
	}
}

// A lone op: nothing waits, and nobody else looks.
func TestBatcher_ALoneFlightIsAbandonedToo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		for range 3 {
			g.close(false)
			x := sendAcquires(t, s, 1)
			time.Sleep(s.batchers.bound)
			mustBeAbandoned(t, x...)
			g.open(0)
			mustHear(t, sendAcquires(t, s, 1)...)
			time.Sleep(time.Hour)
			synctest.Wait()
			s.batchers.first.mu.Lock()
			if s.batchers.first.watched {
				t.Error("an empty batcher is watched")
			}
			s.batchers.first.mu.Unlock()
		}
	})
}

// The same over sockets, confirmed and in a batch: connections over which nothing comes any more.
func TestBatcher_DeadConnections(t *testing.T) {
	realtime.Test(t, "batches that are given up after 300 ms")
	for what, confirm := range map[string]bool{"plain": false, "confirmed": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr := redistest.Start(t)
			if confirm {
				addr = redistest.Real(t).Addr()
			}
			load(t, redistest.Client(t, addr))
			proxy := redistest.NewProxy(t, addr)
			s := New(redistest.Client(t, proxy.Addr(), func(o *redis.Options) { o.ReadTimeout, o.PoolSize = -1, 64 }))
			bs := s.batchers
			if confirm {
				s.Confirm(Confirmation{Timeout: time.Millisecond})
				bs = s.confirmed
			}
			bs.bound = 300 * time.Millisecond // in place of 5 s
			scripts := func(args []string) bool { return args[0] == "evalsha" }
			for i := range maxStalled {
				proxy.On(fmt.Sprint("dead ", i), scripts, redistest.SwallowReplySilently)
			}
			unanswered := 0
			redistest.Eventually(t, time.Minute, func() bool {
				well := true
				for _, x := range sendAcquires(t, s, 30) {
					if got := <-x.heard; got.err != nil {
						judge(t, got.err, true, true)
						well = false
						unanswered++
					}
				}
				return well
			}, "who comes later is served")
			if unanswered == 0 {
				t.Error("nothing was unanswered: this test no longer shows why")
			}
		})
	}
}

// Inv12: the context of a batch that is given up ends when its callers have their answers, also where those of another batch take their
// time to hear theirs. A caller that heard of the end of that context would take its own for cancelled.
func TestInv12_CallersHearBeforeTheirBatchEnds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		s := New(redistest.PipeClient(t, m, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}))
		var all []*slowCaller
		for range maxInFlight {
			x := &slowCaller{op: Acquire(newKeys(t), true, newField(), lease), heard: make(chan error, 1)}
			s.Send(&x.op, x)
			all = append(all, x)
		}
		for _, x := range all {
			if err := <-x.heard; err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("a caller hears %v", err)
			}
		}
		time.Sleep(time.Minute) // the dials end
	})
}

// A slowCaller takes a millisecond to hear its answer.
type slowCaller struct {
	op    Op
	heard chan error
}

func (*slowCaller) Sending(Caller) {}

func (x *slowCaller) Answered(_ Answer, err error) {
	time.Sleep(time.Millisecond)
	x.heard <- err
}
