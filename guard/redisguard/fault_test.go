package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// faulty is a guard behind a proxy, whose server knows the scripts.
func faulty(t *testing.T, opts ...func(*redis.Options)) (*redis.Client, *redistest.Proxy, *redisguard.Guard) {
	t.Helper()
	addr := redistest.Start(t)
	proxy := redistest.NewProxy(t, addr)
	straight := redistest.Client(t, addr)
	w := newGuard(t, straight).Writer("other", 1)
	locktest.NoError(t, w.Do(t.Context(), "PING").Err())
	locktest.NoError(t, w.Eval(t.Context(), increment, []string{"other"}).Err())
	return straight, proxy, newGuard(t, redistest.Client(t, proxy.Addr(), opts...)) // go-redis's own repetitions are on
}

const increment = "return redis.call('INCR', KEYS[1])"

// operations are the ways to write: all add 1 to the key.
var operations = map[string]func(context.Context, redisguard.Writer) *redis.Cmd{
	"Do": func(ctx context.Context, w redisguard.Writer) *redis.Cmd { return w.Do(ctx, "INCR", key) },
	"Eval": func(ctx context.Context, w redisguard.Writer) *redis.Cmd {
		return w.Eval(ctx, increment, []string{key})
	},
}

// maybe fails the test unless err says that the write may have happened, and why.
func maybe(t *testing.T, err error) {
	t.Helper()
	locktest.IsError(t, err, redisguard.ErrUnknown)
	if errors.Is(err, guard.ErrStale) || !strings.Contains(err.Error(), resource) {
		t.Fatalf("%v", err)
	}
}

// never fails the test unless err says that nothing was done.
func never(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, redisguard.ErrUnknown) {
		t.Fatalf("error %v, want one without ErrUnknown", err)
	}
}

// P13: a write whose reply was lost is not repeated behind the caller's back, and the error says so.
func TestP13_ALostReply(t *testing.T) {
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			rdb, proxy, g := faulty(t)
			w := g.Writer(resource, 3)
			proxy.On("the reply is lost", redistest.Command("evalsha"), redistest.SwallowReply)
			err := op(t.Context(), w).Err()
			maybe(t, err)
			holds(t, rdb, key, "1")
			holds(t, rdb, marker, "3")
			n, err := op(t.Context(), w).Int()
			locktest.NoError(t, err)
			locktest.Equal(t, "a plain repeat is done again", n, 2)

			once := w.Once("id")
			proxy.On("the reply is lost", redistest.Command("evalsha"), redistest.SwallowReply)
			maybe(t, op(t.Context(), once).Err())
			holds(t, rdb, key, "3")
			locktest.NoError(t, g.Writer(resource, 9).Do(t.Context(), "GET", key).Err()) // the lock is lost meanwhile
			for _, w := range []redisguard.Writer{once, g.Writer(resource, 9).Once("id")} {
				n, err := op(t.Context(), w).Int()
				locktest.NoError(t, err)
				locktest.Equal(t, "the first reply", n, 3)
			}
			holds(t, rdb, key, "3")
		})
	}
}

// Inv5: a command may reach Redis late. With an id it counts once, and after a newer token not at all.
func TestInv5_ALateCopy(t *testing.T) {
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			rdb, proxy, g := faulty(t)
			late := proxy.On("a copy comes late", redistest.Command("evalsha"), redistest.Duplicate)
			locktest.NoError(t, op(t.Context(), g.Writer(resource, 3).Once("id")).Err())
			late.Release()
			<-late.Done()
			holds(t, rdb, key, "1")

			late = proxy.On("the command comes late", redistest.Command("evalsha"), redistest.HoldCut)
			maybe(t, op(t.Context(), g.Writer(resource, 3)).Err())
			set(t, g.Writer(resource, 4), 100)
			late.Release()
			<-late.Done()
			holds(t, rdb, key, "100")
			holds(t, rdb, marker, "4")
		})
	}
}

// fired tells whether the fault has met its command.
func fired(f *redistest.Fault) bool {
	select {
	case <-f.Fired():
		return true
	default:
		return false
	}
}

// A server that does not answer in time may have it.
func TestASilentServer(t *testing.T) {
	rdb, proxy, g := faulty(t, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond })
	for name, op := range operations {
		held := proxy.On("the command is on its way", redistest.Command("evalsha"), redistest.Hold)
		err := op(t.Context(), g.Writer(resource, 3)).Err()
		for !fired(held) { // on a busy machine a connection may take too long, before the command is sent
			err = op(t.Context(), g.Writer(resource, 3)).Err()
		}
		maybe(t, err)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: the cause is not in %v", name, err)
		}
		before := rdb.Get(t.Context(), key).Val()
		held.Release()
		<-held.Done()
		if after := rdb.Get(t.Context(), key).Val(); after == before {
			t.Errorf("%s: it was not done: this test shows nothing", name)
		}
	}
}

