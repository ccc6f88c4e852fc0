package pubsub_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

func publish(t *testing.T, rdb redis.UniversalClient, channel string) func() error {
	t.Helper()
	return func() error { return rdb.Publish(context.Background(), channel, "0").Err() }
}

func TestServer_KilledSubscribersComeBack(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	b, log := newBus(t, server.Client(), pubsub.Auto)
	direct := server.Client()
	l, other := listen(b, "a"), listen(b, "b")
	l.eventually(t)
	other.eventually(t)
	for range 3 {
		before, beside := l.woken.Load(), other.woken.Load()
		if n := direct.Do(t.Context(), "client", "kill", "type", "pubsub").Val(); n != int64(1) {
			t.Fatalf("%v connections were killed", n)
		}
		// woken twice: there is no connection; there is one again
		redistest.Eventually(t, bound, func() bool {
			return l.woken.Load() >= before+2 && other.woken.Load() >= beside+2 && l.Live() && other.Live()
		}, "the subscriptions are live again")
		l.hears(t, publish(t, direct, "a"))
		other.hears(t, publish(t, direct, "b"))
	}
	redistest.Eventually(t, bound, func() bool { return len(pubsubClients(t, direct)) == 1 }, "one connection is left")
	if len(log.With("")) > 0 {
		t.Logf("logged: %q", log.With(""))
	}
}

func pubsubClients(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	list, err := rdb.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(list), " ", "_"))
}

func TestServer_RestartComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	b, _ := newBus(t, server.Client(), pubsub.Auto)
	l := listen(b, "a")
	l.eventually(t)
	server.Kill()
	redistest.Eventually(t, bound, func() bool { return !l.Live() && l.woken.Load() == 2 }, "the loss is noticed, and wakes")
	server.Restart()
	l.eventually(t)
	l.hears(t, publish(t, server.Client(), "a"))
}

// A frozen server: the pings get no answer, the connection is replaced, and the new one is there when the server is.
func TestServer_FrozenIsNoticed(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	b, log := newBus(t, server.Client(), pubsub.Auto)
	l := listen(b, "a")
	l.eventually(t)
	server.Freeze()
	froze := time.Now()
	redistest.Eventually(t, bound, func() bool { return !l.Live() }, "it is noticed")
	if took := time.Since(froze); took > redistest.Bound(froze, 9*time.Second) {
		t.Errorf("noticed after %v", took)
	}
	if len(log.With("")) == 0 {
		t.Error("nothing is logged")
	}
	server.Thaw()
	l.eventually(t)
	l.hears(t, publish(t, server.Client(), "a"))
}

func limited(t *testing.T, server *redistest.Server, rights ...any) *redis.Client {
	t.Helper()
	if err := server.Client().Do(t.Context(), append([]any{"acl", "setuser", "limited", "on", ">secret"}, rights...)...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
}

func TestServer_NOPERM(t *testing.T) {
	realtime.Test(t, "one line of a log within 1.5 s")
	for what, rights := range map[string][]any{
		"no command":  {"~*", "&*", "+@all", "-subscribe"},
		"no channels": {"~*", "resetchannels", "+@all"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			b, log := newBus(t, limited(t, server, rights...), pubsub.Auto)
			l := listen(b, "a")
			redistest.Eventually(t, bound, func() bool { return len(log.With("")) > 0 }, "it is logged")
			for range 5 {
				next := listen(b, "b")
				next.Close()
			}
			time.Sleep(1500 * time.Millisecond) // for more of it to be logged; without it the test only sees less
			if said := log.With(""); len(said) != 1 || !strings.Contains(said[0], "NOPERM") || !strings.Contains(said[0], "may not subscribe") {
				t.Errorf("logged: %q", said)
			}
			if l.Live() {
				t.Error("live")
			}
		})
	}
}

// A channel that is refused does not take the others with it.
func TestServer_NOPERMForOneChannel(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	b, log := newBus(t, limited(t, server, "~*", "resetchannels", "&good*", "+@all"), pubsub.Auto)
	good, bad, better := listen(b, "good"), listen(b, "bad"), listen(b, "good too")
	good.eventually(t)
	better.eventually(t)
	redistest.Eventually(t, bound, func() bool { return len(log.With("")) == 1 }, "it is logged")
	if bad.Live() {
		t.Error("the refused channel is live")
	}
	good.hears(t, publish(t, server.Client(), "good"))
	if _, err := server.Client().Do(t.Context(), "client", "kill", "type", "pubsub").Result(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, bound, func() bool { return good.woken.Load() >= 4 && good.Live() && better.Live() && !bad.Live() }, "they come back")
}

func TestServer_WrongPassword(t *testing.T) {
	realtime.Test(t, "so many attempts to connect a second")
	t.Parallel()
	server := redistest.Real(t, "--requirepass", "secret")
	var dials atomic.Int64
	rdb := server.Client(func(o *redis.Options) { o.Password = "wrong" })
	rdb.AddHook(locktest.DialHook(func() { dials.Add(1) }))
	b, _ := newBus(t, rdb, pubsub.Auto)
	began := time.Now()
	l := listen(b, "a")
	redistest.Eventually(t, bound, func() bool { return dials.Load() > 0 && time.Since(began) > 2*time.Second }, "attempts are made")
	if n, d := dials.Load(), time.Since(began); n > int64(6*d.Seconds()) {
		t.Errorf("%d connections in %v", n, d)
	}
	if l.Live() {
		t.Error("live")
	}
	if err := server.Client(func(o *redis.Options) { o.Password = "secret" }).ConfigSet(t.Context(), "requirepass", "wrong").Err(); err != nil {
		t.Fatal(err)
	}
	l.eventually(t)
}
