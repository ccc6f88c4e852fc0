package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

const second = time.Second // of the story, in which the lease is one, so that five see several leases; the default lease is 30 s

// story is what the steps share: two clients as two processes would have them, their locks, and the account.
type story struct {
	out    io.Writer
	began  time.Time
	second time.Duration // how long a second of the story takes

	a, b  *fenced.Lock // the same lock, through one client each
	store store

	mu       sync.Mutex // for the output and what follows
	tokens   []int64    // in the order in which the lock was acquired
	deposits int64
}

const amount = 10 // of each deposit

// tell runs the steps in turn. It takes slow times as long as it has to.
func tell(ctx context.Context, rdb *redis.Client, name, storeScript string, slow int, out io.Writer) (summary string, err error) {
	lease := second * time.Duration(slow)
	silent := rlock.WithLogger(slog.New(slog.DiscardHandler)) // the story tells what is lost
	clientA, err := rlock.New(rdb, rlock.WithLease(lease), rlock.WithPresence("quickstart A"), silent)
	if err != nil {
		return "", err
	}
	defer clientA.Close()
	clientB, err := rlock.New(rdb, rlock.WithLease(lease), rlock.WithPresence("quickstart B"), silent)
	if err != nil {
		return "", err
	}
	defer clientB.Close()
	s := &story{
		out:    out,
		began:  time.Now(),
		second: lease,
		a:      fenced.NewLock(clientA, name),
		b:      fenced.NewLock(clientB, name),
		store:  newStore(rdb, name, storeScript),
	}
	fmt.Fprintf(out, "%8s  %-5s  %s\n", "time", "who", "what")
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Two clients, A and B, want one account", s.compete},
		{"A function that holds the lock calls one that takes it too", s.nest},
		{fmt.Sprintf("A job runs longer than its lease of %v; the watchdog renews it", lease), s.outlive},
		{"A holder is paused past its lease, and writes late", s.pause},
	} {
		fmt.Fprintf(out, "\n%8s  %s\n", "", step.title)
		if err := step.run(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return s.settle(ctx)
}

// say adds a line to the timeline.
func (s *story) say(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%7.3fs  %-5s  %s\n", time.Since(s.began).Seconds(), who, fmt.Sprintf(format, args...))
}

// got notes a token while the lock is held.
func (s *story) got(token int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.tokens); n > 0 && token <= s.tokens[n-1] {
		return fmt.Errorf("token %d came after token %d: tokens must grow", token, s.tokens[n-1])
	}
	s.tokens = append(s.tokens, token)
	return nil
}

// deposit reads the balance and writes a larger one, both with the token.
func (s *story) deposit(ctx context.Context, who string, token int64) error {
	balance, err := s.store.read(ctx, token)
	if err != nil {
		return err
	}
	return s.write(ctx, who, token, balance+amount)
}

func (s *story) write(ctx context.Context, who string, token, balance int64) error {
	if err := s.store.write(ctx, token, balance); err != nil {
		return err
	}
	s.mu.Lock()
	s.deposits++
	s.mu.Unlock()
	s.say(who, "writes balance %d with token %d", balance, token)
	return nil
}

// compete: one has the lock, the other is told so, waits, and gets it.
func (s *story) compete(ctx context.Context) error {
	hold, err := s.a.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx) // for the returns below; a second Unlock does nothing
	s.say("A", "has the lock, token %d", hold.Token())
	if err := s.got(hold.Token()); err != nil {
		return err
	}

	if _, err := s.b.Acquire(ctx, rlock.Wait(0)); !errors.Is(err, rlock.ErrNotAcquired) {
		return fmt.Errorf("one try by B, while A held the lock, gave %v, not ErrNotAcquired", err)
	}
	s.say("B", "tries once: ErrNotAcquired")

	var inA atomic.Bool
	inA.Store(true)
	waited := make(chan error, 1)
	go func() {
		s.say("B", "waits, for up to %v", 5*s.second)
		waited <- s.depositAlone(ctx, "B", s.b, func() error {
			if inA.Load() {
				return errors.New("the lock was given to B while A had it")
			}
			return nil
		})
	}()
	time.Sleep(s.second * 3 / 10) // A's work
	if err := s.deposit(hold.Context(), "A", hold.Token()); err != nil {
		return err
	}
	s.say("A", "unlocks")
	inA.Store(false)
	if err := hold.Unlock(ctx); err != nil {
		return err
	}
	if err := <-waited; err != nil {
		return err
	}
	s.say("B", "unlocks")
	return nil
}

// depositAlone takes the lock, waiting for up to five seconds of the story, checks what is true then, and makes a deposit.
func (s *story) depositAlone(ctx context.Context, who string, lock *fenced.Lock, check func() error) (err error) {
	hold, err := lock.Acquire(ctx, rlock.Wait(5*s.second))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	if err := check(); err != nil {
		return err
	}
	s.say(who, "has the lock, token %d", hold.Token())
	if err := s.got(hold.Token()); err != nil {
		return err
	}
	return s.deposit(hold.Context(), who, hold.Token())
}

