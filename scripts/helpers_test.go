package scripts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// names numbers the locks of this test process, so that no two tests share one.
var names atomic.Int64

func newKeys(t testing.TB) *Keys {
	t.Helper()
	return KeysOf(fmt.Sprintf("lock-%d-%d", os.Getpid(), names.Add(1)))
}

// newField returns a field that no other hold has, as a client makes it.
func newField() string {
	return fmt.Sprintf("01234567-89ab-cdef-0123-456789abcdef:%d", names.Add(1))
}

// snapshot is everything that Redis keeps for one lock.
type snapshot struct {
	hash    map[string]string
	counter string // "" where the key is not there
	pttl    int64  // as PTTL says it

	line     []stay
	linePTTL int64
}

func (s snapshot) String() string {
	return fmt.Sprintf("hash %v, counter %q, pttl %d ms", s.hash, s.counter, s.pttl)
}

// sameHash tells whether the hash and the counter are the same; the time that is left always differs.
func (s snapshot) sameHash(o snapshot) bool {
	return maps.Equal(s.hash, o.hash) && s.counter == o.counter
}

func take(rdb redis.UniversalClient, keys *Keys) (snapshot, error) {
	ctx := context.Background()
	pipe := rdb.Pipeline()
	hash, counter, pttl := pipe.HGetAll(ctx, keys.Lock), pipe.Get(ctx, keys.Token), pipe.Do(ctx, "pttl", keys.Lock)
	line, linePTTL := pipe.ZRangeWithScores(ctx, keys.Line, 0, -1), pipe.Do(ctx, "pttl", keys.Line)
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
		return snapshot{}, err
	}
	s := snapshot{hash: hash.Val(), counter: counter.Val()}
	for _, z := range line.Val() {
		s.line = append(s.line, stay{Ticket: z.Member.(string), Score: int64(z.Score)})
	}
	ms, err := pttl.Int64()
	if s.pttl = ms; err == nil {
		s.linePTTL, err = linePTTL.Int64()
	}
	return s, err
}

func mustTake(t testing.TB, rdb redis.UniversalClient, keys *Keys) snapshot {
	t.Helper()
	s, err := take(rdb, keys)
	if err != nil {
		t.Fatalf("reading the state of %q: %v", keys.Lock, err)
	}
	return s
}

// mustHash fails the test unless the lock's hash is exactly this; nil means that there is no key.
func mustHash(t testing.TB, rdb redis.UniversalClient, keys *Keys, want map[string]string) {
	t.Helper()
	got := mustTake(t, rdb, keys)
	if !maps.Equal(got.hash, want) {
		t.Fatalf("the lock's hash is %v, want %v", got.hash, want)
	}
	if len(want) > 0 && got.pttl < 0 {
		t.Fatalf("the lock %v has no expiry", got.hash)
	}
}

// client of the tests: each call must have an answer.
type caller struct {
	testing.TB
	*Scripts
	keys   *Keys
	fenced bool
}

// do sends the op alone.
func (c caller) do(op Op) Answer {
	c.Helper()
	a, err := c.Do(c.TB.Context(), op)
	if err != nil {
		c.Fatalf("%s: %v", op.kind.names[0], err)
	}
	return a
}

func (c caller) acquire(field string, lease time.Duration) Answer {
	c.Helper()
	return c.do(Acquire(c.keys, c.fenced, field, lease))
}

func (c caller) level(field string, lease time.Duration, count int, op int64) Answer {
	c.Helper()
	return c.do(Level(c.keys, c.fenced && lease > 0, field, lease, count, op))
}

func (c caller) transfer(old, field string, lease time.Duration) Answer {
	c.Helper()
	return c.do(Transfer(c.keys, c.fenced, field, lease, old))
}

func (c caller) unlock(field string) bool {
	c.Helper()
	return c.do(Unlock(c.keys, field, false)).Held
}

func (c caller) renew(field string, lease time.Duration) error {
	c.Helper()
	holds := []Renewal{{Keys: c.keys, Field: field, Lease: lease}}
	c.Renew(c.TB.Context(), holds)
	return holds[0].Err
}

func (c caller) inspect(field string) State {
	c.Helper()
	s, err := c.Inspect(c.TB.Context(), c.keys, field)
	if err != nil {
		c.Fatalf("inspect: %v", err)
	}
	return s
}

func (c caller) hash(want map[string]string) {
	c.Helper()
	mustHash(c, c.rdb, c.keys, want)
}

// naive runs a script of testdata/naive, the form that a rule of docs/protocol.md forbids.
func (c caller) naive(file string, keys []string, args ...any) (any, error) {
	c.Helper()
	return runNaive(c, c.rdb, file, keys, args...)
}

func runNaive(t testing.TB, rdb redis.UniversalClient, file string, keys []string, args ...any) (any, error) {
	t.Helper()
	text, err := os.ReadFile("testdata/naive/" + file + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return rdb.Eval(t.Context(), string(text), keys, args...).Result()
}

// mustNaive is naive where an error would mean that the test shows nothing.
func (c caller) mustNaive(file string, keys []string, args ...any) any {
	c.Helper()
	reply, err := c.naive(file, keys, args...)
	if err != nil && err != redis.Nil {
		c.Fatalf("naive %s: %v", file, err)
	}
	return reply
}

// outcome is what an op's caller is told.
type outcome struct {
	Answer
	err error
}

// ear is the caller of an op that was sent: it keeps what it is told.
type ear struct {
	sending atomic.Int64
	with    Caller // of the last Sending; to be read once it is answered
	heard   chan outcome
}

func newEar() *ear { return &ear{heard: make(chan outcome, 8)} }

func (e *ear) Sending(with Caller) {
	e.with = with
	e.sending.Add(1)
}

// Answered implements Caller. Whether copies were sent is nothing to those who hear: on a busy machine they are.
func (e *ear) Answered(a Answer, err error) {
	a.Copies = 0
	e.heard <- outcome{a, err}
}

// patient is New for a test that no busy machine is to disturb: a batch is waited for a minute before copies of it are sent.
func patient(rdb redis.UniversalClient) *Scripts {
	s := New(rdb)
	s.batchers.slow = time.Minute
	return s
}

// together sends the ops in one batch of their own, and returns their outcomes in the same order.
func together(s *Scripts, ops ...Op) []outcome {
	all, ears := make([]*Op, len(ops)), make([]*ear, len(ops))
	for i := range ops {
		all[i], ears[i] = &ops[i], newEar()
		ops[i].caller, ops[i].state = ears[i], sent
	}
	s.deliver(context.Background(), all)
	heard := make([]outcome, len(ops))
	for i, e := range ears {
		heard[i] = <-e.heard
	}
	return heard
}

func newCaller(t testing.TB, rdb redis.UniversalClient) caller {
	return caller{TB: t, Scripts: patient(rdb), keys: newKeys(t), fenced: true}
}
