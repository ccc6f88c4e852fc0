package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// lacking makes the Redis user lack the right to these commands, until back is called.
func lacking(m *miniredis.Miniredis, commands ...string) (back func()) {
	return lackingAt(m, "", commands...)
}

// lackingAt is lacking, where the first argument of the command, its key, begins like this.
func lackingAt(m *miniredis.Miniredis, key string, commands ...string) (back func()) {
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		refused := slices.Contains(commands, cmd) && strings.HasPrefix(args[0], key)
		if refused {
			c.WriteError(fmt.Sprintf("NOPERM User app has no permissions to run the '%s' command", cmd))
		}
		return refused
	})
	return func() { m.Server().SetPreHook(nil) }
}

// P19, P30: a user loses a right for a while, in which callers wait, give up and come. Soon after the right is back each client that waits
// is in the line, once, and hears of a release, also of a Redisson client's, which calls nobody.
func TestP30_TheRightIsBack(t *testing.T) {
	for _, commands := range [][]string{{"ZREM"}, {"ZRANGE"}, {"ZADD"}, {"PUBLISH"}, {"SUBSCRIBE"}, {"EVALSHA", "EVAL"}, {"ZREM", "ZRANGE", "ZADD"}} {
		t.Run(strings.Join(commands, " "), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				javaHolds(t, rdb, time.Hour)
				var spies []*locktest.Spy
				done := make(chan time.Time, 4)
				waits := func(i int) {
					p := lineNew(t, m, rlock.WithPollInterval(10*time.Second))
					spies = append(spies, p.spy)
					go func() {
						for wait := time.Duration(i+1) * 20 * time.Second; ; wait = time.Hour {
							if held, err := p.l.TryLock(t.Context(), wait, 0); err == nil {
								done <- time.Now()
								_ = p.l.Unlock(held)
								return
							}
							time.Sleep(time.Second)
						}
					}()
					synctest.Wait()
				}
				for i := range 3 {
					waits(i)
				}
				locktest.Equal(t, "in the line", len(lineOf(t, m)), 3)
				back := lacking(m, commands...)
				waits(3)
				locktest.Sleep(90 * time.Second)
				back()
				for _, spy := range spies { // a ticket in the line is left by one command in ten seconds, at first by more
					if leaves, acquires := spy.Count("leave"), spy.Count("acquire"); leaves > acquires+30 {
						t.Errorf("%d leaves, in spite of %d acquires only", leaves, acquires)
					}
				}
				locktest.Sleep(5 * time.Minute)
				if n := len(lineOf(t, m)); n != 4 {
					t.Errorf("in the line when the right is back: got %d, want 4", n)
				}
				began := time.Now()
				locktest.NoError(t, rdb.Del(t.Context(), "l").Err())
				locktest.NoError(t, rdb.Publish(t.Context(), lockChannel, "0").Err())
				for range 4 {
					if took := (<-done).Sub(began); took > 50*time.Millisecond {
						t.Errorf("a client has got the lock %v after its release", took)
					}
				}
				locktest.Equal(t, "in the line at the end", len(lineOf(t, m)), 0)
			})
		})
	}
}

// proven returns a client that has been in the line, and is not any more.
func proven(t *testing.T, m *miniredis.Miniredis, opts ...rlock.Option) *lineClient {
	p := lineNew(t, m, opts...)
	p.link.way = 20 * time.Millisecond
	_, err := p.l.TryLock(t.Context(), time.Second, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.Sleep(time.Second)
	return p
}

// P19: a ticket that enters while its call leaves is left too, however long the right is lost: by an attempt, or by a release of the client's
// own.
func TestP19_TheTicketEntersAsTheRightIsLost(t *testing.T) {
	for what, gives := range map[string]func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, p *lineClient, lost func()){
		"by an attempt": func(t *testing.T, _ *miniredis.Miniredis, _ *redis.Client, p *lineClient, lost func()) {
			lost()
			_, err := p.l.TryLock(t.Context(), 30*time.Millisecond, 0)
			locktest.Equal(t, "it gives up", err != nil, true)
		},
		"by a release": func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client, p *lineClient, lost func()) {
			locktest.NoError(t, rdb.Del(t.Context(), "l").Err())
			held, err := p.l.Lock(t.Context())
			locktest.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = p.l.Lock(ctx) }() // behind the client's own hold
			locktest.Sleep(500 * time.Millisecond)
			lost()
			go func() { _ = p.l.Unlock(held) }()
			time.Sleep(10 * time.Millisecond)
			cancel()
		},
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				javaHolds(t, rdb, time.Hour)
				p := proven(t, m, rlock.WithHandoffs(0))
				var back func()
				gives(t, m, rdb, p, func() { back = lacking(m, "ZREM") })
				locktest.Sleep(30 * time.Second)
				locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
				back()
				locktest.Sleep(10 * time.Second)
				locktest.Equal(t, "in the line when the right is back", len(lineOf(t, m)), 0)
			})
		})
	}
}

