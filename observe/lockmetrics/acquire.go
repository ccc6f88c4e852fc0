package lockmetrics

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// Acquire is how an acquiring call ended, as a number from 0 on and below Acquires: there are few, so that the labels of each can be
// made once.
type Acquire int

// acquires has the attributes of each Acquire: first of those that got the lock, by their Way, then of those that did not.
var acquires = func() (all []struct{ outcome, how, errorType string }) {
	add := func(outcome, how, errorType string) {
		all = append(all, struct{ outcome, how, errorType string }{outcome, how, errorType})
	}
	for way := locktrace.NotAcquired; way <= locktrace.Reentry; way++ { // the first is for a way that this version does not know
		how := way.String()
		if way == locktrace.NotAcquired {
			how = "_OTHER"
		}
		add("acquired", how, "")
	}
	add("not_acquired", "", "")
	for _, e := range causes {
		add("error", "", e.name)
	}
	return all
}()

const (
	notAcquired = Acquire(locktrace.Reentry) + 1
	failed      = notAcquired + 1
)

// causes are the values of error.type, the first that fits: an error that says that a hold is over is context.Canceled too.
var causes = []struct {
	name string
	fits func(error) bool
}{
	{"lost", is(rlock.ErrLost)},
	{"unlocked", is(rlock.ErrUnlocked)},
	{"closed", is(rlock.ErrClosed)},
	{"unconfirmed", is(rlock.ErrUnconfirmed)},
	{"canceled", is(context.Canceled)},
	{"deadline_exceeded", is(context.DeadlineExceeded)},
	{"redis", isA[redis.Error]},
	{"network", func(err error) bool {
		return isA[net.Error](err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}},
	{"_OTHER", func(error) bool { return true }},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// Acquires is how many values of Acquire there are.
func Acquires() Acquire { return Acquire(len(acquires)) }

// AcquireOf is how this call ended.
func AcquireOf(e locktrace.AcquireDone) Acquire {
	switch {
	case e.Err == nil && e.By >= 0 && e.By <= locktrace.Reentry:
		return Acquire(e.By)
	case e.Err == nil:
		return 0
	case errors.Is(e.Err, rlock.ErrNotAcquired):
		return notAcquired
	}
	a := failed
	for !causes[a-failed].fits(e.Err) {
		a++
	}
	return a
}

// Outcome is the attribute "outcome": acquired, not_acquired (somebody else held the lock for the whole wait), or error.
func (a Acquire) Outcome() string { return acquires[a].outcome }

// How is the attribute "how": by which way the lock came, as locktrace.Way has it; "" if it did not.
func (a Acquire) How() string { return acquires[a].how }

// ErrorType is the attribute "error.type" of an error: lost, unlocked, closed, unconfirmed, canceled, deadline_exceeded, redis (an
// error reply), network, or _OTHER; "" if there was none.
func (a Acquire) ErrorType() string { return acquires[a].errorType }
