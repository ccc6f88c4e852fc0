package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

const (
	stormClients = 3 // of ours, and two goroutines each
	stormJVM     = 2 // RedissonClients, and two threads each
	ourName      = "ours"
)

// Several clients of either side want one fenced lock for some seconds, in every way there is, with re-entries, while our
// subscriptions are broken again and again: one holder at a time, tokens in the order of the holds, a turn for everybody,
// and nothing left but the counter.
func TestStorm(t *testing.T) { // not parallel: it is load enough
	s := newSite(t)
	w := newWitness()
	storm(t, s, w, 5*time.Second, javaWorker)
	noError(t, w.verdict())
	ours, javas := 0, 0
	for who, n := range w.holds {
		if _, err := fmt.Sscanf(who, "go %d", new(int)); err == nil {
			ours += n
		} else {
			javas += n
		}
	}
	t.Logf("%d holds of ours by %d goroutines, %d of Redisson's by %d threads: %v", ours, 2*stormClients, javas, 2*stormJVM, w.holds)
	if len(w.holds) != 2*stormClients+2*stormJVM {
		t.Errorf("not everybody had a turn: %v", w.holds)
	}
	ctx := t.Context()
	locked := fenced.NewLock(s.client(), "l")
	held, token, err := locked.TryLockAndGetToken(ctx, soon, 0)
	noError(t, err)
	if token <= w.token {
		t.Errorf("token %d after the storm, %d in it", token, w.token)
	}
	noError(t, locked.Unlock(held))
	equal(t, "keys", fmt.Sprint(s.keys()), "[redisson_lock_token:{l}]")
}

// The same storm sees what it is there to see: threads in the JVM that take tokens and no lock.
func TestStormCatchesALockThatIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := newWitness()
	storm(t, s, w, time.Second, func(ctx context.Context, l *javaLock, who string, w *witness, rng *rand.Rand) error {
		for ctx.Err() == nil && w.verdict() == nil {
			token := s.rdb.Incr(context.Background(), "redisson_lock_token:{l}").Val()
			w.enter(who, token)
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			w.leave(who)
		}
		return nil
	})
	if w.verdict() == nil {
		t.Error("nobody noticed")
	}
}

// storm lets both sides' workers loose for a while.
func storm(t *testing.T, s *site, w *witness, length time.Duration, javaWorker func(context.Context, *javaLock, string, *witness, *rand.Rand) error) {
	t.Helper()
	var javas []*javaClient
	for range stormJVM {
		javas = append(javas, s.java()) // takes its time
	}
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var workers sync.WaitGroup
	run := func(who string, seed uint64, work func(who string, rng *rand.Rand) error) {
		workers.Go(func() {
			if err := work(who, rand.New(rand.NewPCG(7, seed))); err != nil {
				t.Errorf("%s: %v", who, err)
				stop()
			}
		})
	}
	for i := range 2 * stormClients {
		if i%2 == 0 {
			l := fenced.NewLock(s.named(ourName, rlock.WithLocalHandoffs(8*(i/2))), "l")
			for j := range 2 {
				run(fmt.Sprint("go ", i+j), uint64(i+j), func(who string, rng *rand.Rand) error { return ourWorker(ctx, l, who, w, rng) })
			}
		}
	}
	for i, java := range javas {
		for j := range 2 {
			l := java.lock(fmt.Sprint("thread", j), fencedKind, "l")
			run(fmt.Sprint("java ", 2*i+j), uint64(100+2*i+j), func(who string, rng *rand.Rand) error { return javaWorker(ctx, l, who, w, rng) })
		}
	}
	broken := 0
	for ctx.Err() == nil {
		select {
		case <-time.After(200 * time.Millisecond):
			broken += s.breakSubscriptions(ourName)
		case <-ctx.Done():
		}
	}
	if broken == 0 {
		t.Error("no subscription was broken")
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	await(t, done, patience, "everybody comes back")
}

// breakSubscriptions closes the subscription connections of the clients of this name, and says how many. In a storm
// Redisson's are left alone: its waiters may sleep for the whole lease after that.
func (s *site) breakSubscriptions(name string) int {
	s.t.Helper()
	broken := 0
	for _, id := range s.subscribers(name) {
		if s.rdb.ClientKillByFilter(context.Background(), "ID", id).Val() > 0 { // it may have gone by itself
			broken++
		}
	}
	return broken
}

// subscribers is the ids of the connections of the clients of this name that listen to channels.
func (s *site) subscribers(name string) []string {
	s.t.Helper()
	list, err := s.rdb.ClientList(context.Background()).Result()
	noError(s.t, err)
	var ids []string
	for line := range strings.Lines(list) {
		info := map[string]string{}
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			info[key] = value
		}
		if info["name"] == name && info["sub"] != "0" {
			ids = append(ids, info["id"])
		}
	}
	return ids
}

// ourWorker takes and gives back the lock until ctx ends.
func ourWorker(ctx context.Context, l *fenced.Lock, who string, w *witness, rng *rand.Rand) error {
	for ctx.Err() == nil {
		var held context.Context
		var token int64
		var err error
		if rng.IntN(3) == 0 {
			held, token, err = l.TryLockAndGetToken(context.Background(), time.Duration(rng.IntN(20))*time.Millisecond, 20*time.Second)
			if errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) { // held, or not told in time
				continue
			}
		} else {
			held, token, err = l.LockAndGetToken(context.Background())
		}
		if err != nil {
			return err
		}
		w.enter(who, token)
		if rng.IntN(3) == 0 {
			inner, token, err := l.LockAndGetToken(held)
			if err != nil {
				return err
			}
			w.again(who, token)
			if err := l.Unlock(inner); err != nil {
				return err
			}
		}
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
		}
		if err := l.Check(held); err != nil {
			return err
		}
		w.leave(who)
		if err := l.Unlock(held); err != nil {
			return err
		}
	}
	return nil
}

// javaWorker does the same with a thread in the JVM.
func javaWorker(ctx context.Context, l *javaLock, who string, w *witness, rng *rand.Rand) error {
	for ctx.Err() == nil {
		var got answer
		var err error
		if rng.IntN(3) == 0 {
			got, err = l.try("tryLockAndGetToken", "wait", fmt.Sprint(rng.IntN(20)), "lease", "20000")
			if err == nil && got.number() < 0 {
				continue
			}
		} else {
			got, err = l.try("lockAndGetToken")
		}
		if err != nil && strings.Contains(err.Error(), "Unable to acquire subscription lock") {
			continue // a wait that ended while Redisson subscribed, of this thread or of another one of its client
		}
		if err != nil {
			return err
		}
		w.enter(who, got.number())
		if rng.IntN(3) == 0 {
			if got, err = l.try("lockAndGetToken"); err != nil {
				return err
			}
			w.again(who, got.number())
			if _, err := l.try("unlock"); err != nil {
				return err
			}
		}
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
		}
		w.leave(who)
		if _, err := l.try("unlock"); err != nil {
			return err
		}
	}
	return nil
}
