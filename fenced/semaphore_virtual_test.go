package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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

// acquirePermit is Acquire that must succeed.
func acquirePermit(t testing.TB, s *fenced.Semaphore, opts ...rlock.AcquireOption) *fenced.Hold {
	t.Helper()
	p, err := s.Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	return p
}

// taken are the slots of the semaphore that are taken in Redis.
func taken(m *miniredis.Miniredis, s *fenced.Semaphore, n int) (slots []int) {
	for i := range n {
		if m.Exists(fmt.Sprintf("{%s}:%d", s.Name(), i)) {
			slots = append(slots, i)
		}
	}
	return slots
}

// once calls instead in place of the first acquire.
func once(rdb *redis.Client, instead func(send func() error) error) {
	var first atomic.Bool
	rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
		if slices.Contains(locktest.Ops(cmd.Args()), "acquire") && first.CompareAndSwap(false, true) {
			return instead(send)
		}
		return send()
	}))
}

// Permits have the lowest free slots, tokens that grow by slot, and what a hold of the slot's lock has.
func TestPermitIsAHoldOfItsSlot(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s := fenced.NewSemaphore(c, "jobs", 3)
		a, b := acquirePermit(t, s), acquirePermit(t, s)
		locktest.DeepEqual(t, "slots", []int{a.Slot(), b.Slot()}, []int{0, 1})
		locktest.Equal(t, "name", b.Name(), "{jobs}:1")
		token, ok := fenced.TokenFrom(b.Context(), "{jobs}:1")
		locktest.Equal(t, "the context has the token", ok, true)
		locktest.Equal(t, "token", token, 1)
		locktest.NoError(t, a.Unlock(t.Context()))
		locktest.IsError(t, context.Cause(a.Context()), rlock.ErrUnlocked)
		again := acquirePermit(t, s, rlock.Lease(time.Minute))
		locktest.Equal(t, "slot", again.Slot(), 0)
		locktest.Equal(t, "token", again.Token(), 2)

		locktest.Sleep(50 * time.Second)
		locktest.NoError(t, again.Err())
		locktest.NoError(t, again.Extend(t.Context(), time.Minute))
		locktest.Sleep(50 * time.Second)
		locktest.NoError(t, again.Err())
		locktest.NoError(t, b.Err()) // it is renewed
		locktest.Sleep(11 * time.Second)
		locktest.IsError(t, again.Err(), rlock.ErrLost)
		locktest.DeepEqual(t, "taken", taken(m, s, 3), []int{1})

		slot := fenced.NewLock(c, "{jobs}:1")
		inner, token, err := slot.LockAndGetToken(b.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "the token of a re-entry", token, 2)
		locktest.NoError(t, slot.Unlock(inner))
		locktest.NoError(t, b.Unlock(t.Context()))
		locktest.IsError(t, again.Unlock(t.Context()), rlock.ErrLost)
		locktest.Equal(t, "books", (*rlock.Client)(c).ID() != "", true)
		locktest.DeepEqual(t, "taken", taken(m, s, 3), []int(nil))
	})
}

// P43: an attempt whose reply is lost is not repeated with its field. The slot that it took comes free, and the call has another one.
func TestP43_LostReply(t *testing.T) {
	for name, call := range map[string]func(s *fenced.Semaphore) (*fenced.Hold, error){
		"Acquire":    func(s *fenced.Semaphore) (*fenced.Hold, error) { return s.Acquire(context.Background()) },
		"TryAcquire": func(s *fenced.Semaphore) (*fenced.Hold, error) { return s.Acquire(context.Background(), rlock.Wait(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 3)
				locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context())) // the script is loaded
				once(rdb, func(send func() error) error {
					_ = send()
					return io.EOF
				})
				p, err := call(s)
				locktest.NoError(t, err)
				locktest.Sleep(time.Second)
				locktest.DeepEqual(t, "taken", taken(m, s, 3), []int{p.Slot()})
				locktest.NoError(t, p.Unlock(t.Context()))
				locktest.Sleep(time.Minute)
				locktest.DeepEqual(t, "taken", taken(m, s, 3), []int(nil))
			})
		})
	}
}