// P30: clients that prove in vain what they may do have no line last that nobody may leave.
func TestP30_TheRightIsLostForLong(t *testing.T) {
	for _, command := range []string{"ZREM", "PUBLISH"} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			javaHolds(t, rdb, 2*time.Hour)
			p := lineNew(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			p.waits(t, ctx)
			lacking(m, command, "ZREM")
			cancel()
			for range 4 {
				locktest.Sleep(3 * time.Minute)
				_, err := lineNew(t, m).l.TryLock(t.Context(), time.Second, 0)
				locktest.IsError(t, err, rlock.ErrNotAcquired)
			}
			locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
		})
	}
}

// P19, P30: a leave that is refused does not keep its client from the lines of other locks for longer than a minute, and one that was done is
// not sent again, whatever else was refused.
func TestP19_WhatARefusedLeaveCosts(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		locktest.NoError(t, rdb.HSet(t.Context(), "b", javaField, 1).Err())
		p := lineNew(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		p.waits(t, ctx)
		go func() { _, _ = rlock.NewLock(p.c, "b").TryLock(t.Context(), 5*time.Minute, 0) }()
		locktest.Sleep(time.Second)
		back := lackingAt(m, lineKey, "ZREM")
		cancel()
		locktest.Sleep(90 * time.Second)
		locktest.Equal(t, "it is in the line of another lock", m.Exists("fencelock_line:{b}"), true)
		back()
		locktest.Sleep(5 * time.Minute)
	})
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		p.waits(t, ctx)
		locktest.NoError(t, rdb.ZAdd(ctx, lineKey, redis.Z{Score: 1e18, Member: "another:1"}).Err())
		lacking(m, "PUBLISH")
		locktest.NoError(t, rdb.Del(ctx, "l").Err())
		cancel()
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "leaves", p.spy.Count("leave"), 1)
	})
}

// Inv12: what Redis refuses of a read-write lock may be one of the keys that readers have. Redis does not say which key it was: the error names them too.
func TestInv12_ReadersKeysThatAreRefused(t *testing.T) {
	for name, keys := range map[string]string{
		"page": `"page", "redisson_lock_token:{page}", "{page}:*:rwlock_timeout:*"`,
		"a{b}": `"a{b}", "redisson_lock_token:a{b}", "a{b}:*:rwlock_timeout:*"`,
	} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			l := fenced.NewRWLock(newClient(t, rdb), name)
			plain := fenced.NewLock(newClient(t, rdb), "l")
			reads, err := l.Read().Acquire(t.Context())
			locktest.NoError(t, err)
			m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
				refused := cmd == "EVALSHA" && slices.ContainsFunc(args, func(arg string) bool {
					return strings.Contains(arg, ":rwlock_timeout:") || arg == "l"
				})
				if refused {
					c.WriteError("NOPERM No permissions to access a key")
				}
				return refused
			})
			for what, call := range map[string]func() error{
				"read":   func() error { _, _, err := l.Read().TryLockAndGetToken(t.Context(), 0, 0); return err },
				"write":  func() error { _, _, err := l.Write().TryLockAndGetToken(t.Context(), 0, 0); return err },
				"extend": func() error { return reads.Extend(t.Context(), time.Hour) },
				"look":   func() error { _, err := l.Read().IsLocked(t.Context()); return err },
			} {
				t.Log(what)
				locktest.ErrorSays(t, call(), "NOPERM", "(keys "+keys+": the Redis user needs EVALSHA")
			}
			locktest.ErrorSays(t, reads.Unlock(t.Context()), "NOPERM", "(keys "+keys+": the Redis user needs EVALSHA")
			_, _, err = plain.TryLockAndGetToken(t.Context(), 0, 0)
			locktest.ErrorSays(t, err, "NOPERM", `(keys "l", "redisson_lock_token:{l}": the Redis user needs EVALSHA`)
			m.Server().SetPreHook(nil)
		})
	}
}
