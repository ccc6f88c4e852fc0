package command

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A Command is one operation under way, for somebody who may stop waiting for it. Sender.New makes
// one.
type Command struct {
	scripts.Op
	attempts  Attempts // of the hold that the command may take; nil if it takes nothing
	alone     bool
	waits     Notifier               // is notified when the command is over
	also      Notifier               // somebody else who waits for it; nil for nobody
	afterFunc atomic.Pointer[func()] // called when the command is over; nil for none, isOver from then on

	done   atomic.Bool      // the fields below are final
	SentAt watchdog.Instant // of one that may take a hold
	Answer scripts.Answer
	Err    error
}

// A Notifier waits for several things. It is notified when one of them has changed, and looks
// which.
type Notifier interface{ Notify() }

// Attempts is told what becomes of the commands that may take one hold.
type Attempts interface {
	Sent()
	TakenBack()
	Answered(answer scripts.Answer, err error)
}

// isOver stands for the function of a command that is over.
var isOver = new(func())

// ErrNotSent tells that a command was taken back before it left.
var ErrNotSent = errors.New("no connection to Redis was free in time")

// Done tells whether the command is over: SentAt, Answer and Err are final then.
func (f *Command) Done() bool { return f.done.Load() }

// AlsoNotify has somebody else notified too when the command is over. It is called before the
// command is sent.
func (f *Command) AlsoNotify(n Notifier) { f.also = n }

// Unanswered tells whether a command that is over got no answer, so that Redis may have executed
// it.
func (f *Command) Unanswered() bool { return f.Err != ErrNotSent && scripts.Unanswered(f.Err) }

// AfterFunc has the function called when the command is over, or calls it at once where the command
// is over. A command has one such function at most.
func (f *Command) AfterFunc(do func()) {
	if !f.afterFunc.CompareAndSwap(nil, &do) {
		do()
	}
}

func (f *Command) finish() {
	waits, also, do := f.waits, f.also, f.afterFunc.Swap(isOver)
	f.done.Store(true) // the last thing that is done to it: it may be used again from now on
	waits.Notify()
	if also != nil {
		also.Notify()
	}
	if do != nil && do != isOver {
		(*do)()
	}
}

// Sending implements scripts.Caller.
func (f *Command) Sending(with scripts.Caller) {
	never := watchdog.Instant{}
	if f.SentAt = never; f.attempts == nil {
		return // no lease counts from it, and reading the clocks takes a system call
	}
	first, together := with.(*Command)
	if !together {
		f.SentAt = watchdog.Now()
		return
	}
	if first.SentAt == never {
		first.SentAt = watchdog.Now()
	}
	f.SentAt = first.SentAt
}

// Answered implements scripts.Caller.
func (f *Command) Answered(a scripts.Answer, err error) {
	f.Answer, f.Err = a, err
	if f.attempts != nil {
		f.attempts.Answered(a, err)
	}
	f.finish()
}

// Store is where commands go: *scripts.Scripts, whose methods say what these do, or what takes its
// place.
type Store interface {
	Send(op *scripts.Op, caller scripts.Caller)
	TakeBack(op *scripts.Op) bool
	Do(ctx context.Context, op scripts.Op) (scripts.Answer, error)
}

// A Sender sends the commands of one client. What it uses again and again is its own, as channels
// must not leave the bubble of a test in virtual time.
type Sender struct {
	Store Store
	Heard func(err error) // is told what came of the first attempt of Do; nil for nobody

	commands sync.Pool // of *Command that are over
	wakeups  sync.Pool // of *Wakeup that nobody waits for
}

// New returns a command that is to be sent. waits is notified when it is over. a is told what
// becomes of it; nil for nobody.
func (s *Sender) New(op scripts.Op, a Attempts, waits Notifier) *Command {
	f, _ := s.commands.Get().(*Command)
	if f == nil {
		f = new(Command)
	}
	f.Op, f.attempts, f.waits = op, a, waits
	return f
}

// Recycle gives back a command that is over. One that was abandoned is left to the garbage
// collector: it may still be answered; so is one that somebody else waits for.
func (s *Sender) Recycle(f *Command) {
	if f.also == nil {
		*f = Command{}
		s.commands.Put(f)
	}
}

// Send sends the command together with others that are sent at this time.
func (s *Sender) Send(f *Command) {
	if f.attempts != nil {
		f.attempts.Sent()
	}
	s.Store.Send(&f.Op, f)
}

// SendAlone sends the command by itself. A repeat of one that got no answer goes so: if it is what
// keeps Redis from answering, it is not to keep its neighbours from their answers too.
func (s *Sender) SendAlone(f *Command) {
	if f.attempts != nil {
		f.attempts.Sent()
	}
	f.alone = true
	go func() {
		f.Sending(nil)
		f.Answered(s.Store.Do(context.Background(), f.Op))
	}()
}

// TakeBack takes the command back if it has not left yet; it is over then.
func (s *Sender) TakeBack(f *Command) {
	if f.alone || !s.Store.TakeBack(&f.Op) {
		return
	}
	f.Err = ErrNotSent
	if f.attempts != nil {
		f.attempts.TakenBack()
	}
	f.finish()
}

// Await waits until the command is over, which notifies the wake-up, and takes it back where it is
// not over at the time d after began, or when end is closed before that. It returns false where the
// command goes on.
func (s *Sender) Await(f *Command, wake *Wakeup, began time.Time, d time.Duration, end <-chan struct{}) bool {
	for !f.Done() {
		wake.NotifyAt(began.Add(d))
		if !wake.Wait(end) || !f.Done() && time.Since(began) >= d {
			s.TakeBack(f)
			return f.Done()
		}
	}
	return true
}

// Do sends an op that may be repeated: first in a batch with others, and, where no answer has come
// at the time each after began, by itself as Repeat does. It takes no longer than bound since
// began, and ends with ctx. maybeExecuted: an earlier attempt got no answer, so Redis may have
// executed it.
func (s *Sender) Do(ctx context.Context, began time.Time, bound, each time.Duration, op scripts.Op) (answer scripts.Answer, maybeExecuted bool, err error) {
	wake := s.Wakeup()
	defer s.PutWakeup(wake)
	f := s.New(op, nil, wake)
	s.Send(f)
	over := s.Await(f, wake, began, each, ctx.Done())
	if over && s.Heard != nil {
		s.Heard(f.Err)
	}
	switch {
	case !over:
		maybeExecuted, err = true, ErrSilence
	case scripts.Passing(f.Err): // ErrNotSent too
		maybeExecuted, err = f.Unanswered(), f.Err
	default:
		answer, err = f.Answer, f.Err
		s.Recycle(f)
		return answer, false, err
	}
	rest, cancel := context.WithTimeout(ctx, bound-time.Since(began))
	defer cancel()
	answered := make(chan scripts.Answer, 1)
	if !over { // it may be only slow
		f.AfterFunc(func() {
			if f.Err == nil {
				offer(answered, f.Answer)
			}
		})
	}
	answer, ok := pause(rest, new(Backoff).Next(err, LastBackoff), answered)
	switch {
	case ok:
		return answer, false, nil
	case rest.Err() != nil:
		return answer, maybeExecuted, err
	}
	again := op // here, so that an op that is answered is not on the heap
	answer, againExecuted, last := repeat(rest, each, answered, func(ctx context.Context) (scripts.Answer, error) { return s.Store.Do(ctx, again) })
	if last == ErrSilence {
		last = err // which Redis may have said
	}
	return answer, maybeExecuted || againExecuted, last
}
