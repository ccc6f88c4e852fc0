package engine

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// answers has the command answered, and its caller not yet see that.
func (f *fakeSend) answers(a scripts.Answer, err error) {
	f.caller.Sending(nil)
	f.caller.Answered(a, err)
}

// locks has a call wait for the lock, and returns what becomes of it.
func (s *lineStory) locks(ctx context.Context) <-chan locktest.Result {
	return locktest.StartLock(func() (context.Context, error) {
		held, _, err := s.lock.Acquire(ctx, Request{Forever: true})
		return held, err
	})
}

// Inv12: where a call's context has ended by the time at which its goroutine sees an answer or an
// error, the call says why it ended, and sends nothing more.
func TestInv12_TheContextEndsAsTheAnswerComes(t *testing.T) {
	for what, c := range map[string]struct {
		answer scripts.Answer
		err    error
	}{
		"held":    {answer: scripts.Answer{Held: true}},
		"refused": {answer: held(scripts.NotInLine)},
		"error":   {err: locktest.Reply("WRONGTYPE Operation against a key")},
	} {
		story := func(s *lineStory) (answeredBefore bool) {
			cause := errors.New("the cause")
			ctx, cancel := context.WithCancelCause(s.Context())
			call := s.locks(ctx)
			f := s.next(time.Second)
			f.answers(c.answer, c.err)
			cancel(cause)
			got := <-call
			if c.answer.Held && got.Err == nil || c.err != nil && errors.Is(got.Err, c.err) && !errors.Is(got.Err, cause) {
				return true
			}
			if !errors.Is(got.Err, context.Canceled) || !errors.Is(got.Err, cause) {
				s.Errorf("%s: %v", what, got.Err)
			}
			locktest.Sleep(50 * time.Millisecond)
			most := 1
			if c.answer.Held || c.err != nil {
				most++ // its release: a hook of the user's may have made the error after Redis had answered
			}
			n := len(s.store.all())
			if most == 2 && n > most {
				s.Errorf("%s: %d commands, want %d at most", what, n, most)
			}
			return n > most // it had been refused, and has gone on
		}
		before := true
		for try := 0; before && try < 20; try++ { // on a busy machine the call may have its answer before its context ends
			tellLine(t, nil, func(s *lineStory) { before = story(s) })
		}
		if before {
			t.Errorf("%s: no call ends as its context has ended", what)
		}
	}
}

// P32: also the repeat of an attempt that got an error is a look, where nothing was heard.
func TestP32_ALookAfterAnError(t *testing.T) {
	tellLine(t, nil, func(s *lineStory) {
		s.calls()
		s.next(time.Second).say(scripts.Answer{}, passingError{})
		op := s.next(time.Second).op
		locktest.Equal(s, "it is a look", reflect.ValueOf(op).FieldByName("request").FieldByName("turn").FieldByName("Look").Bool(), true)
	})
}

// P3, P1: where calls of a queue end one after the other while Redis does not answer, the attempt
// that is under way is the next one's for youngAttempt, and not repeated for each of them. At
// several servers no two calls have one attempt; how many of those that end at once send one, the
// scheduler decides.
func TestP1_CallsThatEndWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		several     bool
		each        time.Duration
		least, most int // of attempts
	}{
		{each: 0, least: 1, most: 1},
		{each: 5 * time.Millisecond, least: 2, most: 12},
		{several: true, each: 5 * time.Millisecond, least: 100, most: 100},
	} {
		redistest.Virtual(t, func(t *testing.T) {
			client, store := newFakeClient(t, &fakeBus{live: true}, Limits{Servers: map[bool]int{true: 5}[c.several]})
			store.takes = 10 * time.Second
			l := NewLock(client, "l", LockOptions{})
			var all []func()
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				all = append(all, cancel)
				go func() { _, _, _ = l.Acquire(ctx, Request{Forever: true}) }()
				synctest.Wait()
			}
			for _, cancel := range all {
				cancel()
				if c.each > 0 {
					time.Sleep(c.each)
				}
			}
			synctest.Wait()
			fields := make(map[string]int)
			attempts := int(store.done.Load())
			for _, sent := range store.all() {
				if _, attempt := sent.caller.(*command.Command); attempt {
					attempts++
					fields[reflect.ValueOf(sent.op).FieldByName("request").FieldByName("field").String()]++
				}
			}
			if attempts < c.least || attempts > c.most {
				t.Errorf("%+v: %d attempts", c, attempts)
			}
			for field, n := range fields {
				if n > 1 && c.several {
					t.Errorf("%+v: %d attempts have the field %s", c, n, field)
				}
			}
			locktest.Sleep(store.takes)
		})
	}
}

// An outcome is read under the mutex alone. Run it with -race: a waiter becomes a re-entry while
// another goroutine sees to its attempt.
func TestTheOutcomeOfACallThatReenters(t *testing.T) {
	tellLine(t, func(s *Settings) { s.Poll = 100 * time.Millisecond }, func(s *lineStory) {
		one := s.locks(s.Context())
		s.next(time.Second).say(scripts.Answer{Held: true}, nil)
		outer := (<-one).Ctx
		two := s.locks(outer)
		s.next(time.Second).say(scripts.Answer{Held: true}, nil)
		inner := (<-two).Ctx
		three := s.locks(outer) // waits behind the inner level
		attempt := s.next(time.Second)
		go func() { _ = s.lock.Unlock(inner) }()
		s.next(time.Second).say(scripts.Answer{Held: true}, nil)
		level := s.next(time.Second) // it re-enters
		level.caller.Sending(nil)
		attempt.answers(scripts.Answer{}, locktest.Reply("WRONGTYPE Operation against a key"))
		go func() { // as others do whose change lets the asker see
			s.ls.mu.Lock()
			s.ls.unlock(time.Now())
		}()
		for range 200 {
			runtime.Gosched()
		}
		level.caller.Answered(scripts.Answer{Held: true}, nil)
		locktest.NoError(s, (<-three).Err)
	})
}

// Inv8: a call that is told that the lock is free as its wait ends sends nothing. The next call of
// its client asks at once, and does not sleep as the first one would have.
func TestInv8_TheWaitEndsAsTheLockComesFree(t *testing.T) {
	tellLine(t, nil, func(s *lineStory) {
		giveUp, over := s.calls()
		ticket := s.enters(0)
		s.calls()
		synctest.Wait()
		s.ls.mu.Lock()
		giveUp()
		s.ls.onLineMessage(true, "c "+ticket+" 0")
		s.ls.unlock(time.Now())
		<-over
		began := time.Now()
		s.next(time.Minute)
		locktest.Equal(s, "the next call asks after", time.Since(began), 0)
	})
}