// P43: the lock of a slot does not take the hold of a permit for one that is over, whose acquire has no answer yet.
func TestP43_ThePermitIsNotTakenForOneThatIsOver(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s, slot := fenced.NewSemaphore(c, "jobs", 2), fenced.NewLock(c, "{jobs}:0")
		locktest.NoError(t, slot.Do(t.Context(), func(context.Context, int64) error { return nil }, rlock.Wait(0)))
		locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context())) // the scripts are loaded
		answer := make(chan struct{})
		once(rdb, func(send func() error) error {
			err := send()
			<-answer
			return err
		})
		got := make(chan *fenced.Hold, 1)
		done := locktest.Start(func() error {
			p, err := s.Acquire(t.Context())
			got <- p
			return err
		})
		synctest.Wait()
		for range 3 {
			_, _, err := slot.TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		close(answer)
		locktest.NoError(t, <-done)
		locktest.DeepEqual(t, "taken", taken(m, s, 2), []int{0})
		p := <-got
		locktest.Sleep(time.Minute)
		locktest.NoError(t, p.Unlock(t.Context()))
	})
}

// P43: a call that gives up while its attempt is under way leaves the next one of its client with a field of its own.
func TestP43_AWaiterThatLeaves(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 3)
		locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context())) // the script is loaded
		once(rdb, func(send func() error) error {
			time.Sleep(500 * time.Millisecond)
			return send()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		first := locktest.Start(func() error { _, err := s.Acquire(ctx); return err })
		locktest.Sleep(time.Millisecond)
		p := acquirePermit(t, s)
		locktest.IsError(t, <-first, context.DeadlineExceeded)
		locktest.Sleep(5 * time.Second)
		locktest.DeepEqual(t, "taken", taken(m, s, 3), []int{p.Slot()})
		locktest.NoError(t, p.Unlock(t.Context()))
	})
}

// P45: a try for a permit that is free does not pass a client that was called for it and has not come yet.
func TestP45_ATryDoesNotPassWhoWaits(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		theirs := redistest.PipeClient(t, m)
		s, waits := fenced.NewSemaphore(newClient(t, rdb), "jobs", 1), fenced.NewSemaphore(newClient(t, theirs), "jobs", 1)
		p := acquirePermit(t, s)
		got := locktest.Start(func() error {
			return waits.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(time.Second)
		once(theirs, func(send func() error) error {
			time.Sleep(50 * time.Millisecond)
			return send()
		})
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.DeepEqual(t, "taken", taken(m, s, 1), []int(nil))
		_, err := s.Acquire(t.Context(), rlock.Wait(0))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, <-got)
		locktest.NoError(t, s.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(0)))
	})
}

// P44: two releases call the same client, which has not come yet. It calls the next one when it takes its permit.
func TestP44_TwoReleasesCallOneClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 2)
		a, b := acquirePermit(t, s), acquirePermit(t, s)
		var got []<-chan error
		var first *redis.Client
		var began time.Time
		for i := range 2 {
			theirs := redistest.PipeClient(t, m)
			other := fenced.NewSemaphore(newClient(t, theirs), "jobs", 2)
			got = append(got, locktest.Start(func() error {
				p, err := other.Acquire(t.Context())
				if err == nil && time.Since(began) > 50*time.Millisecond { // the second in the line looks after 100 ms
					err = fmt.Errorf("%d has it after %v", i, time.Since(began))
				}
				if err == nil {
					time.Sleep(time.Second) // nothing is released meanwhile
					err = p.Unlock(t.Context())
				}
				return err
			}))
			locktest.Sleep(time.Second)
			if i == 0 {
				first = theirs
			}
		}
		once(first, func(send func() error) error {
			time.Sleep(20 * time.Millisecond)
			return send()
		})
		began = time.Now()
		locktest.NoError(t, a.Unlock(t.Context()))
		locktest.NoError(t, b.Unlock(t.Context()))
		for _, one := range got {
			locktest.NoError(t, <-one)
		}
	})
}

