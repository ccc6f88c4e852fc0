package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencelock/fencelock/guard"
)

const (
	deposits = 4  // of each worker
	amount   = 10 // of each deposit
	pausedAt = 2  // the number of ann's deposit that is interrupted

	// What a write loses that comes after the others' deposits with a balance read before them: all of them.
	overwritten = (len(workers) - 1) * deposits * amount

	lease = 300 * time.Millisecond
)

var workers = [...]string{"ann", "bob", "cyd"}

// A teller makes one deposit. pause is to be called between the read and the write.
type teller interface {
	deposit(ctx context.Context, worker int, account *account, pause func()) error
}

// work has all workers make their deposits. Ann comes first; bob and cyd start when she has read the balance of her
// deposit number pausedAt, and she goes on when they are done. So what happens does not depend on luck: with an expiring
// lock, bob and cyd wait for her lease to run out.
func work(ctx context.Context, way teller, account *account) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	paused := make(chan struct{})
	var others sync.WaitGroup
	errs := make([]error, len(workers))
	for i := 1; i < len(workers); i++ {
		others.Go(func() {
			<-paused
			for range deposits {
				if errs[i] = way.deposit(ctx, i, account, func() {}); errs[i] != nil {
					return
				}
			}
		})
	}
	pause := func() {
		close(paused)
		others.Wait()
	}
	pause = sync.OnceFunc(pause) // a deposit that is done again is not paused again
	for n := 1; n <= deposits && errs[0] == nil; n++ {
		interrupted := func() {}
		if n == pausedAt {
			interrupted = pause
		}
		errs[0] = way.deposit(ctx, 0, account, interrupted)
	}
	pause() // where an error came before it
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", workers[i], err)
		}
	}
	return errors.Join(errs...)
}

// account is the data of a service that keeps it in its memory; in a database it would be a row. Its guard, where it has
// one, checks the token and reads or writes in one step.
type account struct {
	guard *guard.Memory // nil: every token is accepted

	mu      sync.Mutex
	balance int
	refused int
}

func newAccount(guarded bool) *account {
	if !guarded {
		return &account{}
	}
	return &account{guard: guard.NewMemory()}
}

// read returns the balance. Reading shows the token, too: from then on an older one is refused, so that nobody can write
// between this read and the write that follows it.
func (a *account) read(ctx context.Context, token int64) (balance int, err error) {
	err = a.do(ctx, token, func() { balance = a.balance })
	return balance, err
}

func (a *account) write(ctx context.Context, token int64, balance int) error {
	return a.do(ctx, token, func() { a.balance = balance })
}

func (a *account) do(ctx context.Context, token int64, what func()) error {
	step := func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		what()
		return nil
	}
	if a.guard == nil {
		return step(ctx)
	}
	err := a.guard.Do(ctx, "account:42", token, step)
	if errors.Is(err, guard.ErrStale) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.refused++
	}
	return err
}
