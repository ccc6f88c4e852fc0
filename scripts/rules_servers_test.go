package scripts

import (
	"context"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The rules that only a real server shows: P8 (memory, replicas) and P10's about rights on the channel.

func TestP8_OutOfMemoryStopsNoRelease(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	full := func(full bool) {
		t.Helper()
		limit := "0"
		if full {
			limit = "1"
		}
		if err := rdb.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	oom := func(err error) bool { return err != nil && strings.Contains(err.Error(), "OOM ") }

	t.Run("naive: nobody can unlock", func(t *testing.T) {
		defer full(false)
		c, field := newCaller(t, rdb), newField()
		c.naiveLock(field)
		full(true)
		if _, err := c.naive("unlock", []string{c.keys.Lock}, lease.Milliseconds(), field, c.keys.Channel()); !oom(err) {
			t.Fatalf("the naive unlock says %v: this test no longer shows why", err)
		}
		if _, err := c.naive("level", []string{c.keys.Lock}, field, 2); !oom(err) {
			t.Fatalf("the naive level says %v: this test no longer shows why", err)
		}
		c.hash(map[string]string{field: "1"})
	})
	t.Run("ours", func(t *testing.T) {
		defer full(false)
		c, free, field := newCaller(t, rdb), newCaller(t, rdb), newField()
		token := c.acquire(field, lease).Token
		if a := c.level(field, lease, 2, 1); !a.Held {
			t.Fatal("no re-entry")
		}
		full(true)

		for _, fenced := range []bool{true, false} {
			if _, err := c.Do(t.Context(), Acquire(free.keys, fenced, newField(), lease)); !oom(err) || Unanswered(err) || Passing(err) {
				t.Errorf("a new acquire, fenced %v, says %v", fenced, err)
			}
			if s := mustTake(t, rdb, free.keys); len(s.hash) != 0 || s.counter != "" {
				t.Errorf("a refused acquire, fenced %v, left %v", fenced, s)
			}
		}
		before := mustTake(t, rdb, c.keys)
		if _, err := c.Do(t.Context(), Level(c.keys, true, field, lease, 3, 2)); !oom(err) {
			t.Errorf("a re-entry with a new token says %v", err)
		}
		if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
			t.Errorf("a refused re-entry left %v, before it there was %v", after, before)
		}
		for _, fenced := range []bool{true, false} {
			for _, d := range []time.Duration{time.Second, time.Hour} {
				if _, err := c.Do(t.Context(), Transfer(c.keys, fenced, newField(), d, field)); !oom(err) || Unanswered(err) || Passing(err) {
					t.Errorf("a transfer, fenced %v, says %v", fenced, err)
				}
				if after := mustTake(t, rdb, c.keys); !after.sameHash(before) || after.pttl < before.pttl/2 || after.pttl > before.pttl {
					t.Errorf("a refused transfer, fenced %v, left %v, before it there was %v", fenced, after, before)
				}
			}
		}

		if a := c.acquire(field, lease); a.Token != token+1 {
			t.Errorf("a repeat says %+v", a)
		}
		if a := c.acquire(newField(), lease); a.Held || a.TTL <= 0 {
			t.Errorf("a stranger gets %+v", a)
		}
		if err := c.renew(field, time.Hour); err != nil {
			t.Errorf("renew says %v", err)
		}
		if a := c.level(field, 0, 1, 3); !a.Held {
			t.Errorf("an inner unlock says %+v", a)
		}
		c.hash(map[string]string{field: "1", field + "#": "3"})
		if s := c.inspect(field); s.Count != 1 || s.Field != field || s.TTL < 30*time.Minute {
			t.Errorf("inspect says %+v", s)
		}
		if !c.unlock(field) {
			t.Error("unlock says that the hold was not there")
		}
		c.hash(map[string]string{})
		if c.unlock(field) {
			t.Error("a second unlock has found something")
		}
	})
	t.Run("ours: in a batch", func(t *testing.T) {
		defer full(false)
		c, free, other := newCaller(t, rdb), newCaller(t, rdb), newCaller(t, rdb)
		field, last := newField(), newField()
		c.mustHold(field)
		other.mustHold(last)
		full(true)
		said := together(c.Scripts,
			Acquire(free.keys, true, newField(), lease),
			Transfer(c.keys, true, newField(), lease, field),
			Transfer(c.keys, false, newField(), lease, field),
			Unlock(c.keys, field, false),
			Acquire(other.keys, true, newField(), lease),
			Unlock(other.keys, last, false))
		for i, o := range said {
			if released := o.Held && o.err == nil; i < 3 && !oom(o.err) || (i == 3 || i == 5) && !released || i == 4 && (o.Held || o.err != nil) {
				t.Errorf("op %d hears %+v", i, o)
			}
		}
		c.hash(map[string]string{})
		other.hash(map[string]string{})
		if s := mustTake(t, rdb, free.keys); len(s.hash) != 0 || s.counter != "" {
			t.Errorf("a refused acquire left %v", s)
		}
	})
	t.Run("ours: the last change before the unlock is an inner unlock, the first of the hold", func(t *testing.T) {
		defer full(false)
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		full(true)
		if a := c.level(field, 0, 1, 1); !a.Held { // adds the field of the change number
			t.Errorf("level says %+v", a)
		}
		if !c.unlock(field) {
			t.Error("unlock says that the hold was not there")
		}
	})
}

// asked are all ops, with each of their answers: those of a hold that is there, and those of one that is not.
func asked(c caller, holder, stranger string) map[string]Op {
	other := newKeys(c)
	return map[string]Op{
		"acquire, free":             Acquire(other, true, stranger, lease),
		"acquire, free, no token":   Acquire(other, false, stranger, lease),
		"acquire, held":             Acquire(c.keys, true, stranger, lease),
		"acquire, repeat":           Acquire(c.keys, true, holder, lease),
		"acquire, repeat no token":  Acquire(c.keys, false, holder, lease),
		"level, up":                 Level(c.keys, true, holder, lease, 2, 9),
		"level, down":               Level(c.keys, false, holder, 0, 2, 9),
		"level, repeat":             Level(c.keys, true, holder, lease, 2, 1),
		"level, repeat down":        Level(c.keys, false, holder, 0, 2, 1),
		"level, lost":               Level(c.keys, true, stranger, lease, 2, 9),
		"transfer":                  Transfer(c.keys, true, stranger, lease, holder),
		"transfer, no token":        Transfer(c.keys, false, stranger, lease, holder),
		"transfer, gone":            Transfer(c.keys, true, newField(), lease, stranger),
		"transfer, free":            Transfer(other, true, newField(), lease, stranger),
		"transfer, repeat":          Transfer(c.keys, true, holder, lease, stranger),
		"transfer, repeat no token": Transfer(c.keys, false, holder, lease, stranger),
		"unlock":                    Unlock(c.keys, holder, false),
		"unlock, not there":         Unlock(c.keys, stranger, false),
		"unlock, nothing there":     Unlock(other, stranger, false),
	}
}

// asks are all calls, as asked; ops alone, and all of them in one batch.
func asks(c caller, holder, stranger string) map[string]func() error {
	ctx := c.TB.Context()
	all := map[string]func() error{
		"renew":         func() error { return c.renew(holder, lease) },
		"renew, longer": func() error { return c.renew(holder, lease/10) },
		"renew, gone":   func() error { return c.renew(stranger, lease) },
		"inspect":       func() error { _, err := c.Inspect(ctx, c.keys, holder); return err },
		"inspect, free": func() error { _, err := c.Inspect(ctx, newKeys(c), holder); return err },
	}
	var names []string
	var ops []Op
	for name, op := range asked(c, holder, stranger) {
		names, ops = append(names, name), append(ops, op)
		all[name] = func() error { _, err := c.Do(ctx, op); return err }
	}
	for i, o := range together(c.Scripts, ops...) {
		all["in a batch: "+names[i]] = func() error { return o.err }
	}
	return all
}

func TestP8_AReplicaGivesNoAnswer(t *testing.T) {
	master := redistest.Real(t, "--repl-diskless-sync-delay", "0")
	_, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Real(t, "--replicaof", "127.0.0.1", port)
	rdb := replica.Client(func(o *redis.Options) { o.MaxRetries = -1 })

	c, holder, stranger := newCaller(t, master.Client()), newField(), newField()
	c.mustHold(holder)
	c.level(holder, lease, 2, 1)
	want := mustTake(t, c.rdb, c.keys)
	redistest.Eventually(t, 20*time.Second, func() bool {
		s, err := take(rdb, c.keys)
		return err == nil && s.sameHash(want)
	}, "the replica has the lock")

	onReplica := newCaller(t, rdb)
	onReplica.keys = c.keys
	t.Run("naive: it answers", func(t *testing.T) {
		for what, reply := range map[string]any{
			"held":     onReplica.mustNaive("acquire", c.lockAndCounter(), lease.Milliseconds(), stranger).([]any)[1],
			"gone":     onReplica.mustNaive("renew", []string{c.keys.Lock}, lease.Milliseconds(), stranger).([]any)[0],
			"not held": onReplica.mustNaive("unlock", []string{c.keys.Lock}, lease.Milliseconds(), stranger, c.keys.Channel()),
		} {
			t.Logf("the replica says %s: %v", what, reply)
		}
	})
	t.Run("ours: READONLY", func(t *testing.T) {
		rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
			err := send()
			if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
				t.Errorf("%v: the reply is no error, go-redis keeps the connection", cmd.Args()[:3])
			}
			return err
		}))
		for what, ask := range asks(onReplica, holder, stranger) {
			err := ask()
			if err == nil || !strings.Contains(err.Error(), "READONLY") || !Passing(err) || Unanswered(err) {
				t.Errorf("%s says %v", what, err)
			}
		}
	})
	t.Run("ours: a demoted master", func(t *testing.T) {
		if err := master.Client().Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
			t.Fatal(err)
		}
		for what, ask := range asks(c, holder, stranger) {
			err := ask()
			if err == nil || !strings.Contains(err.Error(), "READONLY") || !Passing(err) || Unanswered(err) {
				t.Errorf("%s says %v", what, err)
			}
		}
		if got := mustTake(t, c.rdb, c.keys); !got.sameHash(want) {
			t.Errorf("the demoted master has %v, want %v", got, want)
		}
	})
}

