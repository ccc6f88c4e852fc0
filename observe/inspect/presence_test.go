package inspect_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// What a client with presence says of itself is shown with its locks, is no older than ten seconds, and goes with the client.
func TestPresence(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		client := newClient(t, rdb, rlock.WithPresence("billing"))
		other := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("mail"))
		clients, err := in.Clients(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "clients before the first call", len(clients), 0)

		l := fenced.NewLock(client, "account:42")
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		inner, _, err := l.LockAndGetToken(held)
		locktest.NoError(t, err)
		waits := locktest.StartLock(func() (context.Context, error) {
			return locktest.NoToken(fenced.NewLock(other, "account:42").LockAndGetToken(t.Context()))
		})
		locktest.Sleep(1500 * time.Millisecond)
		clients, err = in.Clients(t.Context())
		locktest.NoError(t, err)
		if len(clients) != 2 || clients[0].Name != "billing" || clients[1].Name != "mail" {
			t.Fatalf("the clients: %+v", clients)
		}
		host, _ := os.Hostname()
		c := clients[0]
		if c.ID != client.ID() || c.Host != host || c.PID != os.Getpid() || c.Program == "" || c.Since.IsZero() || c.Seen.Sub(c.Since) != time.Second || len(c.Waits) != 0 {
			t.Errorf("the holder's client: %+v", c)
		}
		if len(c.Holds) != 1 || c.Holds[0].Lock != "account:42" || c.Holds[0].Token != token+1 || c.Holds[0].For != time.Second {
			t.Errorf("its holds: %+v", c.Holds)
		}
		if w := clients[1].Waits; len(w) != 1 || w[0].Lock != "account:42" || w[0].Calls != 1 || w[0].For < time.Second {
			t.Errorf("the waiter's waits: %+v", w)
		}

		locks, err := in.Known(t.Context())
		locktest.NoError(t, err)
		if len(locks) != 1 {
			t.Fatalf("the locks: %+v", locks)
		}
		h := locks[0].Holder
		if h == nil || h.Client != client.ID() || h.Count != 2 || h.By == nil || h.By.Name != "billing" || h.For != time.Second || h.Token != token+1 || !strings.HasPrefix(h.Field, client.ID()+":") {
			t.Errorf("the holder: %+v", h)
		}
		if locks[0].Token != token+1 || locks[0].TTL <= 0 || locks[0].TTL > 30*time.Second || locks[0].Waiting != 1 || locks[0].Other != "" {
			t.Errorf("the lock: %+v", locks[0])
		}
		if line := locks[0].Line; len(line) != 1 || line[0].Client != other.ID() || line[0].By == nil || line[0].By.Name != "mail" || line[0].Calls != 1 {
			t.Errorf("the line: %+v", line)
		}

		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(held))
		r := <-waits
		locktest.NoError(t, r.Err)
		locktest.NoError(t, client.Close())
		clients, err = in.Clients(t.Context())
		locktest.NoError(t, err)
		if len(clients) != 1 || clients[0].Name != "mail" {
			t.Errorf("after Close: %+v", clients)
		}
		locktest.NoError(t, fenced.NewLock(other, "account:42").Unlock(r.Ctx))
		locktest.NoError(t, other.Close())
		locktest.Equal(t, "what is left", fmt.Sprint(m.Keys()), "[redisson_lock_token:{account:42}]")
	})
}

// A client that is gone without a word, or stands still, is shown as long as the longest of its leases, with the time since it was heard of,
// and for half a minute at least. Then nothing is left.
func TestPresenceLastsAsLongAsTheLeases(t *testing.T) {
	for _, c := range []struct {
		what         string
		opts         []rlock.Option
		lease        time.Duration // of a lock that is held; 0: nothing is held
		shown, after time.Duration // since the last write: shown at the one, and not shown any more after the other
	}{
		{"a lease of ten minutes", nil, 10 * time.Minute, 10*time.Minute - 2*time.Second, 10*time.Minute + 11*time.Second},
		{"the watchdog's lease", nil, -1, 39 * time.Second, 41 * time.Second},
		{"a watchdog's lease of an hour", []rlock.Option{rlock.WithLease(time.Hour)}, -1, time.Hour, time.Hour + 11*time.Second},
		{"no lock", []rlock.Option{rlock.WithLease(5 * time.Second)}, 0, 29 * time.Second, 31 * time.Second},
	} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			client := newClient(t, redistest.PipeClient(t, m), append(c.opts, rlock.WithPresence("billing"))...)
			l := rlock.NewLock(client, "l")
			var held context.Context
			var err error
			switch {
			case c.lease > 0:
				held, err = l.LockLease(t.Context(), c.lease)
			case c.lease < 0:
				held, err = l.Lock(t.Context())
			default:
				err = l.Do(t.Context(), func(context.Context) error { return nil })
			}
			locktest.NoError(t, err)
			locktest.Sleep(1500 * time.Millisecond) // it has written twice, half a second ago
			m.SetError("ERR away")                  // for the client; nobody else asks meanwhile
			in := newInspector(t, rdb)
			locktest.Sleep(c.shown - 500*time.Millisecond)
			m.SetError("")
			clients, err := in.Clients(t.Context())
			locktest.NoError(t, err)
			if len(clients) != 1 || clients[0].Silent != c.shown || !clients[0].Quiet() {
				t.Fatalf("%s, after %v: %+v", c.what, c.shown, clients)
			}
			if shown := look(t, in, "l"); c.lease > 0 && (shown.Holder == nil || shown.Holder.By == nil || shown.Holder.By.Name != "billing" || shown.Holder.For != time.Second) {
				t.Errorf("%s, after %v: the lock: %+v", c.what, c.shown, shown)
			}
			since := clients[0].Since
			m.SetError("ERR away")
			locktest.Sleep(c.after - c.shown)
			m.SetError("")
			clients, err = in.Clients(t.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, c.what+", clients at the end", len(clients), 0)
			locktest.Sleep(11 * time.Second) // when they can write again
			clients, err = in.Clients(t.Context())
			locktest.NoError(t, err)
			if len(clients) != 1 || clients[0].Quiet() || !clients[0].Since.Equal(since) {
				t.Errorf("%s, when it can write again: %+v, there since %v", c.what, clients, since)
			}
			locktest.NoError(t, client.Close())
			locktest.Equal(t, "keys that are left", len(slices.DeleteFunc(m.Keys(), func(key string) bool { return key == "l" })), 0)
			runtime.KeepAlive(held)
		})
	}
}

