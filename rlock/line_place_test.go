package rlock_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// lineTells sends a message to the client that has the ticket, as a script would.
func lineTells(t *testing.T, m *miniredis.Miniredis, kind, ticket, more string) {
	t.Helper()
	client, _, _ := strings.Cut(ticket, ":")
	bhEqual(t, "listeners of "+ticket, m.Publish(lineKey+":"+client, kind+" "+ticket+more), 1)
	synctest.Wait()
}

// P20: a client whose channel is away asks without a ticket: a line that has lost it gets it back when it would hear a call.
func TestP20_ChannelAway(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
		before := strings.Join(lineOf(t, m), " ")
		p[0].link.subscribing.Store(true) // it cannot
		p[0].link.cut(false)
		m.Del(lineKey)
		asked := p[0].spy.count("acquire")
		bhAsleep(15 * time.Second)
		if p[0].spy.count("acquire") == asked {
			t.Error("it did not look: this test shows nothing")
		}
		bhEqual(t, "the line", len(lineOf(t, m)), 0)
		p[0].link.subscribing.Store(false)
		bhAsleep(10 * time.Second)
		bhEqual(t, "the line", strings.Join(lineOf(t, m), " "), before)
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, linePause)
	})
}

// P22: a client that a release took out of the line, as its channel was away, is before those that came later, and asks as soon
// as it hears again.
func TestP22_BeforeThoseThatCameLater(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
		p[0].link.subscribing.Store(true)
		p[0].link.cut(false)
		bhAsleep(time.Millisecond)
		release()
		second := <-got[1]
		bhOK(t, second.err)
		third := lineNew(t, m)
		last := third.waits(t, t.Context())
		bhEqual(t, "in the line", len(lineOf(t, m)), 1)
		p[0].link.subscribing.Store(false)
		bhAsleep(2 * time.Second) // it has connected again
		bhEqual(t, "in the line", len(lineOf(t, m)), 2)
		began := time.Now()
		bhOK(t, p[1].l.Unlock(second.ctx))
		select {
		case first := <-got[0]:
			bhOK(t, first.err)
			bhEqual(t, "in the line", len(lineOf(t, m)), 1)
			bhOK(t, p[0].l.Unlock(first.ctx))
			lineGets(t, third, last, began, 2*linePause)
		case later := <-last:
			t.Error("a client that came later was first")
			bhOK(t, third.l.Unlock(later.ctx))
			lineGets(t, p[0], got[0], began, time.Minute)
		}
	})
}

// P24: the bound counts from when the client learned of the call, however often it is told again; and not before that.
func TestP24_TheBound(t *testing.T) {
	for _, told := range []string{"w", "n"} {
		t.Run(told, func(t *testing.T) {
			lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
				line, more := lineOf(t, m), ""
				if told == "w" {
					more = " " + line[0]
				}
				frozen := make(chan struct{})
				p[0].spy.wrap(func(ops []string, next func() error) error {
					<-frozen
					return next()
				})
				began := time.Now()
				release()
				for range 3 {
					bhAsleep(30 * time.Millisecond)
					lineTells(t, m, told, line[1], more)
				}
				bhEqual(t, "in the line", len(lineOf(t, m)), 2)
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
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
		bhAsleep(100 * time.Millisecond)
		bhEqual(t, "listeners", m.PubSubNumSub(bhChannel)[bhChannel], 1)
		answer := make(chan struct{})
		p[0].spy.wrap(func(ops []string, next func() error) error {
			p[0].spy.wrap(nil)
			defer func() { <-answer }()
			return next()
		})
		m.Publish(bhChannel, "0")
		synctest.Wait()
		began := time.Now()
		release()
		synctest.Wait()
		close(answer)
		lineGets(t, p[0], got[0], began, 0)
	})
}

// P32: a client that was called while its first caller gave up does not let the call pass: its next caller asks at once.
func TestP32_ACallIsNotLostWithItsCaller(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
		ctx, cancel := context.WithCancel(t.Context())
		second := lineNew(t, m)
		one := second.waits(t, ctx)
		two := second.waits(t, t.Context())
		third := lineNew(t, m)
		last := third.waits(t, t.Context())
		held := make(chan struct{})
		second.spy.wrap(func(ops []string, next func() error) error {
			if ops[0] == "acquire" {
				second.spy.wrap(nil)
				cancel() // as it asks
				<-held
			}
			return next()
		})
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, linePause)
		bhIs(t, (<-one).err, context.Canceled)
		g := <-two
		bhOK(t, g.err)
		if late := g.at.Sub(began); late > 2*linePause {
			t.Errorf("the next caller has got the lock after %v", late)
		}
		bhOK(t, second.l.Unlock(g.ctx))
		lineGets(t, third, last, began, 3*linePause)
		close(held)
		bhAsleep(time.Second)
	})
}

// P35: a client whose release found nothing, and so may have called nobody, asks for itself.
func TestP35_ReleaseThatFoundNothing(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan bhGot) {
		bhAsleep(100 * time.Millisecond) // it has looked, and looks again when a message comes, or after a while
		m.Del("l")                       // nobody is told
		held, err := p[0].l.TryLock(t.Context(), 0, 0)
		bhOK(t, err)
		p[0].spy.wrap(func(ops []string, next func() error) error {
			p[0].spy.wrap(nil)
			m.Del("l")
			return io.EOF // the release was lost, and so was the lock
		})
		began := time.Now()
		bhOK(t, p[0].l.Unlock(held))
		lineGets(t, p[0], got[0], began, 50*time.Millisecond)
	})
}
