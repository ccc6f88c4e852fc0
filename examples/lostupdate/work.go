package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
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

// account stands for a row in a database.
type account struct {
	mu      sync.Mutex
	balance int
	token   int64 // the largest that was shown
	refused int
	accepts func(token, largest int64) bool
}

func newAccount() *account {
	return &account{accepts: func(token, largest int64) bool { return token >= largest }}
}

// errStale is a token that the account refused.
var errStale = errors.New("stale token")

// read returns the balance. Reading shows the token, too: from then on an older one is refused, so that nobody can write
// between this read and the write that follows it.
func (a *account) read(token int64) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.balance, a.check(token)
}

func (a *account) write(token int64, balance int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.check(token); err != nil {
		return err
	}
	a.balance = balance
	return nil
}

func (a *account) check(token int64) error {
	if !a.accepts(token, a.token) {
		a.refused++
		return fmt.Errorf("%w: %d was shown after %d", errStale, token, a.token)
	}
	a.token = token
	return nil
}
