package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

func dialFenced(addr string) (*client, error) {
	return dialRlock(addr, func(c *rlock.Client, key string) lockFunc {
		return lockOf(fenced.NewLock(c, key))
	})
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
	rdb := open(addr)
	c, err := rlock.New(rdb)
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

// dialQuorum says nothing of nodes that do not answer in time: a busy machine has such.
func dialQuorum(addrs []string) (*client, error) {
	rdbs, closeAll := openAll(addrs)
	c, err := quorum.New(rdbs, quorum.WithLockOptions(rlock.WithLease(quorumLease), rlock.WithLogger(slog.New(slog.DiscardHandler))))
	if err != nil {
		closeAll()
		return nil, err
	}
	return &client{
		lock:  func(key string) lockFunc { return lockOf(quorum.NewLock(c, key)) },
		close: func() { _ = c.Close(); closeAll() },
	}, nil
}

func dialScriptsPool(addr string) (*client, error) {
	rdb := open(addr)
	return dialScripts(rdb, func() { _ = rdb.Close() }), nil
}

func dialScriptsAutoPipeline(addr string) (*client, error) {
	return dialScriptsPipelined(addr, nil)
}

func dialScriptsDuplex(addr string) (*client, error) {
	opts := redis.DefaultBlockingAutoPipelineOptions()
	opts.FullDuplex, opts.MaxFlushDelay = true, 50*time.Microsecond
	return dialScriptsPipelined(addr, opts)
}

func dialScriptsPipelined(addr string, opts *redis.AutoPipelineOptions) (*client, error) {
	rdb := open(addr)
	pipe, err := rdb.AutoPipelineWithOptions(opts)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return dialScripts(pipe, func() { _ = pipe.Close(); _ = rdb.Close() }), nil
}

var errTaken = errors.New("taken, and the bare scripts do not wait")

func dialScripts(rdb redis.UniversalClient, closeAll func()) *client {
	s := scripts.New(rdb)
	var holds atomic.Int64
	return &client{close: closeAll, lock: func(key string) lockFunc {
		keys := scripts.KeysOf(key)
		return func(ctx context.Context) (int64, func() error, error) {
			field := fmt.Sprintf("00000000-0000-0000-0000-000000000000:%d", holds.Add(1))
			answer, err := s.Do(ctx, scripts.Acquire(keys, true, field, lease))
			if err == nil && !answer.Held {
				err = errTaken
			}
			return answer.Token, func() error {
				answer, err := s.Do(ctx, scripts.Unlock(keys, field, false))
				if err == nil && !answer.Held {
					err = scripts.ErrGone
				}
				return err
			}, err
		}
	}}
}

// dialScriptsLine is the line's scripts alone, each sent by the caller itself: what the library costs beside them shows, and what
// no library can do faster with them. It waits for its call and nothing else: a lost one would hang it.
func dialScriptsLine(addr string) (*client, error) {
	rdb := open(addr)
	s := scripts.New(rdb)
	id := uuid.NewString()
	var subscriptions []*redis.PubSub
	var made atomic.Int64
	fresh := func() string { return fmt.Sprintf("%s:%d", id, made.Add(1)) }
	return &client{
		close: func() {
			for _, ps := range subscriptions {
				_ = ps.Close()
			}
			_ = rdb.Close()
		},
		lock: func(key string) lockFunc {
			keys := scripts.KeysOf(key)
			ps := rdb.Subscribe(context.Background(), keys.Calls(id))
			subscriptions = append(subscriptions, ps)
			_, failed := ps.Receive(context.Background())
			calls := make(chan string, 1)
			go func() {
				for {
					m, err := ps.ReceiveMessage(context.Background())
					if err != nil {
						return
					}
					if words := strings.Fields(m.Payload); words[0] == "c" {
						select {
						case <-calls: // of an earlier ticket
						default:
						}
						calls <- words[1]
					}
				}
			}()
			return func(ctx context.Context) (int64, func() error, error) {
				if failed != nil {
					return 0, nil, failed
				}
				field, ticket := fresh(), fresh()
				for {
					answer, err := s.Do(ctx, scripts.Acquire(keys, true, field, lease).InTurn(scripts.Turn{Ticket: ticket}))
					if err != nil {
						return 0, nil, err
					}
					if answer.Held {
						return answer.Token, func() error {
							_, err := s.Do(ctx, scripts.Unlock(keys, field, false).Calling("", 0))
							return err
						}, nil
					}
					for called := ""; called != ticket; {
						select {
						case called = <-calls:
						case <-ctx.Done():
							return 0, nil, ctx.Err()
						}
					}
				}
			}
		},
	}, nil
}
