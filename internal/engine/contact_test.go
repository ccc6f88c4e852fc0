package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/watchdog"
)

// Inv12: what a call says that has waited for a second in vain, by what Redis and the network said before the call and during it: that
// somebody else has the lock, or why nobody knows.
func TestInv12_WhyAWaitWasInVain(t *testing.T) {
	const tenth = 100 * time.Millisecond
	split := errors.New("nobody has a majority")
	asks := func(ls *lockState) { ls.silent = time.Now() }
	refused := func(ls *lockState) {
		_, _ = ls.client.dials.DialHook(func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED })(context.Background(), "tcp", "a:1")
	}
	gotIt := func(ls *lockState) {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.gotLock()
	}
	holds := func(ls *lockState, lease time.Duration) {
		dog := watchdog.New(nil)
		dog.Close() // it notes the deadline, and does nothing with it
		ls.hold = new(hold)
		dog.Add(&ls.hold.Lease, watchdog.Now(), lease)
	}
	for _, c := range []struct {
		what   string
		before func(ls *lockState)
		during func(ls *lockState)
		want   error
		says   string // beside want
		last   error  // that the network, or Redis, said to the call
	}{
		{what: "nobody said anything", want: ErrNotAcquired},
		{what: "an error before the call", before: func(ls *lockState) { ls.redisFailed(time.Now(), io.EOF) }, want: ErrNotAcquired},
		{what: "an error", during: func(ls *lockState) { ls.redisFailed(time.Now(), io.EOF) }, want: io.EOF, says: "no answer within the wait", last: io.EOF},
		{what: "an error and an answer", during: func(ls *lockState) {
			ls.redisFailed(time.Now(), io.EOF)
			ls.redisAnswered(nil)
		}, want: ErrNotAcquired},
		{what: "an answer and an error", during: func(ls *lockState) {
			ls.redisAnswered(nil)
			ls.redisFailed(time.Now(), io.EOF)
		}, want: io.EOF, says: "no answer within the wait", last: io.EOF},
		{what: "replicas that have not confirmed", during: func(ls *lockState) { ls.redisFailed(time.Now(), ErrUnconfirmed) }, want: ErrUnconfirmed, last: ErrUnconfirmed},
		{what: "a lock that nobody has, and that is not to be had", during: func(ls *lockState) { ls.redisAnswered(split) }, want: split},
		{what: "the same, and somebody has it later", during: func(ls *lockState) {
			ls.redisAnswered(split)
			ls.redisAnswered(nil)
		}, want: ErrNotAcquired},
		{what: "an attempt for most of the wait", during: asks, want: context.DeadlineExceeded, says: "no answer from Redis within the wait"},
		{what: "an attempt at the end of the wait", during: func(ls *lockState) {
			time.Sleep(6 * tenth)
			asks(ls)
		}, want: ErrNotAcquired},
		{what: "an answer, and an attempt for most of the wait", during: func(ls *lockState) {
			time.Sleep(tenth)
			ls.redisAnswered(nil)
			asks(ls)
		}, want: ErrNotAcquired},
		{what: "another call got the lock, and an attempt since", during: func(ls *lockState) {
			time.Sleep(tenth)
			ls.first, ls.last = new(waiter), new(waiter)
			gotIt(ls)
			asks(ls)
		}, want: ErrNotAcquired},
		{what: "the same, and Redis has said something before", before: func(ls *lockState) { ls.redisFailed(time.Now(), io.EOF) }, during: func(ls *lockState) {
			time.Sleep(tenth)
			gotIt(ls)
			asks(ls)
		}, want: ErrNotAcquired},
		{what: "an attempt that got the lock for another call", during: func(ls *lockState) {
			asks(ls)
			time.Sleep(9 * tenth)
			gotIt(ls)
		}, want: ErrNotAcquired},
		{what: "a refused connection before the call", before: refused, during: asks, want: context.DeadlineExceeded, says: "no answer from Redis"},
		{what: "a refused connection", during: func(ls *lockState) {
			asks(ls)
			refused(ls)
		}, want: syscall.ECONNREFUSED, says: "no answer from Redis", last: syscall.ECONNREFUSED},
		{what: "a refused connection after an answer to another call", before: func(ls *lockState) { ls.redisAnswered(nil) }, during: refused, want: ErrNotAcquired, last: syscall.ECONNREFUSED},
		{what: "a refused connection and an answer", during: func(ls *lockState) {
			refused(ls)
			time.Sleep(tenth)
			ls.redisAnswered(nil)
		}, want: ErrNotAcquired},
		{what: "a hold of the client, and an error", before: func(ls *lockState) { holds(ls, time.Hour) }, during: func(ls *lockState) { ls.redisFailed(time.Now(), io.EOF) }, want: ErrNotAcquired, last: io.EOF},
		{what: "a hold of the client that ran out, and an error", before: func(ls *lockState) { holds(ls, 5*tenth) }, during: func(ls *lockState) { ls.redisFailed(time.Now(), io.EOF) }, want: io.EOF, says: "no answer within the wait", last: io.EOF},
	} {
		redistest.Virtual(t, func(t *testing.T) {
			_, rdb := redistest.Pipe(t)
			client, err := newTestClient(rdb)
			locktest.NoError(t, err)
			defer func() { _ = client.Close() }()
			ls := &lockState{client: client, asker: new(asker)}
			if c.before != nil {
				c.before(ls)
			}
			time.Sleep(tenth)
			began := time.Now()
			if c.during != nil {
				c.during(ls)
			}
			time.Sleep(time.Until(began.Add(time.Second)))
			err = ls.notAcquiredError(began)
			if c.says == "" && err != c.want || c.says != "" && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v, want %v %s", c.what, err, c.want, c.says)
			}
			if last := ls.lastError(began); !errors.Is(last, c.last) {
				t.Errorf("%s: it was last told %v, want %v", c.what, last, c.last)
			}
		})
	}
}

// Inv12: a call that has asked without the queue, where nobody waits, is told that somebody else has the lock.
func TestInv12_WhyACallOutsideTheQueueWasInVain(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{})
	locktest.Equal(t, "why", (&lockState{client: c}).notAcquiredError(time.Now()), ErrNotAcquired)
}
