package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/rlock"
)

// unlocked makes deposits without a lock.
type unlocked struct{}

func (unlocked) deposit(ctx context.Context, _ int, account *account, pause func()) error {
	return add(ctx, account, 0, pause)
}

// add is the deposit itself: a read, a pause, a write. Its account has no guard where there is no token.
func add(ctx context.Context, account *account, token int64, pause func()) error {
	balance, err := account.read(ctx, token)
	if err != nil {
		return err
	}
	pause()
	return account.write(ctx, token, balance+amount)
}

// plain makes them under the lock that is in every handbook: SET NX PX with a random value, compare-and-delete.
type plain struct {
	rdb *redis.Client
	key string
}

var compareAndDelete = redis.NewScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`)

func (p plain) deposit(ctx context.Context, _ int, account *account, pause func()) error {
	value := rand.Text()
	for {
		taken, err := p.rdb.SetArgs(ctx, p.key, value, redis.SetArgs{Mode: "NX", TTL: lease}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if taken == "OK" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := add(ctx, account, 0, pause); err != nil {
		return err
	}
	// 0: the lock was somebody else's by now. Some log it. The write is done.
	return compareAndDelete.Run(ctx, p.rdb, []string{p.key}, value).Err()
}

// fencedTeller makes them under a fenced lock, with a client for each worker, as for processes of their own.
type fencedTeller struct {
	clients []*rlock.Client
	locks   []*fenced.Lock
}

func newFencedTeller(rdb *redis.Client, name string) (*fencedTeller, error) {
	t := &fencedTeller{}
	for range workers {
		client, err := rlock.New(rdb, rlock.WithLogger(slog.New(slog.DiscardHandler))) // the table tells what is lost
		if err != nil {
			t.close()
			return nil, err
		}
		t.clients = append(t.clients, client)
		t.locks = append(t.locks, fenced.NewLock(client, name))
	}
	return t, nil
}

func (t *fencedTeller) close() {
	for _, client := range t.clients {
		_ = client.Close()
	}
}

// deposit does its work again, from the read on, when the account refused its token. Whether the write was accepted is
// what counts. What Unlock says after an accepted write is no reason to repeat it: with ErrLost the lock was lost, and a release without an
// answer is sent again in the background.
//
// The lease is an explicit one, because the pause here is a function of this process: a process that stands still does
// not renew its leases, but this one's watchdog would. The context is not looked at, because the pause comes after the
// last look.
func (t *fencedTeller) deposit(ctx context.Context, worker int, account *account, pause func()) error {
	for {
		accepted := false
		err := t.locks[worker].TryDo(ctx, 30*time.Second, lease, func(_ context.Context, token int64) error {
			err := add(ctx, account, token, pause)
			accepted = err == nil
			return err
		})
		switch {
		case accepted:
			return nil
		case errors.Is(err, guard.ErrStale):
		default:
			return err
		}
	}
}
