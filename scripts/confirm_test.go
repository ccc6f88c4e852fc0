package scripts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// confirming is a caller on a master, with this confirmation. Its pool hands out its connections in turn: a request for a
// confirmation on another one than the change went over would ask for an old one.
func confirming(t *testing.T, server *redistest.Server, c Confirmation) caller {
	t.Helper()
	rdb := server.Client(func(o *redis.Options) { o.PoolFIFO, o.MinIdleConns = true, 4 })
	load(t, rdb)
	redistest.Eventually(t, 10*time.Second, func() bool { return rdb.PoolStats().IdleConns >= 4 }, "there are connections")
	if strings.Contains(rdb.Info(t.Context(), "replication").Val(), "connected_slaves:1") {
		for range 5 { // each has an old change, which is confirmed
			pipe := rdb.Pipeline()
			pipe.Set(t.Context(), newField(), 1, time.Second)
			had := pipe.Do(t.Context(), "wait", 1, 4000)
			if _, err := pipe.Exec(t.Context()); err != nil || had.Val() != int64(1) {
				t.Fatalf("%v, %v", had, err)
			}
		}
	}
	s := newCaller(t, rdb)
	s.Confirm(c)
	return s
}

const soon = 100 * time.Millisecond // for what will not be confirmed

func wantUnconfirmed(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnconfirmed) || Unanswered(err) || !Passing(err) || !strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("%s says %v", what, err)
	}
}

// What was done is told, and that it does not count, of each op that somebody would rely on: also where it is a repeat, and
// where there was nothing to extend. Each goes over a connection with an old change: one that the replica has confirmed.
func TestConfirm_WhatNoReplicaHas(t *testing.T) {
	t.Parallel()
	site := redistest.Replicated(t, 1)
	for _, confirmed := range []bool{true, false} {
		c := confirming(t, site.Master, Confirmation{Replicas: 1, Timeout: 3 * time.Second})
		field, last := newField(), newField()
		do := func(op Op) func(*Scripts) (Answer, error) {
			return func(s *Scripts) (Answer, error) { return s.Do(t.Context(), op) }
		}
		renew := func(lease time.Duration) func(*Scripts) (Answer, error) {
			return func(s *Scripts) (Answer, error) {
				holds := []Renewal{{Keys: c.keys, Field: field, Lease: lease}}
				s.Renew(t.Context(), holds)
				return Answer{Held: holds[0].Err != ErrGone}, holds[0].Err
			}
		}
		ops := []struct {
			what string
			do   func(*Scripts) (Answer, error)
		}{
			{"acquire", do(Acquire(c.keys, true, field, lease))},
			{"acquire again", do(Acquire(c.keys, true, field, lease))},
			{"acquire in turn, again", do(Acquire(c.keys, true, field, lease).InTurn(Turn{Ticket: "a:1"}))},
			{"re-entry", do(Level(c.keys, true, field, lease, 2, 1))},
			{"re-entry again", do(Level(c.keys, true, field, lease, 2, 1))},
			{"re-entry without a token", do(Level(c.keys, false, field, lease, 3, 2))},
			{"that again", do(Level(c.keys, false, field, lease, 3, 2))},
			{"renewal", renew(2 * lease)},
			{"renewal of what lasts longer", renew(lease)},
			{"transfer", do(Transfer(c.keys, true, last, lease, field))},
			{"transfer again", do(Transfer(c.keys, true, last, lease, field))},
		}
		clients := make([]*Scripts, len(ops))
		for i := range ops {
			timeout := 3 * time.Second
			if !confirmed {
				timeout = soon
			}
			clients[i] = confirming(t, site.Master, Confirmation{Replicas: 1, Timeout: timeout}).Scripts
		}
		if !confirmed {
			site.Sync()
			site.Replicas[0].Freeze()
		}
		for i, o := range ops {
			switch a, err := o.do(clients[i]); {
			case !a.Held:
				t.Errorf("%s: it has not been done: %+v, %v", o.what, a, err)
			case !confirmed:
				wantUnconfirmed(t, o.what, err)
			case err != nil:
				t.Errorf("%s: %v", o.what, err)
			}
		}
		c.hash(map[string]string{last: "1"})

		// What nobody relies on is not waited for.
		c.level(last, 0, 1, 5)
		if !c.unlock(last) {
			t.Error("nothing to unlock")
		}
	}
}

