package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A network in which one command in five is swallowed, held up, repeated or refused, and now and then all connections
// break: whatever it does, at most one holder whose context is alive, tokens that grow in the order of the holds, counts
// that are right, and nothing left at the end (Inv1, Inv2, Inv5, Inv9).
func TestInv5_Storm(t *testing.T) {
	realtime.Test(t, "answers within 100 ms, and a storm of 4 s")
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { storm(t, seed, 4*time.Second, stormLoop) })
	}
}

// The same storm sees what it is there to see: two clients that believe to have the lock at once.
func TestInv5_StormCatchesALockThatIsNone(t *testing.T) {
	realtime.Test(t, "a fault that is met by chance within a second")
	var caught atomic.Bool
	storm(t, 0, time.Second, func(ctx context.Context, s *site, l *fenced.Lock, w *witness, rng *rand.Rand) {
		for ctx.Err() == nil {
			token, err := s.direct.Incr(context.Background(), "redisson_lock_token:{a}").Result() // asks for no lock
			if err != nil {
				return
			}
			leave, err := w.enter(token, func() error { return nil })
			if err != nil {
				caught.Store(true)
				return
			}
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
			leave()
		}
	})
	if !caught.Load() {
		t.Error("nobody noticed")
	}
}

// witness is the shared thing that the lock protects.
type witness struct {
	mu     sync.Mutex
	inside func() error // of who is in the section: nil while its context is alive
	token  int64
	holds  int
}

// enter notes a holder with its first token; alive tells whether it may still believe to have the lock.
func (w *witness) enter(token int64, alive func() error) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside != nil && w.inside() == nil && alive() == nil {
		return nil, fmt.Errorf("Inv1: two holders at once: token %d, and the one of token %d", token, w.token)
	}
	if token <= w.token {
		return nil, fmt.Errorf("Inv2: token %d after token %d", token, w.token)
	}
	w.inside, w.token = alive, token
	w.holds++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.token == token {
			w.inside = nil
		}
	}, nil
}

// stormLoop takes and gives back the lock until ctx ends, with a re-entry now and then.
func stormLoop(ctx context.Context, s *site, l *fenced.Lock, w *witness, rng *rand.Rand) {
	for ctx.Err() == nil {
		wait := time.Duration(rng.IntN(3)) * 500 * time.Millisecond
		held, token, err := l.TryLockAndGetToken(context.Background(), wait, time.Duration(rng.IntN(2))*20*time.Second)
		if err != nil {
			continue
		}
		leave, err := w.enter(token, held.Err)
		if err != nil {
			s.t.Error(err)
			_ = l.Unlock(held)
			return
		}
		time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
		if rng.IntN(2) == 0 {
			inner, next, err := l.LockAndGetToken(held)
			switch {
			case errors.Is(err, rlock.ErrLost):
				s.t.Errorf("lost, though the lease is 20 s and more: %v", context.Cause(held))
			case err == nil:
				if next != token+1 && next != token+2 { // a re-entry that was not answered may have taken one
					s.t.Errorf("Inv2: the re-entry has token %d after %d", next, token)
				}
				if n, err := l.HoldCount(inner); err == nil && n != 2 {
					s.t.Errorf("the hold count is %d with two levels", n)
				}
				if err := l.Unlock(inner); errors.Is(err, rlock.ErrLost) {
					s.t.Errorf("inner Unlock: %v", err)
				}
			}
		}
		if err := held.Err(); err != nil {
			s.t.Errorf("the context of a hold ended: %v", err)
		}
		leave()
		if err := l.Unlock(held); errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrNotHeld) {
			s.t.Errorf("Unlock: %v", err)
		}
	}
}

const duplicates = 0 // where Duplicate is among the actions

func storm(t *testing.T, seed uint64, length time.Duration, loop func(context.Context, *site, *fenced.Lock, *witness, *rand.Rand)) {
	s := newSite(t)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	w := &witness{}
	var workers sync.WaitGroup
	var clients []*rlock.Client
	for i := range 4 {
		rdb := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
		c := newClient(t, rdb, rlock.WithPollInterval(50*time.Millisecond), rlock.WithLease(20*time.Second))
		clients = append(clients, c)
		for j := range 2 {
			rng := rand.New(rand.NewPCG(seed, uint64(10*i+j)))
			workers.Go(func() { loop(ctx, s, fenced.NewLock(c, "a"), w, rng) })
		}
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	actions := []redistest.Action{
		duplicates: redistest.Duplicate,
		redistest.SwallowReply, redistest.SwallowReplySilently, redistest.Hold, redistest.HoldCut, redistest.HoldReply,
		redistest.Refuse("LOADING not now"),
	}
	acquire, evalsha := locktest.CallsOf("acquire"), redistest.Command("evalsha")
	// A second copy of an acquire, alone or in a batch, that was sent once and answered is nothing that TCP makes, and nothing that P3 covers:
	// after the release it takes the lock, and only its expiry ends that.
	repeatable := redistest.And(evalsha, func(args []string) bool { return !acquire(args) && !slices.Contains(args, "acquire+") })
	for faults := 0; ctx.Err() == nil; faults++ {
		match, n := evalsha, rng.IntN(len(actions))
		if n == duplicates {
			match = repeatable
		}
		f := s.proxy.On(fmt.Sprint("fault ", faults), redistest.Nth(1+rng.IntN(8), match), actions[n])
		select {
		case <-f.Fired():
		case <-ctx.Done():
			// let it find its command, so that none is left over
			redistest.Eventually(t, bound, func() bool {
				_ = s.direct.Ping(context.Background()).Err()
				probe := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 20*time.Millisecond, -1 })
				_ = probe.EvalSha(context.Background(), "0000000000000000000000000000000000000000", nil).Err()
				_ = probe.Close()
				select {
				case <-f.Fired():
					return true
				default:
					return false
				}
			}, "the last fault finds a command")
		}
		delay := time.Duration(rng.IntN(60)) * time.Millisecond
		time.AfterFunc(delay, f.Release)
		if rng.IntN(20) == 0 {
			s.proxy.Cut()
		}
	}
	workers.Wait()
	t.Logf("%d holds", w.holds)
	// The ghosts of the last second are released within the schedule, without anybody's help.
	redistest.Eventually(t, 8*time.Second, func() bool { return s.count("a") == "" }, "the lock is free")
	for _, c := range clients {
		locktest.NoError(t, c.Close())
	}
}
