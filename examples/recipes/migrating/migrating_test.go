package migrating

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/rlock"
)

type site struct {
	rdb    *redis.Client
	rs     *redsync.Redsync
	locker *redislock.Client
	client *rlock.Client
}

// open starts a Redis server, and connects all three libraries to it.
func open(t *testing.T) site {
	t.Helper()
	server, err := redisserver.Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := rlock.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return site{rdb: rdb, rs: redsync.New(goredis.NewPool(rdb)), locker: redislock.New(rdb), client: client}
}

// Two processes with the same program lose no update; so do an old one and one in the middle of the rollout, and that one and a new one.
func TestNoUpdateIsLost(t *testing.T) {
	s := open(t)
	programs := map[string]func(ctx context.Context, add func() error) error{
		"redsync": func(ctx context.Context, add func() error) error {
			return DepositRedsync(ctx, s.rs, func(context.Context) error { return add() })
		},
		"redislock": func(ctx context.Context, add func() error) error {
			return DepositRedislock(ctx, s.locker, func(context.Context) error { return add() })
		},
		"fencelock": func(ctx context.Context, add func() error) error {
			return DepositFencelock(ctx, s.client, func(context.Context, int64) error { return add() })
		},
		"redsync+fencelock": func(ctx context.Context, add func() error) error {
			return DepositBothRedsync(ctx, s.rs, s.client, func(context.Context, int64) error { return add() })
		},
		"redislock+fencelock": func(ctx context.Context, add func() error) error {
			return DepositBothRedislock(ctx, s.locker, s.client, func(context.Context, int64) error { return add() })
		},
	}
	for _, pair := range [][2]string{
		{"redsync", "redsync"}, {"redislock", "redislock"}, {"fencelock", "fencelock"},
		{"redsync", "redsync+fencelock"}, {"redsync+fencelock", "redsync+fencelock"}, {"redsync+fencelock", "fencelock"},
		{"redislock", "redislock+fencelock"}, {"redislock+fencelock", "redislock+fencelock"}, {"redislock+fencelock", "fencelock"},
	} {
		t.Run(pair[0]+" beside "+pair[1], func(t *testing.T) {
			balance := fmt.Sprint("balance:", pair)
			ended := make(chan error)
			for _, name := range pair {
				go func() {
					var err error
					for range 3 {
						err = errors.Join(err, programs[name](t.Context(), func() error {
							n, err := s.rdb.Get(t.Context(), balance).Int()
							if err != nil && !errors.Is(err, redis.Nil) {
								return err
							}
							time.Sleep(10 * time.Millisecond) // the other one would read the same, if it could
							return s.rdb.Set(t.Context(), balance, n+1, 0).Err()
						}))
					}
					ended <- err
				}()
			}
			if err := errors.Join(<-ended, <-ended); err != nil {
				t.Fatal(err)
			}
			if n, err := s.rdb.Get(t.Context(), balance).Int(); n != 6 || err != nil {
				t.Errorf("balance %d, %v; want 6", n, err)
			}
		})
	}
}

// The keys that each library uses for the name account:42 while it has the lock.
func TestKeys(t *testing.T) {
	s := open(t)
	keys := func(want ...string) func() error {
		return func() error {
			var got []string
			for _, key := range s.rdb.Keys(t.Context(), "*").Val() {
				got = append(got, key+" "+s.rdb.Type(t.Context(), key).Val())
			}
			if len(got) != len(want) {
				t.Errorf("keys %q, want %q", got, want)
			}
			for _, key := range want {
				if !strings.Contains(strings.Join(got, "\n"), key) {
					t.Errorf("keys %q, want %q", got, want)
				}
			}
			return nil
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		s.rdb.FlushAll(t.Context())
	}
	old := keys("account:42 string")
	check(DepositRedsync(t.Context(), s.rs, func(context.Context) error { return old() }))
	check(DepositRedislock(t.Context(), s.locker, func(context.Context) error { return old() }))
	check(fenced.NewLock(s.client, "account:42").Do(t.Context(), func(context.Context, int64) error {
		return keys("account:42 hash", "redisson_lock_token:{account:42} string")()
	}))
}

// One name in both: neither gets in while the other has the lock, and what they say of it differs.
func TestOneNameInBoth(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	lock := fenced.NewLock(s.client, "account:42")
	wrongType := func(t *testing.T, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("want WRONGTYPE: %v", err)
		}
		t.Log(err)
	}
	nobodyElse := func(context.Context, int64) error {
		t.Error("two holders")
		return nil
	}
	for _, old := range []func(context.Context, func(context.Context) error) error{
		func(ctx context.Context, add func(context.Context) error) error {
			return DepositRedsync(ctx, s.rs, add)
		},
		func(ctx context.Context, add func(context.Context) error) error {
			return DepositRedislock(ctx, s.locker, add)
		},
	} {
		began := time.Now()
		if err := old(ctx, func(ctx context.Context) error {
			wrongType(t, lock.Do(ctx, nobodyElse, rlock.Wait(time.Second)))
			wrongType(t, lock.Do(ctx, nobodyElse)) // does not wait either
			_, err := lock.IsLocked(ctx)
			wrongType(t, err)
			_, err = lock.ForceUnlock(ctx)
			wrongType(t, err)
			return nil
		}); err != nil {
			t.Errorf("the old holder: %v", err)
		}
		t.Log("after", time.Since(began))
	}
	err := lock.Do(ctx, func(ctx context.Context, _ int64) error {
		err := s.rs.NewMutex("account:42", redsync.WithTries(2)).LockContext(ctx)
		var taken *redsync.ErrTaken
		t.Log("redsync:", err)
		if err == nil || !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			t.Errorf("redsync: %v", err)
		}
		_, err = s.locker.Obtain(ctx, "account:42", time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)})
		wrongType(t, err)
		return nil
	})
	if err != nil {
		t.Errorf("our holder: %v", err)
	}
}