// The ops of one batch are confirmed by one request; the ones that need none, or have got nothing, have their answers.
func TestConfirm_Together(t *testing.T) {
	t.Parallel()
	site := redistest.Replicated(t, 1)
	c := confirming(t, site.Master, Confirmation{Replicas: 1, Timeout: soon})
	field, other := newField(), newField()
	c.acquire(field, lease)
	busy := newCaller(t, c.rdb)
	busy.acquire(other, lease)
	batch := func() []outcome {
		free := newKeys(t)
		return together(c.Scripts,
			Acquire(free, true, newField(), lease),
			Level(c.keys, true, field, lease, 2, 1),
			Acquire(busy.keys, true, newField(), lease),
			Unlock(c.keys, field, false),
			Transfer(busy.keys, true, newField(), lease, newField()),
		)
	}
	check := func(confirmed bool) {
		t.Helper()
		for i, got := range batch() {
			needs, held := i < 2, i < 2 || i == 3
			if got.Held != held {
				t.Errorf("op %d: %+v", i, got)
			}
			switch {
			case needs && !confirmed:
				wantUnconfirmed(t, "an op of a batch", got.err)
			case got.err != nil:
				t.Errorf("op %d says %v", i, got.err)
			case i == 2 && got.TTL <= 0:
				t.Errorf("what another holder has lasts for %v", got.TTL)
			}
		}
	}
	site.Replicas[0].Freeze()
	check(false)
	site.Replicas[0].Thaw()
	c.Confirm(Confirmation{Replicas: 1, Timeout: 10 * time.Second})
	c.acquire(field, lease)
	check(true)

	// Also where the server has forgotten the scripts.
	if err := c.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	c.acquire(field, lease)
	if err := c.renew(field, 2*lease); err != nil {
		t.Errorf("a renewal says %v", err)
	}
	check(true)
	site.Replicas[0].Freeze()
	c.Confirm(Confirmation{Replicas: 1, Timeout: soon})
	if err := c.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), Acquire(c.keys, true, field, lease))
	wantUnconfirmed(t, "an acquire with its script", err)
	wantUnconfirmed(t, "a renewal with its script", c.renew(field, 3*lease))
}

// Who has not got the lock does not wait for a confirmation that he has.
func TestConfirm_WhoHasNothingDoesNotWait(t *testing.T) {
	t.Parallel()
	site := redistest.Replicated(t, 1)
	c, busy := confirming(t, site.Master, Confirmation{Replicas: 1, Timeout: 4 * time.Second}), newCaller(t, site.Master.Client())
	site.Replicas[0].Freeze()
	busy.acquire(newField(), lease)
	got, none := newEar(), newEar()
	ops := []Op{Acquire(c.keys, true, newField(), lease), Acquire(busy.keys, true, newField(), lease)}
	ops[0].caller, ops[1].caller = got, none
	go c.deliver(context.Background(), []*Op{&ops[0], &ops[1]})
	if a := <-none.heard; a.err != nil || a.Held || a.TTL <= 0 {
		t.Errorf("%+v", a)
	}
	if len(got.heard) > 0 {
		t.Error("the other one of the batch was answered before")
	}
	if a, err := c.Do(t.Context(), Acquire(busy.keys, true, newField(), lease)); err != nil || a.Held || a.TTL <= 0 {
		t.Errorf("%+v, %v", a, err)
	}
	wantUnconfirmed(t, "an acquire", (<-got.heard).err)
}

// While batches wait for replicas, what needs none has a batch of its own, at once.
func TestConfirm_ReleasesDoNotWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		s.Confirm(Confirmation{Replicas: 1, Timeout: soon})
		waiting := fill(t, s, g)
		keys, field := newKeys(t), newField()
		for _, op := range []Op{Unlock(keys, field, false), Level(keys, false, field, 0, 1, 2)} {
			waiting = append(waiting, send(s, op))
			g.mustLeave(t, 1)
		}
		g.open(len(waiting))
		for _, x := range waiting {
			<-x.heard
		}
	})
}

