package redisguard_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv4: an older writer does not get in over half of a newer one's script.
func TestInv4_HalfAScript(t *testing.T) {
	rdb, g := fresh(t)
	half := func() error {
		return g.Writer(resource, 5).Eval(t.Context(), "redis.call('SET', KEYS[1], 'half') return redis.call('INCR', KEYS[1])", []string{key}).Err()
	}
	if err := half(); err == nil || !contains(err, "not an integer") {
		t.Fatalf("%v", err)
	}
	isStale(t, g.Writer(resource, 4).Do(t.Context(), "SET", key, "stale").Err(), 4, 5)
	holds(t, rdb, key, "half")
	set(t, g.Writer(resource, 5), "whole")
}

// Inv4: one command can stop half way too. MIGRATE moves what it can, and answers with an error.
func TestInv4_HalfACommand(t *testing.T) {
	from, to := redistest.Real(t), redistest.Real(t)
	rdb, target := from.Client(), to.Client()
	ctx := t.Context()
	locktest.NoError(t, rdb.MSet(ctx, "a", 1, "b", 2).Err())
	locktest.NoError(t, target.Set(ctx, "b", "there", 0).Err())
	g := newGuard(t, rdb)
	host, port, err := net.SplitHostPort(to.Addr())
	locktest.NoError(t, err)
	err = g.Writer(resource, 5).Do(ctx, "MIGRATE", host, port, "", 0, 5000, "KEYS", "a", "b").Err()
	if err == nil || rdb.Exists(ctx, "a").Val() != 0 || rdb.Exists(ctx, "b").Val() != 1 {
		t.Fatalf("this test shows nothing: %v", err)
	}
	isStale(t, g.Writer(resource, 4).Do(ctx, "SET", "b", "stale").Err(), 4, 5)
}

// Inv4: a marker that lives shorter than it should lets an older token in. Whatever changed its life is told so.
func TestInv4_AMarkerOfAnotherLife(t *testing.T) {
	for _, expiry := range [][]redisguard.Option{nil, {redisguard.WithExpiry(time.Hour)}} {
		for name, args := range map[string][]any{
			"PEXPIRE": {"PEXPIRE", marker, 20000},
			"GETEX":   {"GETEX", marker, "PX", 20000},
			"SET":     {"SET", marker, 3, "PX", 20000},
			"PERSIST": {"PERSIST", marker},
			"RESTORE": {"RESTORE", marker, 20000, "", "REPLACE"},
		} {
			if len(expiry) == 0 && name == "PERSIST" {
				continue // it has for ever already
			}
			for _, by := range []string{"Do", "Eval"} {
				t.Run(fmt.Sprint(name, "/", by, "/", len(expiry)), func(t *testing.T) {
					rdb := redistest.Real(t).Client()
					ctx := t.Context()
					w := newGuard(t, rdb, expiry...).Writer(resource, 3)
					set(t, w, 1)
					if name == "RESTORE" {
						args[3] = rdb.Dump(ctx, marker).Val()
					}
					cmd := w.Once("id").Do(ctx, args...)
					if by == "Eval" {
						cmd = w.Once("id").Eval(ctx, "return redis.call(unpack(ARGV))", nil, args...)
					}
					var said redis.Error
					if err := cmd.Err(); !errors.As(err, &said) || !contains(err, "what it did stays") || !contains(err, marker) {
						t.Errorf("%v, %v", cmd.Val(), err)
					}
					locktest.Equal(t, "ids", len(rdb.Keys(ctx, "fencelock_once:*").Val()), 0)
					locktest.Equal(t, "marker", rdb.Get(ctx, marker).Val(), "3") // and its life is what it was
					if ttl := rdb.PTTL(ctx, marker).Val(); (ttl > time.Minute) != (len(expiry) > 0) {
						t.Errorf("the marker lives for %v", ttl)
					}
				})
			}
		}
	}
}

// named is an argument that go-redis asks for its text.
type named string

func (n named) MarshalBinary() ([]byte, error) { return []byte(n), nil }

// The command's name is what the server gets, however it was passed.
func TestTheNameOfACommand(t *testing.T) {
	rdb, g := fresh(t)
	ctx := t.Context()
	w := g.Writer(resource, 3)
	set(t, w, 1)
	flush := "FLUSHALL"
	for _, name := range []any{&flush, named(flush), net.IP(flush), 7, nil, (*string)(nil)} {
		if err := w.Do(ctx, name).Err(); err == nil || !contains(err, "string") || !contains(err, resource) {
			t.Errorf("%T: %v", name, err)
		}
		holds(t, rdb, marker, "3")
	}
	locktest.NoError(t, w.Do(ctx, []byte("PING")).Err())
}

// A script that runs for long has not changed the marker's life, wherever the server's clock goes on meanwhile.
func TestALongScript(t *testing.T) {
	rdb := redistest.Real(t).Client(func(o *redis.Options) { o.ReadTimeout = time.Minute })
	w := newGuard(t, rdb, redisguard.WithExpiry(time.Hour)).Writer(resource, 3)
	for n, took := 1<<22, time.Duration(0); took < 1200*time.Millisecond; n *= 2 {
		began := time.Now()
		locktest.NoError(t, w.Eval(t.Context(), "for i = 1, ARGV[1] do end return 1", nil, n).Err())
		took = time.Since(began)
	}
}
