package rlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Three clients whose goroutines want one lock in every way there is, handed from one to the next, while connections
// break and replies get lost: one holder alive at a time (Inv1), tokens that grow (Inv2), nothing left (Inv9).
func TestHandoffStorm(t *testing.T) {
	handoffStorm(t, 3*time.Second, true)
}

// On a network that is well nothing is left as soon as the last one is done.
func TestHandoffCalm(t *testing.T) {
	handoffStorm(t, time.Second, false)
}

func handoffStorm(t *testing.T, length time.Duration, rough bool) {
	t.Helper()
	realtime.Test(t, "fifty holds, and answers within seconds")
	t.Parallel()
	lease := time.Minute // where nothing is lost no hold ends by itself
	if rough {
		lease = 3 * time.Second
	}
	s := siteAt(t, redistest.Real(t).Addr())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var in section
	var workers sync.WaitGroup
	var clients []*rlock.Client
	patience := 5 * time.Second // where nothing is lost an answer may take its time
	if rough {
		patience = 200 * time.Millisecond
	}
	for i := range 3 {
		rdb := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = patience })
		c := newClient(t, rdb, rlock.WithLease(lease), rlock.WithPollInterval(100*time.Millisecond), rlock.WithHandoffs(4*i), rlock.WithLocalHandoffs(8*(i%2)))
		clients = append(clients, c)
		for j := range 8 {
			l := fenced.NewLock(c, "a")
			rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			workers.Go(func() {
				for ctx.Err() == nil {
					handoffStormTurn(t, l, &in, rng, rough, lease)
				}
			})
		}
	}
	// Over after this time, and when there were holds enough to tell anything.
	began := time.Now()
	over := func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return time.Since(began) > length && len(in.tokens) >= 50 || time.Since(began) > redistest.Bound(began, bound)
	}
	if rough {
		rng := rand.New(rand.NewPCG(7, 7))
		for !over() {
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
			switch rng.IntN(4) {
			case 0:
				s.proxy.Cut()
			case 1:
				s.met(t, s.proxy.On("late", redistest.Command("evalsha"), redistest.HoldReply)).Release()
			default:
				s.met(t, s.proxy.On("lost", redistest.Command("evalsha"), redistest.SwallowReply))
			}
		}
	}
	for !over() {
		time.Sleep(time.Millisecond)
	}
	stop()
	workers.Wait()
	t.Logf("%d holds, the last with token %d", len(in.tokens), in.most)
	if len(in.tokens) < 50 {
		t.Error("too few holds to tell anything")
	}
	within := time.Second
	// On a busy machine an answer may come after its call was given up for one without an answer.
	if rough || redistest.Late(began) > time.Since(began)/20 {
		within = 2*lease + 3*time.Second // P3's list
	}
	redistest.Eventually(t, within, func() bool {
		books := ""
		for _, c := range clients {
			books += c.Books()
		}
		return s.count("a") == "" && books == ""
	}, "Inv9: the lock is free and the books are empty: %v, %q %q %q", s.hash("a"), clients[0].Books(), clients[1].Books(), clients[2].Books())
}

// met waits until the fault has met a command; when nobody sends any more it sends one itself.
func (s *site) met(t *testing.T, f *redistest.Fault) *redistest.Fault {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		select {
		case <-f.Fired():
			return true
		case <-time.After(300 * time.Millisecond):
		}
		probe := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 20*time.Millisecond, -1 })
		_ = probe.EvalSha(context.Background(), "0000000000000000000000000000000000000000", nil).Err()
		_ = probe.Close()
		return false
	}, "the fault meets a command")
	return f
}

// handoffStormTurn takes and gives back the lock, or fails to.
func handoffStormTurn(t *testing.T, l *fenced.Lock, in *section, rng *rand.Rand, rough bool, lease time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rng.IntN(4) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, cancel)
	}
	var held context.Context
	var token int64
	var err error
	switch rng.IntN(4) {
	case 0:
		held, token, err = l.TryLockAndGetToken(ctx, time.Duration(rng.IntN(50))*time.Millisecond, 0)
	case 1:
		held, token, err = l.LockLeaseAndGetToken(ctx, lease*2/3)
	default:
		held, token, err = l.LockAndGetToken(ctx)
	}
	if err != nil {
		if !rough && !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire: %v", err)
		}
		return
	}
	leave := in.enter(t, held, token)
	if rng.IntN(3) == 0 {
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	}
	if rng.IntN(6) == 0 {
		if inner, next, err := l.LockAndGetToken(held); err == nil {
			if next <= token {
				t.Errorf("Inv2: the re-entry has token %d after %d", next, token)
			}
			in.mu.Lock()
			in.most = max(in.most, next)
			in.mu.Unlock()
			if err := l.Unlock(inner); err != nil && !rough {
				t.Errorf("inner Unlock: %v", err)
			}
		}
	}
	if err := l.Check(held); errors.Is(err, rlock.ErrLost) && !rough {
		t.Errorf("lost: %v", err)
	}
	leave()
	if err := l.Unlock(held); errors.Is(err, rlock.ErrNotHeld) || err != nil && !rough {
		t.Errorf("Unlock: %v", err)
	}
}
