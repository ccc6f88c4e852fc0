package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Close, and a Shutdown whose context has ended, while goroutines lock and unlock: when all have unlocked, the lock is
// free. Attempts and handoffs that were under way have been answered and released (P3, P12).
func TestP12_CloseLeavesNoLockBehind(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	closings := map[string]func(*rlock.Client){
		"Close":    func(c *rlock.Client) { _ = c.Close() },
		"Shutdown": func(c *rlock.Client) { _ = c.Shutdown(ended) },
	}
	rdb := redistest.New(t)
	for name, closing := range closings {
		for _, workers := range []int{2, 4, 16} {
			for _, section := range []time.Duration{0, 200 * time.Microsecond, 2 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s/%d workers/%v", name, workers, section), func(t *testing.T) {
					taken := 0
					const rounds = 12
					for range rounds {
						rdb.FlushAll(t.Context())
						if closeRound(t, rdb, closing, workers, section) {
							taken++
						}
					}
					if taken > 0 {
						t.Errorf("the lock is still taken after %d of %d rounds", taken, rounds)
					}
				})
			}
		}
	}
}

// closeRound closes a client at some moment of its work, and tells whether the lock is taken after it.
func closeRound(t *testing.T, rdb *redis.Client, closing func(*rlock.Client), workers int, section time.Duration) (taken bool) {
	t.Helper()
	c, err := rlock.New(rdb)
	locktest.NoError(t, err)
	l := rlock.NewLock(c, "l")
	var all sync.WaitGroup
	holds := make(chan struct{}, 1<<16)
	for range workers {
		all.Go(func() {
			for {
				held, err := l.Lock(context.Background())
				if err != nil {
					return
				}
				holds <- struct{}{}
				time.Sleep(section)
				_ = l.Unlock(held)
			}
		})
	}
	for range 1 + rand.N(20) { // so many holds
		<-holds
	}
	closing(c)
	all.Wait()
	return rdb.Exists(t.Context(), "l").Val() > 0
}

// A client that is closed right after an acquire failed leaves nothing taken: what the attempt took is released first.
func TestP12_CloseAfterAnUnansweredAcquire(t *testing.T) {
	s := newSite(t)
	c := s.client()
	acquired := s.on("acquire", redistest.HoldReply)
	ctx, cancel := context.WithCancel(t.Context())
	got := locktest.Start(func() error { _, err := rlock.NewLock(c, "a").Lock(ctx); return err })
	redistest.Await(t, bound, acquired.Fired(), "the acquire was executed")
	cancel()
	locktest.IsError(t, redistest.Await(t, bound, got, "the call ends"), context.Canceled)
	closed := locktest.Start(c.Close)
	acquired.Release()
	locktest.NoError(t, redistest.Await(t, bound, closed, "Close returns"))
	s.wantCount("a", "")
}

// Who calls Close while another call of Close, or of Shutdown, is under way waits for it: what was under way is released when either returns.
func TestP12_CloseWhileTheClientIsClosing(t *testing.T) {
	for name, first := range map[string]func(c *rlock.Client) error{
		"Close":    (*rlock.Client).Close,
		"Shutdown": func(c *rlock.Client) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			rdb := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Minute }) // the reply is not missed
			c := newClient(t, rdb, rlock.WithUnlockTimeout(time.Minute))
			acquired := s.on("acquire", redistest.HoldReply)
			ctx, cancel := context.WithCancel(t.Context())
			got := locktest.Start(func() error { _, err := rlock.NewLock(c, "a").Lock(ctx); return err })
			redistest.Await(t, bound, acquired.Fired(), "the acquire was executed")
			cancel()
			locktest.IsError(t, redistest.Await(t, bound, got, "the call ends"), context.Canceled)
			closed := locktest.Start(func() error { return first(c) })
			locktest.IsError(t, lockUntilClosed(t, c), rlock.ErrClosed)
			again := locktest.Start(c.Close)
			select {
			case <-again:
				t.Error("a later Close returns while the first one has something to release")
			case <-time.After(50 * time.Millisecond): // a Close that does not wait is back at once
			}
			acquired.Release()
			locktest.NoError(t, redistest.Await(t, bound, closed, "the first one returns"))
			locktest.NoError(t, redistest.Await(t, bound, again, "the later one returns"))
			s.wantCount("a", "")
		})
	}
}

// lockUntilClosed locks until the client is closing, and returns the error.
func lockUntilClosed(t *testing.T, c *rlock.Client) (err error) {
	t.Helper()
	l := rlock.NewLock(c, "b")
	for began := time.Now(); err == nil && time.Since(began) < bound; {
		var held context.Context
		if held, err = l.Lock(t.Context()); err == nil {
			locktest.NoError(t, l.Unlock(held))
		}
	}
	return err
}

// An acquire that replicas have not confirmed is released by Close.
func TestP12_CloseAfterAnUnconfirmedAcquire(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	c := newClient(t, rdb, rlock.WithReplicas(1, 20*time.Millisecond))
	_, err := rlock.NewLock(c, "a").TryLock(t.Context(), 0, 0)
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	locktest.NoError(t, c.Close())
	locktest.Equal(t, "keys", rdb.DBSize(t.Context()).Val(), int64(0))
}