// What the server says in place of a confirmation is an error that says what to do.
func TestConfirm_Refused(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, server *redistest.Server, conf Confirmation, passing bool, parts ...string) {
		t.Helper()
		c := confirming(t, server, conf)
		field := newField()
		a, err := c.Do(t.Context(), Acquire(c.keys, true, field, lease))
		if !a.Held || !errors.Is(err, ErrUnconfirmed) || Unanswered(err) || Passing(err) != passing {
			t.Errorf("%+v, %v; passing %v", a, err, Passing(err))
		}
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v: does not say %q", err, part)
			}
		}
	}
	t.Run("no such command", func(t *testing.T) {
		without := []string{"--rename-command", "WAIT", ""}
		if !old(t, redistest.Real(t)) {
			without = append(without, "--rename-command", "WAITAOF", "")
		}
		server := redistest.Real(t, without...)
		try(t, server, Confirmation{Replicas: 1, Timeout: soon}, false, "unknown command", "leave WithReplicas out")
		try(t, server, Confirmation{Fsync: true, Local: 1, Timeout: soon}, false, "unknown command", "Redis 7.2")
	})
	t.Run("no right to it", func(t *testing.T) {
		server := redistest.Real(t)
		if err := server.Client().Do(t.Context(), "acl", "setuser", "default", "-wait").Err(); err != nil {
			t.Fatal(err)
		}
		try(t, server, Confirmation{Replicas: 1, Timeout: soon}, false, "NOPERM", "needs WAIT")
	})
	t.Run("no append-only file", func(t *testing.T) {
		server := redistest.Real(t)
		if old(t, server) {
			try(t, server, Confirmation{Fsync: true, Local: 1, Timeout: soon}, false, "unknown command", "Redis 7.2")
			return
		}
		try(t, server, Confirmation{Fsync: true, Local: 1, Timeout: soon}, false, "appendonly is disabled", "set appendonly yes")
		try(t, server, Confirmation{Fsync: true, Replicas: 1, Timeout: soon}, true, "0 of 1 replicas, and 0 of 0 servers")
	})
}

// old tells whether the server is too old for WAITAOF.
func old(t *testing.T, server *redistest.Server) bool {
	t.Helper()
	err := server.Client().Do(t.Context(), "waitaof", 0, 0, 1).Err()
	if err != nil && !strings.Contains(err.Error(), "unknown command") {
		t.Fatal(err)
	}
	return err != nil
}

// Where the confirmation got lost, what was done is known, and that it is not to count.
func TestConfirm_ReplyLost(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	proxy := redistest.NewProxy(t, server.Addr())
	load(t, server.Client())
	c := newCaller(t, redistest.Client(t, proxy.Addr()))
	c.Confirm(Confirmation{Replicas: 1, Timeout: soon})
	proxy.On("the confirmation", redistest.Command("WAIT"), redistest.SwallowReply)
	field := newField()
	a, err := c.Do(t.Context(), Acquire(c.keys, true, field, lease))
	if !a.Held || a.Token != 1 || !errors.Is(err, ErrUnconfirmed) || Unanswered(err) || !Passing(err) {
		t.Errorf("%+v, %v", a, err)
	}
	proxy.On("the confirmation", redistest.Command("WAIT"), redistest.SwallowReply)
	once := []Renewal{{Keys: c.keys, Field: field, Lease: 2 * lease}}
	if c.renewOnce(t.Context(), once); !Unanswered(once[0].Err) || !Passing(once[0].Err) {
		t.Errorf("a renewal says %v", once[0].Err)
	}
	proxy.On("the confirmation", redistest.Command("WAIT"), redistest.SwallowReply)
	wantUnconfirmed(t, "a renewal that is sent again, as its connection has ended", c.renew(field, 2*lease))
}