// P44: the leases of several permits end at the same time, without a word. All who wait get one then.
func TestP44_SeveralSlotsComeFreeAtOnce(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const n = 4
		gone := fenced.NewSemaphore(newClient(t, rdb), "jobs", n)
		for range n {
			acquirePermit(t, gone, rlock.Lease(10*time.Second))
		}
		began := time.Now()
		locktest.Sleep(400 * time.Millisecond)
		type got struct {
			who int
			at  time.Duration
		}
		order := make(chan got, n)
		for i := range n {
			s := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", n)
			go func() {
				p, err := s.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				order <- got{i, time.Since(began)}
				<-p.Done()
			}()
			locktest.Sleep(730 * time.Millisecond) // no look of a second is at the end of the leases
		}
		for range n {
			one := <-order
			if one.at < 10*time.Second-100*time.Millisecond || one.at > 10*time.Second+100*time.Millisecond {
				t.Errorf("%d has it after %v", one.who, one.at)
			}
		}
	})
}

// P44, P24: the first in the line is frozen when the lease of a permit ends without a word. The second looks then too, and gets the permit.
func TestP44_TheSecondLooksWhenALeaseEnds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		acquirePermit(t, fenced.NewSemaphore(newClient(t, rdb), "jobs", 2)) // it is renewed
		gone := acquirePermit(t, fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 2), rlock.Lease(12*time.Second))
		began := time.Now()
		theirs := redistest.PipeClient(t, m)
		var frozen atomic.Bool
		goesOn := make(chan struct{})
		theirs.AddHook(locktest.Hook(func(_ context.Context, _ redis.Cmder, send func() error) error {
			if frozen.Load() {
				<-goesOn
			}
			return send()
		}))
		first := locktest.Start(func() error {
			return fenced.NewSemaphore(newClient(t, theirs), "jobs", 2).Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(500 * time.Millisecond)
		second := acquireLater(t, fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 2))
		locktest.Sleep(500 * time.Millisecond)
		frozen.Store(true)
		p := <-second
		if took := time.Since(began); took < 11*time.Second || took > 12500*time.Millisecond {
			t.Errorf("the second has the permit after %v", took)
		}
		locktest.IsError(t, gone.Err(), rlock.ErrLost)
		close(goesOn)
		locktest.NoError(t, p.Unlock(t.Context()))
		<-first // with an error, where it was frozen for long
	})
}

// acquireLater is acquirePermit in the background.
func acquireLater(t testing.TB, s *fenced.Semaphore) <-chan *fenced.Hold {
	got := make(chan *fenced.Hold, 1)
	go func() {
		p, err := s.Acquire(t.Context())
		locktest.NoError(t, err)
		got <- p
	}()
	return got
}

// The line is fair over clients, a try without a wait does not pass it, and a call that gives up leaves nothing.
func TestSemaphoreServesInOrder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 2)
		held := []*fenced.Hold{acquirePermit(t, s), acquirePermit(t, s)}
		order := make(chan int, 6)
		for i := range 6 {
			other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 2)
			go func() {
				_ = other.Do(context.Background(), func(context.Context, *fenced.Hold) error {
					order <- i
					time.Sleep(5 * time.Second)
					return nil
				})
			}()
			locktest.Sleep(100 * time.Millisecond)
		}
		_, err := s.Acquire(t.Context(), rlock.Wait(2*time.Second))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		began := time.Now()
		for _, p := range held {
			locktest.NoError(t, p.Unlock(t.Context()))
		}
		for i := 0; i < 6; i += 2 { // two at a time
			pair := []int{<-order, <-order}
			slices.Sort(pair)
			locktest.DeepEqual(t, "who", pair, []int{i, i + 1})
			_, err := s.Acquire(t.Context(), rlock.Wait(0))
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		if took := time.Since(began); took > 11*time.Second { // three pairs of 5 s
			t.Errorf("the last one has it after %v", took)
		}
		locktest.Sleep(6 * time.Second)
		locktest.DeepEqual(t, "taken", taken(m, s, 2), []int(nil))
		locktest.Equal(t, "the line is there", m.Exists("fencelock_line_of:{jobs}:*"), false)
	})
}

