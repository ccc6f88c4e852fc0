package rlock_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The tests of the line of clients; the scripts' part is tested in package scripts. A lineClient is one client in it.
type lineClient struct {
	link *slowLink
	spy  *locktest.Spy
	c    *rlock.Client
	l    *rlock.Lock
}

const lineKey = "fencelock_line:{l}"

// linePause is what the lock may be left to strangers for where some listen, or have a moment ago, and none of them wants it.
const linePause = 5 * time.Millisecond

func lineNew(t *testing.T, m *miniredis.Miniredis, opts ...rlock.Option) *lineClient {
	t.Helper()
	p := &lineClient{link: new(slowLink)}
	rdb := p.link.redis(t, m)
	p.spy = locktest.SpyOn(rdb)
	p.c = newClient(t, rdb, opts...)
	p.l = rlock.NewLock(p.c, "l")
	return p
}

// waits makes a call of the client wait, and returns when it is in the line.
func (p *lineClient) waits(t *testing.T, ctx context.Context) <-chan locktest.Result {
	t.Helper()
	got := locktest.StartLock(func() (context.Context, error) { return p.l.Lock(ctx) })
	synctest.Wait()
	return got
}

// lineOf returns the line, the first one first.
func lineOf(t *testing.T, m *miniredis.Miniredis) []string {
	t.Helper()
	if !m.Exists(lineKey) {
		return nil
	}
	line, err := m.ZMembers(lineKey)
	locktest.NoError(t, err)
	return line
}

// lineSite runs a test on a lock that one client holds and others wait for, in this order.
func lineSite(t *testing.T, n int, test func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result)) {
	t.Helper()
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, holder, t.Context())
		defer runtime.KeepAlive(held) // also where it is not released
		var p []*lineClient
		var got []<-chan locktest.Result
		for i := range n {
			p = append(p, lineNew(t, m))
			got = append(got, p[i].waits(t, t.Context()))
		}
		locktest.Equal(t, "clients in the line", len(lineOf(t, m)), n)
		test(t, m, func() { locktest.NoError(t, holder.Unlock(held)) }, p, got)
	})
}

// lineGets requires that the call has the lock so soon after, unlocks it, and returns how long that was.
func lineGets(t *testing.T, p *lineClient, got <-chan locktest.Result, since time.Time, within time.Duration) time.Duration {
	t.Helper()
	var g locktest.Result
	select {
	case g = <-got:
	case <-time.After(time.Hour):
		t.Fatal("it does not get the lock")
	}
	locktest.NoError(t, g.Err)
	late := g.At.Sub(since)
	if late > within {
		t.Errorf("it has got the lock after %v, want %v at most", late, within)
	}
	locktest.NoError(t, p.l.Unlock(g.Ctx))
	return late
}

// P18 to P35: clients get the lock in their order of arrival, each by one command after each release.
func TestLineIsServedInOrder(t *testing.T) {
	lineSite(t, 5, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		for _, c := range p {
			c.spy.Reset()
		}
		began := time.Now()
		release()
		for i := range p {
			lineGets(t, p[i], got[i], began, 0)
			locktest.Equal(t, "attempts", p[i].spy.Count("acquire"), 1)
		}
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}

// P19: a client that is called for a place that it has not got passes that on.
func TestP19_AGhostPassesOn(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		client, _, _ := strings.Cut(lineOf(t, m)[1], ":")
		_, err := m.ZAdd(lineKey, 1, client+":777")
		locktest.NoError(t, err)
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, 0)
		lineGets(t, p[1], got[1], began, 0)
	})
}

// P19: nobody counts as listening for a client whose callers have gone, once the client does not hear any more.
func TestP19_AGhostOfWhoDoesNotListen(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		gone := lineNew(t, m)
		if _, err := gone.l.TryLock(t.Context(), time.Second, 0); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Fatal(err)
		}
		locktest.Sleep(2500 * time.Millisecond) // it has listened for 2 s, as its callers might come back
		_, err := m.ZAdd(lineKey, 1, gone.c.ID()+":777")
		locktest.NoError(t, err)
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, 0)
	})
}

