package engine

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// A lineStory is a client, the lock "l", and a store whose answers the test gives.
type lineStory struct {
	*testing.T
	client *Client
	store  *fakeStore
	lock   *Lock
	ls     *lockState
	seen   int
}

// tellLine runs a test of a client that hears its calls, in a bubble.
func tellLine(t *testing.T, set func(*Settings), test func(*lineStory)) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, &fakeBus{live: true}, Limits{}, func(s *Settings) {
			s.Handoffs, s.Poll = 0, 10*time.Second
			if set != nil {
				set(s)
			}
		})
		s := &lineStory{T: t, client: c, store: store, lock: NewLock(c, "l", LockOptions{}), ls: NewLock(c, "l", LockOptions{}).lockState()}
		defer s.ls.removeUser()
		test(s)
	})
}

// calls has a call wait for the lock, and returns what ends it; over is closed when it has ended.
func (s *lineStory) calls() (cancel func(), over chan struct{}) {
	ctx, cancel := context.WithCancel(s.Context())
	over = make(chan struct{})
	go func() {
		defer close(over)
		_, _, _ = s.lock.Acquire(ctx, Request{Forever: true})
	}()
	return cancel, over
}

// next is the next command that is sent, within a time.
func (s *lineStory) next(within time.Duration) *fakeSend {
	s.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		synctest.Wait()
		if all := s.store.all(); len(all) > s.seen {
			s.seen++
			return &all[s.seen-1]
		}
		if !time.Now().Before(end) {
			s.Fatalf("nothing is sent within %v", within)
		}
	}
}

func (f *fakeSend) say(a scripts.Answer, err error) {
	f.caller.Sending(nil)
	f.caller.Answered(a, err)
	synctest.Wait()
}

// held is an answer: the lock is held, and so many clients are before this one.
func held(before int) scripts.Answer {
	a := scripts.Answer{TTL: 20 * time.Second, Before: before}
	if before != scripts.NotInLine {
		a.Score = 5
	}
	return a
}

// ticketOf is the ticket with which an op enters or leaves the line.
func ticketOf(op scripts.Op) string {
	return reflect.ValueOf(op).FieldByName("request").FieldByName("turn").FieldByName("Ticket").String()
}

// enters has the client's first call enter the line behind so many clients, and returns its ticket.
func (s *lineStory) enters(before int) (ticket string) {
	s.next(time.Second).say(held(scripts.NotInLine), nil)
	second := s.next(time.Second)
	second.say(held(before), nil)
	return ticketOf(second.op)
}

// P27: a call is in vain also where the attempt that followed it got an error, and its repeat finds
// that somebody else has the lock.
func TestP27_CalledInVainAfterAnError(t *testing.T) {
	tellLine(t, nil, func(s *lineStory) {
		s.calls()
		ticket := s.enters(1)
		s.ls.onLineMessage(true, "c "+ticket+" 0")
		s.next(time.Second).say(scripts.Answer{}, passingError{})
		s.next(time.Second).say(held(0), nil)
		locktest.Equal(s, "beside outsiders", s.besideOutsiders(), true)
	})
}

func (s *lineStory) besideOutsiders() bool {
	s.ls.mu.Lock()
	defer s.ls.mu.Unlock()
	return s.ls.room.BesideOutsiders(time.Now())
}

type passingError struct{}

func (passingError) Error() string { return "LOADING Redis is loading the dataset in memory" }
func (passingError) RedisError()   {}