// as returns a client of the server for a user with these rights.
func as(t *testing.T, server *redistest.Server, user string, rights ...any) *redis.Client {
	t.Helper()
	args := append([]any{"acl", "setuser", user, "reset", "on", ">secret"}, rights...)
	if err := server.Client().Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password, o.MaxRetries = user, "secret", -1 })
}

func TestP10_AReleaseWithoutRightsOnTheChannelIsOne(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, as(t, server, "mute", "~*", "+@all", "resetchannels"))
	t.Run("naive: an error", func(t *testing.T) {
		field := newField()
		c.naiveLock(field)
		if _, err := c.naive("unlock", []string{c.keys.Lock}, lease.Milliseconds(), field, c.keys.Channel()); err == nil {
			t.Fatal("the naive unlock says nothing: this test no longer shows why")
		}
		c.hash(map[string]string{}) // though it is done
	})
	for _, sharded := range []bool{false, true} {
		field := newField()
		c.mustHold(field)
		a, err := c.Do(t.Context(), Unlock(c.keys, field, sharded))
		if err != nil || a != (Answer{Held: true, Untold: true}) {
			t.Errorf("unlock, sharded %v, says %+v, %v", sharded, a, err)
		}
		c.hash(map[string]string{})
	}
}

// The error for missing rights lists what is needed: with that, and no more, everything works.
func TestErrors_TheRightsTheyListAreEnough(t *testing.T) {
	server := redistest.Real(t)
	none := newCaller(t, as(t, server, "none", "~*", "&*", "+ping"))
	_, err := none.Do(t.Context(), Acquire(none.keys, true, newField(), lease))
	if !redis.HasErrorPrefix(err, "NOPERM") || Unanswered(err) || Passing(err) {
		t.Fatalf("without rights acquire says %v", err)
	}
	list := regexp.MustCompile(`needs ([A-Z, ]+) on `).FindStringSubmatch(err.Error())
	if list == nil {
		t.Fatalf("no rights are listed in %q", err)
	}
	rights := []any{"resetchannels", "~" + none.keys.Lock, "~" + none.keys.Token, "~" + none.keys.Line, "&" + none.keys.Channel(), "&" + none.keys.Calls("*")}
	for _, command := range strings.Split(list[1], ", ") {
		rights = append(rights, "+"+strings.ToLower(command))
	}
	heard := listen(t, server.Client(), none.keys.Channel(), false)

	c, field := newCaller(t, as(t, server, "enough", rights...)), newField()
	c.keys = none.keys
	c.mustHold(field)
	c.level(field, lease, 2, 1)
	c.level(field, lease, 2, 1)
	c.level(field, 0, 1, 2)
	if err := c.renew(field, time.Hour); err != nil {
		t.Error(err)
	}
	if err := c.renew(newField(), time.Hour); err != ErrGone {
		t.Error(err)
	}
	c.acquire(newField(), lease)
	c.inspect(field)
	next := withTurn("x", 3, true) // its release is told to all
	c.mustGet(field, next)
	c.mustGet(field, next)
	calls := listen(t, server.Client(), c.keys.Calls("a"), false)
	for i, ticket := range []string{"a:1", "b:1", "b:1"} {
		op := Acquire(c.keys, true, newField(), lease).InTurn(Turn{Ticket: ticket, Look: true, Stale: "c:1"}).WithFloor(time.Hour)
		if a := c.do(op); a.Before != min(i, 1) || a.Outside != 0 {
			t.Errorf("an acquire in turn says %+v", a)
		}
	}
	for _, o := range together(c.Scripts, Level(c.keys, true, next, lease, 2, 1), Unlock(c.keys, next, false).Calling("b:1", 0), Unlock(c.keys, next, false),
		Leave(c.keys, "b:1", false)) {
		if o.err != nil || o.Outside != 0 {
			t.Errorf("%+v", o)
		}
	}
	if got := calls(); got != "c a:1 1" {
		t.Errorf("the first in the line was told %q", got)
	}
	if got := heard(); got != "0" {
		t.Errorf("the release said %q on the channel", got)
	}
}