// P19: a leave that gets no answer is sent again until it has one: nobody who comes after it is to wait for a client that is gone.
func TestP19_ALeaveWithoutAnAnswer(t *testing.T) {
	lineSite(t, 0, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		gone := lineNew(t, m)
		var lost atomic.Int32
		gone.spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "leave") && lost.Add(1) <= 20 {
				return os.ErrDeadlineExceeded
			}
			return next()
		})
		_, err := gone.l.TryLock(t.Context(), time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "clients in the line", len(lineOf(t, m)), 1)
		locktest.Sleep(2 * time.Minute)
		locktest.Equal(t, "clients in the line when Redis has answered", len(lineOf(t, m)), 0)
		locktest.Equal(t, "leaves without an answer were sent again", lost.Load() > 20, true)
	})
}

// P19: an attempt that enters the line after its call has left it does not leave a place behind, although nobody releases the lock.
func TestP19_TheAttemptComesAfterTheLeave(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		var entered atomic.Bool
		channel := lineKey + ":" + p.c.ID()
		p.spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "acquire") && m.PubSubNumSub(channel)[channel] > 0 { // the one that enters
				time.Sleep(700 * time.Millisecond) // twice, as the script is not there: its client listens still, and is counted (P33)
			}
			err := next()
			if len(lineOf(t, m)) > 0 {
				entered.Store(true)
			}
			return err
		})
		_, err := p.l.TryLock(t.Context(), time.Second, 0)
		locktest.Equal(t, "it gives up", err != nil, true)
		locktest.Equal(t, "it is in the line by then", entered.Load(), false)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "it was in the line", entered.Load(), true)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}

// P19: a release that enters the line after its client has left it does not leave a place behind,
// also where its answer is lost.
func TestP19_TheReleaseComesAfterTheLeave(t *testing.T) {
	for what, lost := range map[string]bool{"answered": false, "without an answer": true} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				other, p := rlock.NewLock(newClient(t, rdb), "l"), lineNew(t, m, rlock.WithHandoffs(0))
				held := take(t, other, t.Context())
				ctx, giveUp := context.WithCancel(t.Context())
				first, next := p.waits(t, t.Context()), p.waits(t, ctx)
				locktest.NoError(t, other.Unlock(held))
				r := <-first
				locktest.NoError(t, r.Err)
				others := locktest.StartLock(func() (context.Context, error) { return other.Lock(t.Context()) })
				locktest.Sleep(time.Millisecond)
				end := make(chan struct{})
				defer close(end)
				p.spy.Wrap(func(ops []string, next func() error) error {
					if !slices.Contains(ops, "unlock") {
						return next()
					}
					p.spy.Wrap(nil)
					time.Sleep(100 * time.Millisecond)
					err := next()
					if lost {
						<-end
					}
					return err
				})
				unlocked := locktest.Start(func() error { return p.l.Unlock(r.Ctx) })
				locktest.Sleep(50 * time.Millisecond)
				giveUp()
				locktest.IsError(t, (<-next).Err, context.Canceled)
				locktest.Sleep(0)
				locktest.Equal(t, "leaves before the release", p.spy.Count("leave"), 1)
				o := <-others
				locktest.NoError(t, o.Err)
				locktest.NoError(t, <-unlocked)
				locktest.Sleep(time.Millisecond)
				locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
				locktest.NoError(t, other.Unlock(o.Ctx))
			})
		})
	}
}

// P20: a client enters the line only when it would hear that it is called.
func TestP20_EntersWhenItHears(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		p.link.way = 5 * time.Millisecond
		got := locktest.StartLock(func() (context.Context, error) { return p.l.TryLock(t.Context(), time.Second, 0) })
		entered := false
		for range 500 {
			time.Sleep(time.Millisecond)
			for _, ticket := range lineOf(t, m) {
				entered = true
				client, _, _ := strings.Cut(ticket, ":")
				channel := lineKey + ":" + client
				if time.Sleep(0); m.PubSubNumSub(channel)[channel] != 1 {
					t.Fatal("it is in the line, and would not hear a call")
				}
			}
		}
		locktest.Equal(t, "entered", entered, true)
		locktest.IsError(t, (<-got).Err, rlock.ErrNotAcquired)
	})
}