// A process that dies keeps its permit for a lease, and a slot that is taken out of service is nobody's.
func TestSlotsOfTheDeadAndOutOfService(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		dead, alive := newClient(t, redistest.PipeClient(t, m)), newClient(t, rdb)
		gone := acquirePermit(t, fenced.NewSemaphore(dead, "jobs", 2), rlock.Lease(30*time.Second))
		out := fenced.NewLock(newClient(t, redistest.PipeClient(t, m)), "{jobs}:1")
		held, _, err := out.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		s := fenced.NewSemaphore(alive, "jobs", 2)
		began := time.Now()
		p := acquirePermit(t, s)
		if took := time.Since(began); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("it comes back after %v", took)
		}
		locktest.Equal(t, "slot", p.Slot(), 0)
		locktest.Equal(t, "token", p.Token(), gone.Token()+1)
		locktest.IsError(t, gone.Err(), rlock.ErrLost)
		locktest.NoError(t, out.Unlock(held))
		began = time.Now()
		q := acquirePermit(t, s)
		locktest.Equal(t, "slot", q.Slot(), 1)
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it is back after %v", took)
		}
		locktest.NoError(t, q.Unlock(t.Context()))
		locktest.NoError(t, p.Unlock(t.Context()))
	})
}

// ForceRelease takes the permit of one slot, whose holder learns of that, and calls who waits.
func TestForceRelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 2)
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 2)
		a, b := acquirePermit(t, other), acquirePermit(t, other)
		locktest.Sleep(15 * time.Second)
		next := locktest.Start(func() error {
			p, err := s.Acquire(t.Context())
			if err == nil && (p.Slot() != 1 || p.Token() != 2) {
				err = fmt.Errorf("slot %d, token %d", p.Slot(), p.Token())
			}
			return err
		})
		locktest.Sleep(time.Second)
		began := time.Now()
		freed, err := s.ForceRelease(t.Context(), 1)
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.NoError(t, <-next)
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("who waits has it after %v", took)
		}
		<-b.Done()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the holder learns of it after %v", took)
		}
		locktest.IsError(t, b.Err(), rlock.ErrLost)
		locktest.NoError(t, a.Err())
		_, err = s.ForceRelease(t.Context(), 2)
		locktest.ErrorSays(t, err, "slot 2: there are the slots 0 to 1")
	})
}

// A holder hears that somebody waits for a permit.
func TestPermitHearsThatSomebodyWaits(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 1)
		p := acquirePermit(t, s)
		waited := p.Waited()
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 1)
		got := locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		<-waited
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.NoError(t, <-got)
	})
}