// listen subscribes, and returns a function that waits for the next message.
func listen(t *testing.T, rdb *redis.Client, channel string, sharded bool) func() string {
	t.Helper()
	sub := rdb.Subscribe
	if sharded {
		sub = rdb.SSubscribe
	}
	s := sub(t.Context(), channel)
	t.Cleanup(func() { _ = s.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	if _, err := s.Receive(ctx); err != nil {
		t.Fatalf("subscribing: %v", err)
	}
	return func() string {
		t.Helper()
		m, err := s.ReceiveMessage(ctx)
		if err != nil {
			t.Fatalf("waiting for a message: %v", err)
		}
		return m.Payload
	}
}

// One release, one message: none for a release that found nothing, none for a repeat.
func TestP10_AReleaseIsToldOnce(t *testing.T) {
	told := func(t *testing.T, rdb *redis.Client, sharded bool) {
		c, field := newCaller(t, rdb), newField()
		heard := listen(t, rdb, c.keys.Channel(), sharded)
		for _, want := range []bool{true, false, false} {
			if want {
				c.mustHold(field)
			}
			a, err := c.Do(t.Context(), Unlock(c.keys, field, sharded))
			if a.Held != want || err != nil || (a.Receivers == 1) != want {
				t.Fatalf("unlock says %+v, %v", a, err)
			}
		}
		send := rdb.Publish
		if sharded {
			send = rdb.SPublish
		}
		send(t.Context(), c.keys.Channel(), "the end")
		if first, second := heard(), heard(); first != "0" || second != "the end" {
			t.Errorf("the channel says %q, then %q", first, second)
		}
	}
	t.Run("PUBLISH", func(t *testing.T) { told(t, redistest.New(t), false) })
	t.Run("SPUBLISH", func(t *testing.T) {
		rdb := redistest.Real(t).Client()
		if err := rdb.SPublish(t.Context(), "any", "").Err(); err != nil {
			redistest.Lacks(t, "this server has no sharded channels: %v", err)
		}
		told(t, rdb, true)
	})
}