// NOSCRIPT is no error: nothing was done, and the whole script is sent. If that one's reply is lost, nobody knows.
func TestAServerThatForgotTheScripts(t *testing.T) {
	rdb, proxy, g := faulty(t)
	n := 0
	for name, op := range operations {
		locktest.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		got, err := op(t.Context(), g.Writer(resource, 3)).Int()
		locktest.NoError(t, err)
		n++
		locktest.Equal(t, name, got, n)
		locktest.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		proxy.On("the reply is lost", redistest.Command("eval"), redistest.SwallowReply)
		maybe(t, op(t.Context(), g.Writer(resource, 3)).Err())
		n++
		holds(t, rdb, key, fmt.Sprint(n))
	}
}

// What a server says in the ordinary life of an installation says that nothing was done, and stays findable.
func TestRefusals(t *testing.T) {
	rdb, proxy, g := faulty(t, func(o *redis.Options) { o.MinRetryBackoff, o.MaxRetryBackoff = -1, -1 })
	for _, says := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot", "NOREPLICAS Not enough good replicas to write.",
		"BUSY Redis is busy running a script.", "MISCONF Redis is configured to save RDB snapshots", "NOPERM this user has no permissions",
		"OOM command not allowed when used memory > 'maxmemory'.", "ERR max number of clients reached", "CROSSSLOT Keys in request don't hash to the same slot",
	} {
		for name, op := range operations {
			proxy.On(says, redistest.Command("evalsha"), redistest.Refuse(says))
			err := op(t.Context(), g.Writer(resource, 3)).Err()
			never(t, err)
			var said redis.Error
			if !errors.As(err, &said) || !strings.Contains(said.Error(), says) || !strings.Contains(err.Error(), resource) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	locktest.Equal(t, "keys", rdb.Exists(t.Context(), key, marker).Val(), int64(0))
}

// Where there was no connection, nothing was sent.
func TestNothingWasSent(t *testing.T) {
	addr := redistest.Start(t)
	quick := func(o *redis.Options) {
		o.DialerRetries, o.PoolSize, o.PoolTimeout = 1, 1, 20*time.Millisecond
	}
	rdb := redistest.Client(t, addr, quick)
	conn := rdb.Conn() // takes the only connection
	locktest.NoError(t, conn.Ping(t.Context()).Err())
	w := newGuard(t, rdb).Writer(resource, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, op := range operations {
		err := op(t.Context(), w).Err()
		never(t, err)
		locktest.IsError(t, err, redis.ErrPoolTimeout)
		err = op(ended, w).Err()
		never(t, err)
		locktest.IsError(t, err, context.Canceled)
		if !strings.Contains(err.Error(), resource) {
			t.Errorf("%s: %v", name, err)
		}
	}
	locktest.NoError(t, conn.Close())
	locktest.NoError(t, rdb.Close())
	proxy := redistest.NewProxy(t, addr)
	gone := redistest.Client(t, proxy.Addr(), quick, func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			return net.DialTimeout("tcp", "127.0.0.1:1", time.Second) // nobody listens there
		}
	})
	for _, op := range operations {
		err := op(t.Context(), w).Err()
		never(t, err)
		locktest.IsError(t, err, redis.ErrClosed)
		var dial *net.OpError
		if err = op(t.Context(), newGuard(t, gone).Writer(resource, 1)).Err(); !errors.As(err, &dial) || dial.Op != "dial" {
			t.Errorf("this is another error than the one of this test: %v", err)
		}
		never(t, err)
	}
	if _, err := newGuard(t, gone).Seen(t.Context(), resource); err == nil || !strings.Contains(err.Error(), resource) {
		t.Errorf("Seen: %v", err)
	}
}

// Something that answers, and is not what was asked, may have done anything.
func TestAStrangeReply(t *testing.T) {
	for _, reply := range []any{"OK", int64(1), nil, []any{}, []any{int64(1)}, []any{int64(7), "x"}, []any{int64(0), "x"}, []any{int64(0), nil}, []any{"1", "x"}} {
		rdb := redistest.New(t)
		rdb.AddHook(strange{reply: reply})
		err := newGuard(t, rdb).Writer(resource, 1).Do(t.Context(), "SET", key, 1).Err()
		maybe(t, err)
	}
}

// strange is a hook that answers scripts.
type strange struct {
	noHook
	reply any
}

func (s strange) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		cmd.(interface{ SetVal(any) }).SetVal(s.reply)
		return nil
	}
}
