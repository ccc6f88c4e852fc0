package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
)

// Several clients of either side read and write for some seconds, in every way there is, with levels within and Redisson's
// downgrades, while our subscriptions are broken again and again: nobody reads while somebody writes, one writes at a time, a
// writer's token is larger than all before, readers of a time share one that is larger than the last writer's, everybody has
// a turn, and nothing is left but the counter.
func TestReadWriteStorm(t *testing.T) { // not parallel: it is load enough
	s := newSite(t)
	w := newRWWitness()
	rwStorm(t, s, w, 4*time.Second, javaReadsAndWrites)
	noError(t, w.verdict())
	t.Logf("%d readers came beside readers of the other side: %v", w.beside, w.holds)
	turns := map[string]int{}
	for what, n := range w.holds {
		var who string
		var number int
		var does string
		_, err := fmt.Sscanf(what, "%s %d %s", &who, &number, &does)
		noError(t, err)
		turns[who+" "+does] += n
		turns[fmt.Sprint(who, " ", number)] += n
	}
	for _, who := range []string{"go reads", "go writes", "java reads", "java writes", "java downgrades"} {
		if turns[who] == 0 {
			t.Errorf("nobody of %s", who)
		}
	}
	if len(turns) != 5+2*stormClients+2*stormJVM {
		t.Errorf("not everybody had a turn: %v", w.holds)
	}
	if w.beside == 0 {
		t.Error("nobody read beside the other side's readers")
	}
	_, token, err := side(s.client(), writeKind, "l").TryLockAndGetToken(t.Context(), soon, time.Second)
	noError(t, err)
	if token <= w.token {
		t.Errorf("token %d after the storm, %d in it", token, w.token)
	}
	noError(t, s.rdb.Del(t.Context(), "l").Err())
	s.counterAlone("l")
}

// The same storm sees what it is there to see: threads in the JVM that read and write without a lock.
func TestReadWriteStormCatchesALockThatIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := newRWWitness()
	rwStorm(t, s, w, time.Second, func(ctx context.Context, _ *javaClient, who string, w *rwWitness, rng *rand.Rand) error {
		for ctx.Err() == nil && w.verdict() == nil {
			if rng.IntN(2) == 0 {
				w.reads(who, 0)
			} else {
				w.writes(who, 0)
			}
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			w.leaves(who)
		}
		return nil
	})
	if w.verdict() == nil {
		t.Error("nobody noticed")
	}
}

// rwStorm lets both sides' workers loose for a while.
func rwStorm(t *testing.T, s *site, w *rwWitness, length time.Duration, theirs func(context.Context, *javaClient, string, *rwWitness, *rand.Rand) error) {
	t.Helper()
	var javas []*javaClient
	for range stormJVM {
		javas = append(javas, s.java()) // takes its time
	}
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var workers sync.WaitGroup
	run := func(who string, seed uint64, work func(rng *rand.Rand) error) {
		workers.Go(func() {
			if err := work(rand.New(rand.NewPCG(17, seed))); err != nil {
				t.Errorf("%s: %v", who, err)
				stop()
			}
		})
	}
	for i := range stormClients {
		l := fenced.NewRWLock(s.named(ourName), "l")
		for j := range 2 {
			who := fmt.Sprint("go ", 2*i+j)
			run(who, uint64(2*i+j), func(rng *rand.Rand) error { return weReadAndWrite(ctx, l, who, w, rng) })
		}
	}
	for i, java := range javas {
		for j := range 2 {
			who := fmt.Sprint("java ", 2*i+j)
			run(who, uint64(100+2*i+j), func(rng *rand.Rand) error { return theirs(ctx, java, who, w, rng) })
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
	select {
	case <-done:
	case <-time.After(soon): // a thread of Redisson's that had just looked at the lock has missed the last writer's release
		for range 2 * stormJVM {
			noError(t, s.rdb.Publish(context.Background(), rwChannel("l"), "0").Err())
		}
		await(t, done, patience, "everybody comes back")
	}
}

// weReadAndWrite takes and gives back a side of our lock until ctx ends.
func weReadAndWrite(ctx context.Context, l *fenced.RWLock, who string, w *rwWitness, rng *rand.Rand) error {
	for ctx.Err() == nil {
		writes := rng.IntN(3) == 0
		side := l.Read()
		if writes {
			side = l.Write()
		}
		var held context.Context
		var token int64
		var err error
		if rng.IntN(3) == 0 {
			held, token, err = side.TryLockAndGetToken(context.Background(), time.Duration(rng.IntN(20))*time.Millisecond, 20*time.Second)
			if passing(err) {
				continue
			}
		} else {
			held, token, err = side.LockAndGetToken(context.Background())
		}
		if err != nil {
			return err
		}
		if writes {
			w.writes(who, token)
		} else {
			w.reads(who, token)
		}
		if rng.IntN(3) == 0 {
			inner, same, err := l.Read().LockAndGetToken(held)
			if err != nil {
				return err
			}
			if same != token {
				return fmt.Errorf("the level has token %d, the hold %d", same, token)
			}
			if err := l.Read().Unlock(inner); err != nil {
				return err
			}
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
		if err := side.Check(held); err != nil {
			return err
		}
		w.leaves(who)
		if err := side.Unlock(held); err != nil {
			return err
		}
	}
	return nil
}

// javaReadsAndWrites does the same with a thread in the JVM, which also downgrades.
func javaReadsAndWrites(ctx context.Context, java *javaClient, who string, w *rwWitness, rng *rand.Rand) error {
	reading, writing := java.lock(who[len("java "):], readKind, "l"), java.lock(who[len("java "):], writeKind, "l")
	for ctx.Err() == nil {
		l, enter := reading, w.reads
		if rng.IntN(3) == 0 {
			l, enter = writing, w.writes
		}
		var got answer
		var err error
		if rng.IntN(3) == 0 {
			got, err = l.try("tryLock", "wait", fmt.Sprint(rng.IntN(20)), "lease", "20000")
			if err == nil && !got.truth() {
				continue
			}
		} else {
			_, err = l.try("lock")
		}
		if err != nil && strings.Contains(err.Error(), "Unable to acquire subscription lock") {
			continue // as in javaWorker
		}
		if err != nil {
			return err
		}
		enter(who, 0)
		within := rng.IntN(3) == 0
		if within {
			if _, err := reading.try("lock"); err != nil {
				return err
			}
		}
		if within && l == writing && rng.IntN(2) == 0 {
			w.downgrades(who)
			if _, err := writing.try("unlock"); err != nil {
				return err
			}
			l = reading
		} else if within {
			if _, err := reading.try("unlock"); err != nil {
				return err
			}
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
		w.leaves(who)
		if _, err := l.try("unlock"); err != nil {
			return err
		}
	}
	return nil
}
