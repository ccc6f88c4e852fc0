package releases

import (
	"io"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/scripts"
)

// A fakeClient is a Client that keeps what it is given to send, and answers nothing by itself.
type fakeClient struct {
	takeBack bool // what TakeBack returns
	settled  bool // no server owes anything

	mu   sync.Mutex
	on   func(caller scripts.Caller) // of onSend
	sent []fakeSend
}

// A fakeSend is one op that was sent.
type fakeSend struct {
	caller scripts.Caller
	at     time.Time
}

// newFake returns a Releaser of a fakeClient that tells this log.
func newFake(log *locktest.Log) (*Releaser, *fakeClient) {
	client := new(fakeClient)
	return New(client, log.Logger()), client
}

func (c *fakeClient) Send(_ *scripts.Op, caller scripts.Caller) {
	c.mu.Lock()
	c.sent = append(c.sent, fakeSend{caller: caller, at: time.Now()})
	on := c.on
	c.mu.Unlock()
	if on != nil {
		on(caller)
	}
}

func (c *fakeClient) TakeBack(*scripts.Op) bool                     { return c.takeBack }
func (c *fakeClient) Sharded() bool                                 { return false }
func (c *fakeClient) Answered(*scripts.Keys, scripts.Answer, error) {}
func (c *fakeClient) Owes(string) (owed, awaited bool)              { return !c.settled, !c.settled }
func (c *fakeClient) Delayed(*Attempts)                             {}
func (c *fakeClient) Ended(*Attempts, time.Duration, bool)          {}
func (c *fakeClient) Unlock(k *scripts.Keys, f string, s bool) scripts.Op {
	return scripts.Unlock(k, f, s)
}

// onSend sets the function that is called with each op that is sent from now on; with nil nothing happens to them.
func (c *fakeClient) onSend(on func(caller scripts.Caller)) {
	c.mu.Lock()
	c.on = on
	c.mu.Unlock()
}

// answers writes each release that is sent from now on, and answers it with what this function says of the lock.
func (c *fakeClient) answers(answer func(lock string) error) {
	c.onSend(func(caller scripts.Caller) {
		caller.Sending(nil)
		caller.Answered(scripts.Answer{}, answer(caller.(*sentRelease).attempts.Keys.Lock))
	})
}

// all returns the ops that were sent.
func (c *fakeClient) all() []fakeSend {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]fakeSend(nil), c.sent...)
}

// releases returns how long after began each release of this lock was sent.
func (c *fakeClient) releases(lock string, began time.Time) (at []time.Duration) {
	for _, one := range c.all() {
		if one.caller.(*sentRelease).attempts.Keys.Lock == lock {
			at = append(at, one.at.Sub(began).Round(time.Millisecond))
		}
	}
	return at
}

// takenBy returns attempts of which one has taken the lock, with this lease.
func takenBy(lock string, lease time.Duration) *Attempts {
	return taken(scripts.KeysOf(lock), "client:1", lease)
}

// unanswered returns attempts of which one got no answer a moment ago.
func unanswered(lock string, lease time.Duration) *Attempts {
	a := NewAttempts(scripts.KeysOf(lock), "client:1", lease)
	a.Sent()
	a.Answered(scripts.Answer{}, io.EOF)
	return a
}