// nest: the context carries the holder, so that a function which locks can be called by one that has locked.
func (s *story) nest(ctx context.Context) error {
	return s.a.Do(ctx, func(held context.Context, outer int64) error {
		s.say("A", "has the lock, token %d", outer)
		if err := s.got(outer); err != nil {
			return err
		}
		err := s.a.Do(held, func(held context.Context, inner int64) error {
			count, err := s.a.HoldCount(held)
			if err != nil {
				return err
			}
			s.say("A", "has it again in the inner call, token %d, hold count %d", inner, count)
			if count != 2 {
				return fmt.Errorf("the hold count in the inner call is %d, not 2", count)
			}
			return s.got(inner)
		})
		if err != nil {
			return err
		}
		if _, _, err := s.b.TryLockAndGetToken(ctx, 0, 0); !errors.Is(err, rlock.ErrNotAcquired) {
			return fmt.Errorf("after the inner unlock B's one try gave %v, not ErrNotAcquired", err)
		}
		s.say("B", "tries once after the inner unlock: ErrNotAcquired")
		current, ok := fenced.TokenFrom(held, s.a.Name())
		if !ok || current <= outer {
			return fmt.Errorf("the outer function's current token is %d, %v, not the inner call's", current, ok)
		}
		return s.deposit(held, "A", current)
	})
}

// outlive: a lease that is not the caller's own is renewed until Unlock.
func (s *story) outlive(ctx context.Context) (err error) {
	lease := s.second
	job := lease * 5 / 2
	hold, err := s.a.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	s.say("A", "has the lock, token %d, and works for %v", hold.Token(), job)
	if err := s.got(hold.Token()); err != nil {
		return err
	}
	for range 2 {
		select {
		case <-time.After(job / 2):
		case <-hold.Done():
			return fmt.Errorf("the lock did not outlive its lease: %w", hold.Err())
		}
		ttl, err := s.a.TTL(ctx)
		if err != nil {
			return err
		}
		s.say("A", "still has it; the lease has %v left of %v", ttl, lease)
		if ttl <= 0 || ttl > lease {
			return fmt.Errorf("the lease has %v left, with %v at most", ttl, lease)
		}
		if _, err := s.b.Acquire(ctx, rlock.Wait(0)); !errors.Is(err, rlock.ErrNotAcquired) {
			return fmt.Errorf("one try by B during the job gave %v, not ErrNotAcquired", err)
		}
	}
	return s.deposit(hold.Context(), "A", hold.Token())
}

// pause: A is paused between its last look at the context and its write. The pause is a sleep of this goroutine only; a
// stopped process would stop its watchdog as well, so A takes a lease that no watchdog renews.
func (s *story) pause(ctx context.Context) error {
	short, nap := s.second, s.second*3/2
	hold, err := s.a.Acquire(ctx, rlock.Lease(short))
	if err != nil {
		return err
	}
	old := hold.Token()
	defer hold.Unlock(ctx) // for the returns below; a second Unlock does nothing
	s.say("A", "has the lock, token %d, with a lease of %v that nobody renews", old, short)
	if err := s.got(old); err != nil {
		return err
	}
	balance, err := s.store.read(hold.Context(), old)
	if err != nil {
		return err
	}
	if err := hold.Err(); err != nil {
		return fmt.Errorf("the context of A was over before the pause: %w", err)
	}
	s.say("A", "reads balance %d, sees that its context is alive, and is paused for %v", balance, nap)

	other := make(chan error, 1)
	go func() {
		other <- s.depositAlone(ctx, "B", s.b, func() error {
			if ended := hold.Err(); !errors.Is(ended, rlock.ErrLost) {
				return fmt.Errorf("the hold of A said %v, not ErrLost, when B had the lock", ended)
			}
			return nil
		})
	}()
	time.Sleep(nap)
	if err := <-other; err != nil { // there already, unless this machine is very slow
		return err
	}
	if err := hold.Err(); !errors.Is(err, rlock.ErrLost) {
		return fmt.Errorf("the hold of A ended with %v, not with ErrLost", err)
	}
	s.say("A", "goes on. Its hold has ended: %v", hold.Err())

	// Its last look was before the pause, so that it writes all the same; WithoutCancel keeps the write going, as it
	// would be going on its way to the server.
	err = s.write(context.WithoutCancel(hold.Context()), "A", old, balance+amount)
	if !errors.Is(err, errStale) {
		return fmt.Errorf("the late write of A with token %d gave %v, not a refusal: B's deposit is overwritten", old, err)
	}
	s.say("store", "refuses A's late write: %v", err)
	if err := hold.Unlock(ctx); !errors.Is(err, rlock.ErrLost) {
		return fmt.Errorf("the unlock of A gave %v, not ErrLost", err)
	}
	s.say("A", "unlocks: ErrLost. It does its work again, from the read on")
	return s.depositAlone(ctx, "A", s.a, func() error { return nil })
}

// settle checks what is left when the story is over.
func (s *story) settle(ctx context.Context) (summary string, err error) {
	locked, err := s.b.IsLocked(ctx)
	if err != nil {
		return "", err
	}
	if locked {
		return "", errors.New("the lock is still held at the end")
	}
	first, last := s.tokens[0], s.tokens[len(s.tokens)-1]
	balance, err := s.store.read(ctx, last)
	if err != nil {
		return "", err
	}
	if want := s.deposits * amount; balance != want {
		return "", fmt.Errorf("the balance is %d after %d deposits of %d, not %d", balance, s.deposits, amount, want)
	}
	return fmt.Sprintf("%d acquires with tokens %d to %d, %d deposits, balance %d, 1 late write refused, in %.1fs",
		len(s.tokens), first, last, s.deposits, balance, time.Since(s.began).Seconds()), nil
}
