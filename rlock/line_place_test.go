package rlock_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// lineTells sends a message to the client that has the ticket, as a script would.
func lineTells(t *testing.T, m *miniredis.Miniredis, kind, ticket, more string) {
	t.Helper()
	client, _, _ := strings.Cut(ticket, ":")
	locktest.Equal(t, "listeners of "+ticket, m.Publish(lineKey+":"+client, kind+" "+ticket+more), 1)
	synctest.Wait()
}

// P20: a client whose channel is away asks without a ticket: a line that has lost it gets it back when it would hear a call.
func TestP20_ChannelAway(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		before := strings.Join(lineOf(t, m), " ")
		p[0].link.subscribing.Store(true) // it cannot
		p[0].link.cut(false)
		m.Del(lineKey)
		asked := p[0].spy.Count("acquire")
		locktest.Sleep(15 * time.Second)
		if p[0].spy.Count("acquire") == asked {
			t.Error("it did not look: this test shows nothing")
		}
		locktest.Equal(t, "the line", len(lineOf(t, m)), 0)
		p[0].link.subscribing.Store(false)
		locktest.Sleep(10 * time.Second)
		locktest.Equal(t, "the line", strings.Join(lineOf(t, m), " "), before)
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, linePause)
	})
}

// P22: a client that a release took out of the line, as its channel was away, is before those that came later, and asks as soon
// as it hears again.
func TestP22_BeforeThoseThatCameLater(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		p[0].link.subscribing.Store(true)
		p[0].link.cut(false)
		locktest.Sleep(time.Millisecond)
		release()
		second := <-got[1]
		locktest.NoError(t, second.Err)
		third := lineNew(t, m)
		last := third.waits(t, t.Context())
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		p[0].link.subscribing.Store(false)
		locktest.Sleep(2 * time.Second) // it has connected again
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 2)
		began := time.Now()
		locktest.NoError(t, p[1].l.Unlock(second.Ctx))
		select {
		case first := <-got[0]:
			locktest.NoError(t, first.Err)
			locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
			locktest.NoError(t, p[0].l.Unlock(first.Ctx))
			lineGets(t, third, last, began, 2*linePause)
		case later := <-last:
			t.Error("a client that came later was first")
			locktest.NoError(t, third.l.Unlock(later.Ctx))
			lineGets(t, p[0], got[0], began, time.Minute)
		}
	})
}

// P24: the bound counts from when the client learned of the call, however often it is told again; and not before that.
func TestP24_TheBound(t *testing.T) {
	for _, told := range []string{"w", "n"} {
		t.Run(told, func(t *testing.T) {
			lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
				line, more := lineOf(t, m), ""
				if told == "w" {
					more = " " + line[0]
				}
				frozen := make(chan struct{})
				p[0].spy.Wrap(func(ops []string, next func() error) error {
					<-frozen
					return next()
				})
				began := time.Now()
				release()
				for range 3 {
					locktest.Sleep(30 * time.Millisecond)
					lineTells(t, m, told, line[1], more)
				}
				locktest.Equal(t, "in the line", len(lineOf(t, m)), 2)
				late := lineGets(t, p[1], got[1], began, 120*time.Millisecond)
				if late < 100*time.Millisecond {
					t.Errorf("the first one was taken out after %v", late)
				}
				close(frozen)
				lineGets(t, p[0], got[0], began, 130*time.Millisecond)
			})
		})
	}
}

// P27: the first in the line, which listens on the lock's own channel, is no stranger to itself. It hears of the release there,
// and that it is called, while it waits for an answer from before.
func TestP27_NoStrangerToItself(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		locktest.Sleep(100 * time.Millisecond)
		locktest.Equal(t, "listeners", m.PubSubNumSub(lockChannel)[lockChannel], 1)
		answer := make(chan struct{})
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			p[0].spy.Wrap(nil)
			defer func() { <-answer }()
			return next()
		})
		m.Publish(lockChannel, "0")
		synctest.Wait()
		began := time.Now()
		release()
		synctest.Wait()
		close(answer)
		lineGets(t, p[0], got[0], began, 0)
	})
}

// P32: a client that was called while its first caller gave up does not let the call pass: the answer is its next caller's.
func TestP32_ACallIsNotLostWithItsCaller(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		ctx, cancel := context.WithCancel(t.Context())
		second := lineNew(t, m)
		one := second.waits(t, ctx)
		two := second.waits(t, t.Context())
		third := lineNew(t, m)
		last := third.waits(t, t.Context())
		second.spy.Wrap(func(ops []string, next func() error) error {
			if ops[0] == "acquire" {
				second.spy.Wrap(nil)
				cancel() // as it asks
				synctest.Wait()
			}
			return next()
		})
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, linePause)
		locktest.IsError(t, (<-one).Err, context.Canceled)
		g := <-two
		locktest.NoError(t, g.Err)
		if late := g.At.Sub(began); late > 2*linePause {
			t.Errorf("the next caller has got the lock after %v", late)
		}
		locktest.NoError(t, second.l.Unlock(g.Ctx))
		lineGets(t, third, last, began, 3*linePause)
	})
}

// P35: a client whose release found nothing, and so may have called nobody, asks for itself.
func TestP35_ReleaseThatFoundNothing(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		locktest.Sleep(100 * time.Millisecond) // it has looked, and looks again when a message comes, or after a while
		m.Del("l")                             // nobody is told
		held, err := p[0].l.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			p[0].spy.Wrap(nil)
			m.Del("l")
			return io.EOF // the release was lost, and so was the lock
		})
		began := time.Now()
		locktest.NoError(t, p[0].l.Unlock(held))
		lineGets(t, p[0], got[0], began, 50*time.Millisecond)
	})
}
