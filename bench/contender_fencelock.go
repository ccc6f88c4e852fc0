package main

import (
	"context"
	"log/slog"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

func dialFenced(addr string) (*client, error) {
	return dialRlock(addr, func(c *rlock.Client, key string) lockFunc {
		return lockOf(fenced.NewLock(c, key))
	})
}

// dialLocal passes locks on within the client.
func dialLocal(addr string) (*client, error) {
	return dialWith(addr, func(c *rlock.Client, key string) lockFunc { return lockOf(fenced.NewLock(c, key)) }, nil, rlock.WithLocalHandoffs(256))
}

func lockOf(lock *fenced.Lock) lockFunc {
	return func(ctx context.Context) (int64, func() error, error) {
		held, token, err := lock.LockAndGetToken(ctx)
		return token, func() error { return lock.Unlock(held) }, err
	}
}

func dialUnfenced(addr string) (*client, error) {
	return dialRlock(addr, func(c *rlock.Client, key string) lockFunc {
		lock := rlock.NewLock(c, key)
		return func(ctx context.Context) (int64, func() error, error) {
			held, err := lock.Lock(ctx)
			return 0, func() error { return lock.Unlock(held) }, err
		}
	})
}

func dialReadWrite(addr string) (*client, error) {
	side := func(of func(*fenced.RWLock) *fenced.Lock) func(*rlock.Client, string) lockFunc {
		return func(c *rlock.Client, key string) lockFunc { return lockOf(of(fenced.NewRWLock(c, key))) }
	}
	return dialSides(addr, side((*fenced.RWLock).Write), side((*fenced.RWLock).Read))
}

func dialRlock(addr string, lock func(*rlock.Client, string) lockFunc) (*client, error) {
	return dialSides(addr, lock, nil)
}

func dialSides(addr string, lock, read func(*rlock.Client, string) lockFunc) (*client, error) {
	return dialWith(addr, lock, read)
}

func dialWith(addr string, lock, read func(*rlock.Client, string) lockFunc, opts ...rlock.Option) (*client, error) {
	rdb := open(addr)
	c, err := rlock.New(rdb, opts...)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &client{
		lock:  func(key string) lockFunc { return lock(c, key) },
		read:  func(key string) lockFunc { return read(c, key) },
		close: func() { _ = c.Close(); _ = rdb.Close() },
	}, nil
}

func dialQuorum(addrs []string) (*client, error) { return dialNodes(addrs) }

func dialLocalQuorum(addrs []string) (*client, error) {
	return dialNodes(addrs, rlock.WithLocalHandoffs(256))
}

// dialNodes says nothing of nodes that do not answer in time: a busy machine has such.
func dialNodes(addrs []string, opts ...rlock.Option) (*client, error) {
	rdbs, closeAll := openAll(addrs)
	opts = append(opts, rlock.WithLease(quorumLease), rlock.WithLogger(slog.New(slog.DiscardHandler)))
	c, err := quorum.New(rdbs, opts...)
	if err != nil {
		closeAll()
		return nil, err
	}
	return &client{
		lock:  func(key string) lockFunc { return lockOf(fenced.NewLock(c, key)) },
		close: func() { _ = c.Close(); closeAll() },
	}, nil
}