// Two numbers of permits in one client and in two: no slot is given twice, and the larger number has the others for itself.
func TestTwoNumbersOfPermits(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		two, three := fenced.NewSemaphore(c, "jobs", 2), fenced.NewSemaphore(c, "jobs", 3)
		a, b := acquirePermit(t, two), acquirePermit(t, two)
		wait := locktest.Start(func() error {
			return two.Do(t.Context(), func(_ context.Context, p *fenced.Hold) error {
				if p.Slot() > 1 {
					return fmt.Errorf("slot %d of 2", p.Slot())
				}
				return nil
			})
		})
		locktest.Sleep(time.Second)
		third := locktest.Start(func() error {
			return three.Do(t.Context(), func(_ context.Context, p *fenced.Hold) error { return nil })
		})
		locktest.Sleep(time.Second)
		locktest.NoError(t, b.Unlock(t.Context()))
		locktest.NoError(t, <-wait)
		locktest.NoError(t, <-third)
		b = acquirePermit(t, two)

		// A waiter for one of two gives up, and the one for one of three, behind it, has its first answer lost: the slot comes free.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gaveUp := locktest.Start(func() error { _, err := two.Acquire(ctx); return err })
		locktest.Sleep(time.Millisecond)
		third = locktest.Start(func() error {
			return three.Do(t.Context(), func(_ context.Context, p *fenced.Hold) error { return nil }, rlock.Wait(5*time.Second))
		})
		locktest.Sleep(998 * time.Millisecond)
		once(rdb, func(send func() error) error {
			_ = send()
			return io.EOF
		})
		locktest.IsError(t, <-gaveUp, context.DeadlineExceeded)
		locktest.NoError(t, <-third)
		locktest.NoError(t, b.Unlock(t.Context()))
		locktest.NoError(t, a.Unlock(t.Context()))
	})
}

// What cannot be is an error at once, with nothing changed in Redis.
func TestSemaphoreBadInput(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	for want, s := range map[string]*fenced.Semaphore{
		"0 permits: use 1 to 1024":    fenced.NewSemaphore(c, "jobs", 0),
		"1025 permits: use 1 to 1024": fenced.NewSemaphore(c, "jobs", 1025),
		"name is empty":               fenced.NewSemaphore(c, "", 5),
		"make it with NewSemaphore":   new(fenced.Semaphore),
		"is nil or a zero value":      nil,
		"client is nil":               fenced.NewSemaphore(nil, "jobs", 5),
	} {
		_, err := s.Acquire(t.Context())
		locktest.ErrorSays(t, err, want)
		_, err = s.Acquire(t.Context(), rlock.Wait(0))
		locktest.ErrorSays(t, err, want)
		_, err = s.ForceRelease(t.Context(), 0)
		locktest.ErrorSays(t, err, want)
	}
	s := fenced.NewSemaphore(c, "jobs", 5)
	_, err := s.Acquire(t.Context(), rlock.Reenter())
	locktest.ErrorSays(t, err, "not reentrant")
	locktest.ErrorSays(t, s.Do(t.Context(), nil), "there is nothing to do")
	_, _, err = fenced.NewLock(c, "{jobs}:*").TryLockAndGetToken(t.Context(), 0, 0)
	locktest.ErrorSays(t, err, "stands for the slots of a semaphore")
	keys, err := rdb.Keys(t.Context(), "*").Result()
	locktest.NoError(t, err)
	locktest.Equal(t, "keys", len(keys), 0)
	var e *rlock.Error
	if _, err := fenced.NewSemaphore(c, "jobs", -1).Acquire(t.Context()); !errors.As(err, &e) || e.Op != "Acquire" || e.Lock != "jobs" {
		t.Errorf("got %v", err)
	}
}

// Close gives back what waits, and leaves the permits to their leases; Shutdown waits for them.
func TestSemaphoreCloseAndShutdown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s := fenced.NewSemaphore(c, "jobs", 1)
		p := acquirePermit(t, s)
		waits := locktest.Start(func() error { _, err := s.Acquire(t.Context()); return err })
		locktest.Sleep(time.Second)
		shutdown := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		locktest.IsError(t, <-waits, rlock.ErrClosed)
		locktest.Sleep(time.Second)
		locktest.NoError(t, p.Err())
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.NoError(t, <-shutdown)
		locktest.Equal(t, "the line is there", m.Exists("fencelock_line_of:{jobs}:*"), false)

		c = newClient(t, redistest.PipeClient(t, m))
		p = acquirePermit(t, fenced.NewSemaphore(c, "jobs", 1))
		locktest.NoError(t, c.Close())
		locktest.IsError(t, p.Err(), rlock.ErrClosed)
		if err := p.Unlock(t.Context()); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	})
}