// P22: a client whose connection was away has its old place again.
func TestP22_PlaceAfterAReconnect(t *testing.T) {
	lineSite(t, 3, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		before := lineOf(t, m)
		p[1].link.cut(false)
		_, err := m.ZRem(lineKey, before[1]) // as a release does that reaches nobody
		locktest.NoError(t, err)
		locktest.Sleep(200 * time.Millisecond)
		locktest.Equal(t, "the line", strings.Join(lineOf(t, m), " "), strings.Join(before, " "))
		began := time.Now()
		release()
		for i := range p {
			lineGets(t, p[i], got[i], began, linePause)
		}
	})
}

// P24: a client that was called and does not come keeps the others waiting for as long as the bound, and not longer. It
// loses its place.
func TestP24_TheHeadIsFrozen(t *testing.T) {
	lineSite(t, 3, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		frozen := make(chan struct{})
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			<-frozen
			return next()
		})
		began := time.Now()
		release()
		late := lineGets(t, p[1], got[1], began, 100*time.Millisecond)
		locktest.Equal(t, "the bound", late, 100*time.Millisecond)
		lineGets(t, p[2], got[2], began, 100*time.Millisecond)
		close(frozen)
		lineGets(t, p[0], got[0], began, 110*time.Millisecond)
	})
}

// P24: a client that comes within the bound is not taken out, however many others look meanwhile.
func TestP24_TheHeadIsSlow(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			time.Sleep(90 * time.Millisecond)
			return next()
		})
		p[1].spy.Reset() // what it has sent to enter
		began := time.Now()
		release()
		locktest.Sleep(10 * time.Millisecond)
		for range 5 {
			other := lineNew(t, m)
			_, err := other.l.TryLock(t.Context(), 10*time.Millisecond, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		locktest.Equal(t, "attempts of the second, which is asked for a sign of life,", p[1].spy.Count("acquire"), 1)
		lineGets(t, p[0], got[0], began, 90*time.Millisecond)
		lineGets(t, p[1], got[1], began, 180*time.Millisecond)
	})
}

// P25: the release of a Redisson client calls nobody. The first client in the line hears it all the same, once it has been
// first for a while; P26: the others do not ask.
func TestP25_TheHeadHearsARedissonClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		var p []*lineClient
		var got []<-chan locktest.Result
		for i := range 3 {
			p = append(p, lineNew(t, m))
			got = append(got, p[i].waits(t, t.Context()))
		}
		locktest.Sleep(100 * time.Millisecond)
		for _, c := range p {
			c.spy.Reset()
		}
		began := time.Now()
		rdb.Publish(t.Context(), lockChannel, "0") // of another hold, say
		locktest.Sleep(0)
		locktest.Equal(t, "attempts of the first", p[0].spy.Count("acquire"), 1)
		locktest.Equal(t, "attempts of the others", p[1].spy.Count("acquire")+p[2].spy.Count("acquire"), 0)
		m.Del("l")
		rdb.Publish(t.Context(), lockChannel, "0")
		for i := range p {
			lineGets(t, p[i], got[i], began, linePause)
		}
	})
}

// P25: a client that was called, and found the lock taken by somebody who is in no line, listens from then on.
func TestP25_CalledInVain(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		rdb := redistest.PipeClient(t, m)
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			p[0].spy.Wrap(nil)
			javaHolds(t, rdb, time.Hour)
			return next()
		})
		release()
		locktest.Sleep(time.Millisecond)
		began := time.Now()
		m.Del("l")
		rdb.Publish(t.Context(), lockChannel, "0")
		lineGets(t, p[0], got[0], began, 0)
	})
}

