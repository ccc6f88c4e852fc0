package rlocktest

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/scripts"
)

// Other is somebody else who holds a lock: another process. [Server.Hold] and [Server.Steal] make one.
type Other struct {
	server   *Server
	name     string
	field    string
	token    int64
	redisson bool
	keys     *scripts.Keys // of a hold of a read-write lock; nil otherwise
}

// HoldOption changes a default of Hold and Steal.
type HoldOption func(*holdSettings)

type holdSettings struct {
	lease    time.Duration
	redisson bool
	side     scripts.Side
}

// ExpiresAfter makes the hold one of a process that has died: it is over after this time, unless Unlock ends it sooner. By default others hold
// a lock until Unlock.
func ExpiresAfter(lease time.Duration) HoldOption { return func(h *holdSettings) { h.lease = lease } }

// AsRedisson makes the hold one of a Java process with Redisson: its Unlock tells the lock's own channel, and calls nobody in the line of
// clients.
func AsRedisson() HoldOption { return func(h *holdSettings) { h.redisson = true } }

// AsReader makes the hold one that reads, of a read-write lock (fenced.NewRWLock). Hold takes it beside others that read.
func AsReader() HoldOption { return func(h *holdSettings) { h.side = scripts.Reads } }

// AsWriter makes the hold one that writes, of a read-write lock.
func AsWriter() HoldOption { return func(h *holdSettings) { h.side = scripts.Writes } }

// Hold makes somebody else take the lock, which must be free.
func (s *Server) Hold(name string, opts ...HoldOption) *Other {
	s.t.Helper()
	o, before := s.take("Hold", name, false, opts)
	if o.token == 0 {
		s.t.Fatalf("rlocktest: Hold: %q is held by %s: Steal takes it all the same", name, strings.Join(before, ", "))
	}
	return o
}

// Steal makes somebody else take the lock that one of the clients holds, as after a lease that ran out, or somebody's ForceUnlock. The
// holder is told before Steal returns, unless it is stopped: its context has ended with ErrLost. Of a read-write lock all that read lose it, and the other
// one writes, unless AsReader says that it reads.
func (s *Server) Steal(name string, opts ...HoldOption) *Other {
	s.t.Helper()
	return s.steal("Steal", name, opts, s.listening())
}

// StealUnnoticed is [Server.Steal] of which the holder is not told. Its context goes on, as that of a process does that has stood still for
// longer than its lease and has not looked at the clock since. It finds out by its next renewal, a nested acquire, or Unlock. Until then
// only a guard keeps its writes out.
func (s *Server) StealUnnoticed(name string, opts ...HoldOption) *Other {
	s.t.Helper()
	return s.steal("StealUnnoticed", name, opts, nil)
}

func (s *Server) steal(op, name string, opts []HoldOption, tell []*member) *Other {
	s.t.Helper()
	o, before := s.take(op, name, true, opts)
	if len(before) == 0 {
		s.t.Fatalf("rlocktest: %s: nobody holds %q: Hold takes a free lock", op, name)
	}
	for _, m := range tell {
		for _, field := range before {
			engine.ClientOf(m.client).HoldGone(name, field, false)
		}
	}
	return o
}

//go:embed take.lua
var takeText string

var takeScript = redis.NewScript(takeText)

// take takes the lock for somebody else. It returns the fields of the holders before, and a token of 0 where the lock was not taken.
func (s *Server) take(op, name string, anyway bool, opts []HoldOption) (o *Other, before []string) {
	s.t.Helper()
	if name == "" {
		s.t.Fatalf("rlocktest: %s: the lock's name is empty: give it one", op)
	}
	h := holdSettings{lease: untilUnlock}
	for _, opt := range opts {
		opt(&h)
	}
	if h.lease < time.Millisecond {
		s.t.Fatalf("rlocktest: %s: ExpiresAfter(%v): use a millisecond or more", op, h.lease)
	}
	if hash := s.hash(name); anyway && len(hash) > 0 {
		switch readWrite := hash["mode"] != ""; {
		case readWrite && h.side == scripts.NoSide:
			h.side = scripts.Writes
		case !readWrite && h.side != scripts.NoSide:
			s.t.Fatalf("rlocktest: %s: %q is no read-write lock: leave out AsReader and AsWriter", op, name)
		}
	}
	o = &Other{server: s, name: name, field: uuid.NewString() + ":1", redisson: h.redisson}
	if _, _, is := scripts.SlotOf(name); is && !h.redisson {
		o.field = uuid.NewString() + ":-1" // of a permit (P43)
	}
	if h.side != scripts.NoSide {
		o.keys = scripts.ReadWriteOf(name, h.side)
		o.field = o.keys.FieldOf(o.field)
	}
	keys := scripts.KeysOf(name)
	reply, err := takeScript.Run(context.Background(), s.own, []string{keys.Lock, keys.Token}, o.field, h.lease.Milliseconds(), anyway, h.side.Mode()).Slice()
	if err != nil {
		s.t.Fatalf("rlocktest: %s: %v", op, err)
	}
	o.token = reply[0].(int64)
	for _, field := range reply[1:] {
		before = append(before, field.(string))
	}
	return o, before
}

// untilUnlock is a lease that no test waits for.
const untilUnlock = 10 * 365 * 24 * time.Hour

// Token returns the fencing token of the hold: what a write of this holder shows to a guard.
func (o *Other) Token() int64 { return o.token }

// Held tells whether the hold still has the lock.
func (o *Other) Held() bool { return slices.Contains(o.server.fields(o.name), o.field) }

// Unlock releases the lock, and wakes who waits for it.
func (o *Other) Unlock() {
	s := o.server
	s.t.Helper()
	ctx := context.Background()
	var err error
	switch {
	case !o.Held():
		err = fmt.Errorf("%q is not held any more", o.name)
	case o.keys != nil:
		op := scripts.Unlock(o.keys, o.field, false)
		if !o.redisson {
			op = op.Calling("", 0)
		}
		_, err = scripts.New(s.own).Do(ctx, op)
	case o.redisson:
		if err = s.own.Del(ctx, o.name).Err(); err == nil {
			err = s.own.Publish(ctx, scripts.KeysOf(o.name).Channel(), 0).Err()
		}
	default:
		err = s.free(o.name)
	}
	if err != nil {
		s.t.Errorf("rlocktest: Unlock: %v", err)
	}
}

// Expire makes the lease of the lock run out now, whoever has it. A holder among the clients is told before Expire returns, unless it is
// stopped: its context has ended with ErrLost. Who waits for the lock gets it.
func (s *Server) Expire(name string) {
	s.t.Helper()
	fields := s.fields(name)
	if len(fields) == 0 {
		s.t.Fatalf("rlocktest: Expire: nobody holds %q", name)
	}
	for _, m := range s.listening() {
		for _, field := range fields {
			engine.ClientOf(m.client).HoldGone(name, field, true)
		}
	}
	if err := s.free(name); err != nil {
		s.t.Fatalf("rlocktest: Expire: %v", err)
	}
}