// Close waits for a Redis that does not answer as long as an Unlock would, and then says what is left.
func TestP12_CloseIsBounded(t *testing.T) {
	s := newSite(t)
	log := &locktest.Log{}
	c := s.client(rlock.WithUnlockTimeout(100*time.Millisecond), rlock.WithLogger(log.Logger()))
	acquired := s.on("acquire", redistest.SwallowReplySilently)
	ctx, cancel := context.WithCancel(t.Context())
	got := locktest.Start(func() error { _, err := rlock.NewLock(c, "a").Lock(ctx); return err })
	redistest.Await(t, bound, acquired.Fired(), "the acquire was executed")
	s.proxy.Freeze()
	cancel()
	locktest.IsError(t, redistest.Await(t, bound, got, "the call ends"), context.Canceled)
	locktest.NoError(t, redistest.Await(t, bound, locktest.Start(c.Close), "Close returns"))
	s.proxy.Thaw()
	if len(log.With("closed before a release was confirmed")) == 0 {
		t.Error("nothing was said")
	}
}

// Shutdown lets those go on who hold a lock of this client. A hold of another client's, or one that is lost, is none of them.
func TestShutdownAndOtherHolders(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		kept, lost, free := rlock.NewLock(c, "kept"), rlock.NewLock(c, "lost"), rlock.NewLock(c, "free")
		theirs := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "theirs")
		mine, former, stranger := take(t, kept, t.Context()), take(t, lost, t.Context()), take(t, theirs, t.Context())
		_, err := lost.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		down := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		locktest.Sleep(time.Millisecond)
		for name, ctx := range map[string]context.Context{"a hold of another client": stranger, "a hold that is lost": context.WithoutCancel(former)} {
			for _, wait := range []time.Duration{0, time.Minute} {
				if _, err := free.TryLock(ctx, wait, 0); !errors.Is(err, rlock.ErrClosed) {
					t.Errorf("with %s, wait %v: %v", name, wait, err)
				}
			}
		}
		held, err := free.TryLock(mine, 0, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, free.Unlock(held))
		locktest.IsError(t, lost.Unlock(former), rlock.ErrLost)
		locktest.NothingComes(t, down, time.Second, "Shutdown with a lock held")
		locktest.NoError(t, kept.Unlock(mine))
		locktest.NoError(t, <-down)
		locktest.NoError(t, theirs.Unlock(stranger))
	})
}

// Shutdown waits for a call that is under way when the last hold ends, and for the hold that the call takes.
func TestShutdownWaitsForACallUnderWay(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		one, other := rlock.NewLock(c, "one"), rlock.NewLock(c, "other")
		held := take(t, other, t.Context())
		answer := make(chan struct{})
		locktest.SpyOn(rdb).Wrap(func(ops []string, next func() error) error {
			if ops[0] == "acquire" {
				<-answer
			}
			return next()
		})
		call := locktest.StartLock(func() (context.Context, error) { return one.TryLock(t.Context(), 0, 0) })
		locktest.Sleep(time.Millisecond)
		down := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, other.Unlock(held))
		locktest.NothingComes(t, down, time.Millisecond, "Shutdown is done although a call is under way")
		close(answer)
		got := <-call
		locktest.NoError(t, got.Err)
		locktest.NothingComes(t, down, time.Millisecond, "Shutdown is done although a lock is held")
		locktest.NoError(t, one.Check(got.Ctx))
		locktest.NoError(t, one.Unlock(got.Ctx))
		locktest.NoError(t, <-down)
	})
}

// Close does not wait where a release can change nothing: the key is no lock, or Redis refuses the release for good.
func TestP12_CloseDoesNotWaitForWhatIsRefused(t *testing.T) {
	for reply, said := range map[string]bool{
		"WRONGTYPE Operation against a key holding the wrong kind of value":        false,
		"NOPERM this user has no permissions to run the 'evalsha' command":         true,
		"ERR the release was refused by somebody on the way, and will be for ever": true,
	} {
		t.Run(reply[:9], func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
				log := &locktest.Log{}
				c := newClient(t, rdb, rlock.WithUnlockTimeout(time.Hour), rlock.WithLogger(log.Logger()))
				l := rlock.NewLock(c, "l")
				locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
				spy := locktest.SpyOn(rdb)
				spy.Wrap(func(ops []string, next func() error) error {
					if ops[0] == "unlock" {
						return locktest.Reply(reply)
					}
					defer time.Sleep(50 * time.Millisecond)
					return next()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := l.Lock(ctx)
				locktest.IsError(t, err, context.DeadlineExceeded)
				began := time.Now()
				locktest.NoError(t, c.Close())
				if took := time.Since(began); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				locktest.Equal(t, "said", len(log.With("closed before a release was confirmed")) > 0, said)
			})
		})
	}
}

// Close waits for an Unlock that is under way, and for no more than that (P12).
func TestP12_CloseWaitsForAnUnlock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the server knows the scripts
		held := take(t, l, t.Context())
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "unlock") {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		})
		unlocked := locktest.Start(func() error { return l.Unlock(held) })
		locktest.Sleep(10 * time.Millisecond)
		began := time.Now()
		locktest.NoError(t, c.Close())
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v, and the release 50 ms", took)
		}
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
		locktest.NoError(t, <-unlocked)
	})
}

// Shutdown of a client that uses no lock has nothing to wait for. ForceUnlock works after it, and uses a lock's state for a moment.
func TestShutdownOfAnIdleClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		locktest.NoError(t, c.Shutdown(ctx))
		locktest.Equal(t, "Shutdown took", time.Since(began), 0)
		javaHolds(t, rdb, time.Hour)
		freed, err := rlock.NewLock(c, "l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
	})
}