// A lease that outlasts what the client has written is written a second later, if its lock is held still.
func TestPresenceOfALeaseThatOutlastsIt(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		own := redistest.PipeClient(t, m)
		writes := 0
		own.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
			if args := cmd.Args(); len(args) > 3 && strings.HasPrefix(fmt.Sprint(args[3]), "fencelock_client:") {
				writes++
			}
			return send()
		}))
		client := newClient(t, own, rlock.WithPresence("billing"))
		l := rlock.NewLock(client, "l")
		locktest.NoError(t, l.Do(t.Context(), func(context.Context) error { return nil }))
		locktest.Sleep(2 * time.Second)
		before := writes
		for range 70 { // 7 s in which nothing is written, as no lock is held for long
			held, err := l.LockLease(t.Context(), 10*time.Minute)
			locktest.NoError(t, err)
			locktest.NoError(t, l.Unlock(held))
			locktest.Sleep(100 * time.Millisecond)
		}
		locktest.Equal(t, "writes while locks are held for a moment", writes-before, 0)
		held, err := l.LockLease(t.Context(), 10*time.Minute)
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		m.SetError("ERR away")
		locktest.Sleep(9 * time.Minute)
		m.SetError("")
		if shown := look(t, newInspector(t, rdb), "l"); shown.Holder == nil || shown.Holder.By == nil || shown.Holder.For == 0 {
			t.Errorf("nine minutes later: %+v", shown)
		}
		runtime.KeepAlive(held)
	})
}

// On a server as well the hash of a client expires after its longest lease.
func TestPresenceExpiresWithTheLease(t *testing.T) {
	rdb := redistest.New(t)
	client := newClient(t, rdb, rlock.WithPresence("billing"))
	held, err := rlock.NewLock(client, "l").LockLease(t.Context(), 10*time.Minute)
	locktest.NoError(t, err)
	redistest.Eventually(t, time.Minute, func() bool {
		return rdb.PTTL(t.Context(), "fencelock_client:{"+client.ID()+"}").Val() > 10*time.Minute
	}, "the client's hash lasts as long as the lease")
	redistest.Eventually(t, time.Minute, func() bool { return rdb.PTTL(t.Context(), "fencelock_clients").Val() > 10*time.Minute }, "the index lasts as long")
	other := newClient(t, rdb, rlock.WithPresence("mail"))
	locktest.NoError(t, rlock.NewLock(other, "m").Do(t.Context(), func(context.Context) error { return nil }))
	redistest.Eventually(t, time.Minute, func() bool { return rdb.ZScore(t.Context(), "fencelock_clients", other.ID()).Val() > 0 }, "another client is in the index")
	if left := rdb.PTTL(t.Context(), "fencelock_clients").Val(); left < 9*time.Minute {
		t.Errorf("after the write of a client with short leases the index expires after %v", left)
	}
	if shown := look(t, newInspector(t, rdb), "l"); shown.Holder == nil || shown.Holder.By == nil || shown.Holder.By.Quiet() {
		t.Errorf("a client that lives: %+v", shown)
	}
	runtime.KeepAlive(held)
}