// P27: a client that is called leaves the lock to those that are in no line for a moment, as often as another client in the
// line gets it: each time where it is alone there. If none of them comes for four times, that is not repeated soon.
func TestP27_TurnsOfStrangers(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		java := rdb.Subscribe(t.Context(), lockChannel)
		_, err := java.Receive(t.Context())
		locktest.NoError(t, err)
		defer func() { _ = java.Close() }()
		p := lineNew(t, m)
		holder := rlock.NewLock(newClient(t, rdb), "l")
		release := func() (time.Time, <-chan locktest.Result) {
			held := take(t, holder, t.Context())
			got := p.waits(t, t.Context())
			began := time.Now()
			locktest.NoError(t, holder.Unlock(held))
			return began, got
		}
		for range 4 {
			began, got := release()
			locktest.Equal(t, "a stranger has", lineGets(t, p, got, began, time.Second), 5*time.Millisecond)
		}
		began, got := release()
		locktest.Equal(t, "and soon after those were in vain", lineGets(t, p, got, began, time.Second), 0)
		locktest.Sleep(time.Second)
		began, got = release()
		locktest.Sleep(time.Millisecond)
		javaHolds(t, rdb, time.Hour)
		locktest.Sleep(10 * time.Millisecond)
		m.Del("l")
		rdb.Publish(t.Context(), lockChannel, "0")
		locktest.Equal(t, "it is used", lineGets(t, p, got, began, time.Second), 11*time.Millisecond)
	})
}

// P37: a holder hears soon that its hold was forced open, however many wait behind it: that release is not for the line alone.
func TestP37_AForcedHolderHearsOfIt(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder, forcer := lineNew(t, m), rlock.NewLock(newClient(t, rdb), "l")
		behind := []*lineClient{lineNew(t, m), lineNew(t, m)}
		for range 8 {
			held := take(t, holder.l, t.Context())
			var got []<-chan locktest.Result
			for _, p := range behind {
				got = append(got, p.waits(t, t.Context()))
			}
			locktest.Sleep(2 * time.Second) // whoever holds it for a second listens
			began := time.Now()
			forced, err := forcer.ForceUnlock(t.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, "forced", forced, true)
			<-held.Done()
			if late := time.Since(began); late > time.Second { // and not at its next renewal
				t.Errorf("the holder hears of it after %v", late)
			}
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			for i, p := range behind {
				lineGets(t, p, got[i], began, time.Second)
			}
		}
	})
}

// P27: beside strangers a client hands the lock on within its own process once, and not 32 times.
func TestP27_SeriesBesideStrangers(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		java := rdb.Subscribe(t.Context(), lockChannel)
		_, err := java.Receive(t.Context())
		locktest.NoError(t, err)
		defer func() { _ = java.Close() }()
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		done := queueUp(60, func(int) {
			held, err := p.l.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			locktest.NoError(t, p.l.Unlock(held))
		})
		turns := 1
		for range 60 {
			locktest.Sleep(30 * time.Millisecond)
			if n, _ := p.c.InQueue("l"); n == 0 {
				break
			}
			m.Del("l")
			rdb.Publish(t.Context(), lockChannel, "0")
			locktest.Sleep(time.Millisecond) // the client's turn is over, and it leaves the lock to strangers
			if !m.Exists("l") {
				javaHolds(t, rdb, time.Hour)
				turns++
			}
		}
		done()
		if turns < 12 {
			t.Errorf("60 holds of the client, and %d of a stranger that always wants the lock", turns)
		}
	})
}

// P31: who has become the first because another one left hears of it while the lock is held, and so also the release of a
// Redisson client.
func TestP31_LeaveTellsTheNext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		first, next := lineNew(t, m), lineNew(t, m)
		ctx, giveUp := context.WithCancel(t.Context())
		one := first.waits(t, ctx)
		two := next.waits(t, t.Context())
		giveUp()
		locktest.IsError(t, (<-one).Err, context.Canceled)
		locktest.Sleep(100 * time.Millisecond)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		began := time.Now()
		m.Del("l")
		rdb.Publish(t.Context(), lockChannel, "0")
		lineGets(t, next, two, began, 0)
	})
}

// P32: a crowd that waits for a lock which is held for long hardly asks.
func TestP32_Looks(t *testing.T) {
	lineSite(t, 20, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		for _, c := range p {
			c.spy.Reset()
		}
		locktest.Sleep(time.Minute)
		asked := 0
		for _, c := range p {
			asked += c.spy.Count("acquire")
		}
		if asked > 20*10 {
			t.Errorf("20 clients have asked %d times in a minute", asked)
		}
		began := time.Now()
		release()
		for i := range p {
			lineGets(t, p[i], got[i], began, linePause)
		}
	})
}

