package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/scripts"
)

// A fakeStore is a Store that keeps what it is given to send, and answers nothing by itself.
type fakeStore struct {
	renew    func(renewals []scripts.Renewal) // what Renew does; nil: all are renewed
	takeBack bool                             // what TakeBack returns

	takes time.Duration // how long Do takes
	done  atomic.Int32  // how many calls of Do there were

	mu   sync.Mutex
	on   func(caller scripts.Caller) // of onSend
	sent []fakeSend
}

// A fakeSend is one op that was sent.
type fakeSend struct {
	op     scripts.Op
	caller scripts.Caller
	at     time.Time
}

func (s *fakeStore) Send(op *scripts.Op, caller scripts.Caller) {
	s.mu.Lock()
	s.sent = append(s.sent, fakeSend{op: *op, caller: caller, at: time.Now()})
	on := s.on
	s.mu.Unlock()
	if on != nil {
		on(caller)
	}
}

// onSend sets the function that is called with each op that is sent from now on; with nil nothing
// happens to them.
func (s *fakeStore) onSend(on func(caller scripts.Caller)) {
	s.mu.Lock()
	s.on = on
	s.mu.Unlock()
}

// answers writes each release that is sent from now on, and answers it with what this function
// says.
func (s *fakeStore) answers(answer func() error) {
	s.onSend(func(caller scripts.Caller) {
		caller.Sending(nil)
		caller.Answered(scripts.Answer{}, answer())
	})
}

func (s *fakeStore) TakeBack(*scripts.Op) bool { return s.takeBack }

func (s *fakeStore) Do(context.Context, scripts.Op) (scripts.Answer, error) {
	s.done.Add(1)
	time.Sleep(s.takes)
	return scripts.Answer{}, errors.New("fakeStore answers nothing")
}

func (s *fakeStore) Renew(_ context.Context, renewals []scripts.Renewal) {
	if s.renew != nil {
		s.renew(renewals)
	}
}

func (s *fakeStore) Inspect(context.Context, *scripts.Keys, string) (scripts.State, error) {
	return scripts.State{}, errors.New("fakeStore answers nothing")
}

// all returns the ops that were sent.
func (s *fakeStore) all() []fakeSend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]fakeSend(nil), s.sent...)
}

// A fakeBus is a Bus that knows whether channels are sharded. It wakes whoever subscribes, if that
// is live, and nobody else.
type fakeBus struct {
	sharded bool
	live    bool // what its subscriptions say
}

func (b *fakeBus) Subscribe(_ *scripts.Keys, _ string, wake func(message bool, text string)) Subscription {
	if b.live {
		wake(false, "")
	}
	return &fakeSubscription{live: b.live}
}

func (b *fakeBus) Hears(*scripts.Keys) bool     { return false }
func (b *fakeBus) Sharded(context.Context) bool { return b.sharded }
func (b *fakeBus) Known() (sharded, known bool) { return b.sharded, true }
func (b *fakeBus) Close()                       {}

// A fakeSubscription is live or not, and says how it was ended.
type fakeSubscription struct {
	live  bool
	ended string
}

func (s *fakeSubscription) Live() bool { return s.live }
func (s *fakeSubscription) Close()     { s.ended = "closed" }
func (s *fakeSubscription) Drop()      { s.ended = "dropped" }

// newTestClient returns a client with these options.
func newTestClient(rdb redis.UniversalClient, opts ...func(*Settings)) (*Client, error) {
	set, err := MakeSettings(opts)
	if err != nil {
		return nil, err
	}
	return New(rdb, set)
}

// newFakeClient returns a client on a fakeStore and this bus, which is closed with the test.
func newFakeClient(t testing.TB, bus *fakeBus, limits Limits, opts ...func(*Settings)) (*Client, *fakeStore) {
	t.Helper()
	set, err := MakeSettings(opts)
	locktest.NoError(t, err)
	store := new(fakeStore)
	c := NewOn(store, bus, limits, set)
	t.Cleanup(func() { _ = c.Close() })
	return c, store
}

// logTo is the option that makes a client tell this log.
func logTo(log *locktest.Log) func(*Settings) { return func(s *Settings) { s.SetLog(log.Logger()) } }

// holdOn returns a hold of the client, which has not begun, with this field.
func holdOn(c *Client, keys *scripts.Keys, field string, lease time.Duration) *hold {
	ls := &lockState{client: c}
	h := &hold{possession: new(possession), lock: newLock(c, holder.Lock{Client: c, Name: keys.Lock}, plain{}, keys, LockOptions{}), lockState: ls, of: ls}
	h.Lease.Owner = h
	h.attempts.Init(keys, field, lease)
	return h
}

// takenBy returns a hold of the client, which has not begun, and of which an attempt has taken the
// lock, with this lease.
func takenBy(c *Client, lock string, lease time.Duration) *hold {
	h := holdOn(c, scripts.KeysOf(lock), c.newField(), lease)
	h.attempts.Sent()
	h.attempts.Answered(scripts.Answer{Held: true}, nil)
	return h
}