// What a client of an earlier version has written has no field that says how long it is there: 30 s.
func TestPresenceOfAnEarlierVersion(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		const id = "6b1f0d1e-0000-4000-8000-000000000001"
		locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_clients", redis.Z{Score: 4e12, Member: id}).Err())
		locktest.NoError(t, rdb.HSet(t.Context(), "fencelock_client:{"+id+"}", "since", 1000, "seen", 2000, "name", "old", "host", "h", "pid", 7, "holds", "null", "waits", "null").Err())
		locktest.NoError(t, rdb.PExpire(t.Context(), "fencelock_client:{"+id+"}", 30*time.Second).Err())
		locktest.Sleep(20 * time.Second)
		clients, err := newInspector(t, rdb).Clients(t.Context())
		locktest.NoError(t, err)
		if len(clients) != 1 || clients[0].Name != "old" || clients[0].PID != 7 || clients[0].Silent != 20*time.Second || clients[0].Cut {
			t.Errorf("%+v", clients)
		}
	})
}

// Of very many locks a client names a thousand, and says how many more there are.
func TestPresenceIsBounded(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb, rlock.WithPresence("billing"))
		other := newClient(t, redistest.PipeClient(t, m))
		const held, waited = 1003, 1002
		ctx, stop := context.WithCancel(t.Context())
		var waits []<-chan locktest.Result
		for i := range max(held, waited) {
			if i < held {
				_, err := rlock.NewLock(client, fmt.Sprint("held", i)).LockLease(t.Context(), time.Hour)
				locktest.NoError(t, err)
			}
			if i < waited {
				name := fmt.Sprint("waited", i)
				_, err := rlock.NewLock(other, name).LockLease(t.Context(), time.Hour)
				locktest.NoError(t, err)
				waits = append(waits, locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(client, name).Lock(ctx) }))
			}
			if i == 0 {
				locktest.Sleep(time.Second)
			}
		}
		locktest.Sleep(11 * time.Second)
		clients, err := newInspector(t, rdb).Clients(t.Context())
		locktest.NoError(t, err)
		c := clients[0]
		if len(c.Holds) != 1000 || c.MoreHolds != held-1000 || len(c.Waits) != 1000 || c.MoreWaits != waited-1000 {
			t.Errorf("%d holds and %d more, %d waits and %d more", len(c.Holds), c.MoreHolds, len(c.Waits), c.MoreWaits)
		}
		if !slices.ContainsFunc(c.Holds, func(h inspect.Hold) bool { return h.Lock == "held0" }) || c.Waits[0].Lock != "waited0" {
			t.Error("the oldest hold and wait are not among them")
		}
		stop()
		for _, w := range waits {
			<-w
		}
	})
}

// Of several calls that wait for a lock a client tells the number, and for how long the first one has waited.
func TestPresenceOfWaits(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		held, err := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l").Lock(t.Context())
		locktest.NoError(t, err)
		l := rlock.NewLock(newClient(t, rdb, rlock.WithPresence("billing")), "l")
		ctx, stop := context.WithCancel(t.Context())
		var waits []<-chan locktest.Result
		for range 2 {
			waits = append(waits, locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) }))
			locktest.Sleep(6 * time.Second)
		}
		clients, err := newInspector(t, rdb).Clients(t.Context())
		locktest.NoError(t, err)
		if w := clients[0].Waits; len(w) != 1 || w[0].Calls != 2 || w[0].For < 8*time.Second || w[0].For > 12*time.Second {
			t.Errorf("the waits: %+v", w)
		}
		stop()
		for _, w := range waits {
			<-w
		}
		locktest.NoError(t, held.Err())
	})
}

// Close of a client with presence waits for the removal of what the client has written, and for nothing where it has written nothing.
func TestPresenceAndClose(t *testing.T) {
	for what, used := range map[string]bool{"unused": false, "used": true} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			client := newClient(t, rdb, rlock.WithPresence("billing"))
			if used {
				locktest.NoError(t, rlock.NewLock(client, "l").Do(t.Context(), func(context.Context) error { return nil }))
				locktest.Sleep(2 * time.Second)
				locktest.Equal(t, "keys of the client that is "+what, len(m.Keys()), 2)
			}
			began := time.Now()
			locktest.NoError(t, client.Close())
			locktest.Equal(t, "Close of the client that is "+what+" took", time.Since(began), 0)
			locktest.Equal(t, "keys after Close of the client that is "+what, len(m.Keys()), 0)
		})
	}
}

// A client that may not write its presence says so once, and locks as ever. When that is over and begins anew it says so again.
func TestPresenceRefused(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		locktest.NoError(t, m.Set("fencelock_clients", "no zset"))
		client := newClient(t, rdb, rlock.WithPresence("billing"), rlock.WithLogger(log.Logger()))
		l := rlock.NewLock(client, "l")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Minute)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
		locktest.Equal(t, "lines", len(log.With("WithPresence")), 1)
		m.Del("fencelock_clients")
		locktest.Sleep(time.Minute)
		m.Del("fencelock_clients")
		locktest.NoError(t, m.Set("fencelock_clients", "no zset"))
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "lines of two times", len(log.With("WithPresence")), 2)
	})
}