// P32: what nobody tells (a key that was deleted by hand) the first client in the line finds out within ten seconds.
func TestP32_DeletedByHand(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		locktest.Sleep(time.Minute)
		m.Del("l")
		began := time.Now()
		lineGets(t, p[0], got[0], began, 10*time.Second)
		lineGets(t, p[1], got[1], began, 10*time.Second)
	})
}

// P19, P24: calls that are lost cost the bound, not more.
func TestLineWithLostMessages(t *testing.T) {
	lineSite(t, 3, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		p[0].link.drop.Store(true)
		began := time.Now()
		release()
		var all sync.WaitGroup
		for i := range p {
			all.Go(func() { lineGets(t, p[i], got[i], began, 100*time.Millisecond) })
		}
		all.Wait()
	})
}

// P18, P35: a client with several callers enters the line again with the release that ends its turn, and waits there like
// the others.
func TestLineSeveralCallers(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, holder, t.Context())
		var order []string
		var dones []func()
		for _, name := range []string{"a", "b"} {
			p := lineNew(t, m, rlock.WithHandoffs(1))
			dones = append(dones, queueUp(4, func(int) {
				held, err := p.l.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				locktest.NoError(t, p.l.Unlock(held))
			}))
			locktest.Sleep(0)
		}
		locktest.NoError(t, holder.Unlock(held))
		for _, done := range dones {
			done()
		}
		locktest.Equal(t, "order", strings.Join(order, ""), "aabbaabb")
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}

// lineCallers is a lock that a client of two callers has the turn at, while another client waits: the first caller's hold, and what the two
// others will get. The client hands nothing on within itself.
func lineCallers(t *testing.T, test func(t *testing.T, p, other *lineClient, held context.Context, next, others <-chan locktest.Result)) {
	t.Helper()
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, holder, t.Context())
		p, other := lineNew(t, m, rlock.WithHandoffs(0)), lineNew(t, m)
		first, next := p.waits(t, t.Context()), p.waits(t, t.Context())
		others := other.waits(t, t.Context())
		locktest.Equal(t, "clients in the line", len(lineOf(t, m)), 2)
		p.spy.Reset()
		locktest.NoError(t, holder.Unlock(held))
		r := <-first
		locktest.NoError(t, r.Err)
		locktest.Sleep(time.Millisecond) // the next caller leads, and listens
		test(t, p, other, r.Ctx, next, others)
	})
}

// P35: a client that has entered the line by its release waits there to be called: it asks once for each of its holds.
func TestP35_WhoEntersByItsReleaseIsCalled(t *testing.T) {
	lineCallers(t, func(t *testing.T, p, other *lineClient, held context.Context, next, others <-chan locktest.Result) {
		locktest.NoError(t, p.l.Unlock(held))
		r := <-others
		locktest.NoError(t, r.Err)
		locktest.Sleep(10 * time.Millisecond)
		locktest.Equal(t, "attempts of the client while the other one has the lock", p.spy.Count("acquire"), 1)
		began := time.Now()
		locktest.NoError(t, other.l.Unlock(r.Ctx))
		lineGets(t, p, next, began, 2*linePause)
		locktest.Equal(t, "attempts of the client", p.spy.Count("acquire"), 2)
	})
}

// Inv8: a client that is called before it has the answer to its own release acts on the call when it has the answer.
func TestInv8_CalledBeforeTheReleaseIsAnswered(t *testing.T) {
	lineCallers(t, func(t *testing.T, p, other *lineClient, held context.Context, next, others <-chan locktest.Result) {
		const way = 20 * time.Millisecond
		p.spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if slices.Contains(ops, "unlock") {
				time.Sleep(way) // of the answer
			}
			return err
		})
		began := time.Now()
		unlocked := locktest.Start(func() error { return p.l.Unlock(held) })
		lineGets(t, other, others, began, 0)
		locktest.NoError(t, <-unlocked)
		locktest.Equal(t, "the answer took", time.Since(began), way)
		p.spy.Wrap(nil)
		lineGets(t, p, next, began, way+2*linePause)
	})
}

// P26: the second does not ask when it hears of a release, also where it listens on the lock's own channel.
func TestP26_OnlyTheFirstTries(t *testing.T) {
	lineSite(t, 3, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		rdb := redistest.PipeClient(t, m)
		locktest.Sleep(100 * time.Millisecond)
		own := lineOf(t, m)
		_, err := m.ZAdd(lineKey, 1, own[2]) // the last one is the first now
		locktest.NoError(t, err)
		for _, c := range p {
			c.spy.Reset()
		}
		_, err = m.ZAdd(lineKey, 9e15, own[0])
		locktest.NoError(t, err)
		rdb.Publish(t.Context(), lockChannel, "0")
		locktest.Sleep(time.Millisecond)
		locktest.Equal(t, "attempts of the one that was first", p[0].spy.Count("acquire"), 1)
		for range 5 {
			rdb.Publish(t.Context(), lockChannel, "0")
			locktest.Sleep(time.Millisecond)
		}
		locktest.Equal(t, "and when it has learned that it is not", p[0].spy.Count("acquire"), 1)
	})
}

// Inv9: what a client keeps for callers that come back is gone after a while; Shutdown does not wait for that.
func TestLineLingers(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, 0)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "lock states", p[0].c.LockStates(), 1)
		locktest.Sleep(3 * time.Second)
		locktest.Equal(t, "lock states", p[0].c.LockStates(), 0)
	})
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, 0)
		began = time.Now()
		locktest.NoError(t, p[0].c.Shutdown(t.Context()))
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

// P32, Inv8: calls that wait for a short time each, one after the other, look as often as one that waits for long: the release
// that nobody tells is found.
func TestP32_ShortWaits(t *testing.T) {
	for what, told := range map[string]bool{"a release of Redisson's": true, "a key deleted by hand": false} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				javaHolds(t, rdb, time.Hour)
				p := lineNew(t, m)
				var done atomic.Bool
				var all sync.WaitGroup
				for i := range 5 { // there is always one that waits
					all.Go(func() {
						for !done.Load() {
							held, err := p.l.TryLock(t.Context(), time.Duration(2+3*i)*time.Millisecond, 0)
							if err == nil {
								done.Store(true)
								locktest.NoError(t, p.l.Unlock(held))
							}
						}
					})
				}
				locktest.Sleep(100 * time.Millisecond)
				began := time.Now()
				m.Del("l")
				if told {
					rdb.Publish(t.Context(), lockChannel, "0")
				}
				all.Wait()
				if late := time.Since(began); late > 11*time.Second || told && late > 20*time.Millisecond {
					t.Errorf("the lock was free for %v", late)
				}
			})
		})
	}
}

// P36: while nobody waits a release does not look at the line.
func TestP36_NobodyWaits(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	l := fenced.NewLock(newClient(t, rdb), "l")
	for range 10 {
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
	}
	if stats := rdb.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_z") || !strings.Contains(stats, "cmdstat_hdel") {
		t.Errorf("the commands were %s", stats)
	}
}

// P36: a release looks at the line where others were there already when the hold got the lock: in turn, or from another
// hold of its client.
func TestP36_OthersWaitAlready(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, b, c := lineNew(t, m), lineNew(t, m), lineNew(t, m)
		held := take(t, a.l, t.Context())
		two := b.waits(t, t.Context())
		three := c.waits(t, t.Context())
		again := locktest.StartLock(func() (context.Context, error) { return a.l.Lock(t.Context()) })
		synctest.Wait()
		began := time.Now()
		locktest.NoError(t, a.l.Unlock(held))
		got := <-again // handed on within the client
		locktest.NoError(t, got.Err)
		locktest.Equal(t, "transfers", a.spy.Count("transfer"), 1)
		synctest.Wait() // until Redis knows that this client listens no more: the first one would leave the lock to a stranger
		locktest.NoError(t, a.l.Unlock(got.Ctx))
		lineGets(t, b, two, began, 0)
		lineGets(t, c, three, began, 0)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}
