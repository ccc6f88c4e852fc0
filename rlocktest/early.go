package rlocktest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// early has the holds whose contexts have ended before them.
type early struct {
	mu    sync.Mutex
	sites map[uint64]string // where the open holds of Lock and its kin were taken, by their numbers
	found []string
}

// trace returns the functions that tell it. What ends after the test itself is left out: t.Context has ended then.
func (e *early) trace(t testing.TB) *locktrace.Trace {
	return &locktrace.Trace{
		AcquireDone: func(done locktrace.AcquireDone) {
			at, method := caller()
			if done.Err != nil || done.By == locktrace.Reentry || !strings.Contains(method, "Lock") {
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.sites == nil {
				e.sites = map[uint64]string{}
			}
			e.sites[done.Hold] = at
		},
		HoldDone: func(done locktrace.HoldDone) {
			e.mu.Lock()
			defer e.mu.Unlock()
			at, known := e.sites[done.Hold]
			delete(e.sites, done.Hold)
			if known && done.ContextErr != nil && !byAnother(done.ContextErr) && t.Context().Err() == nil {
				e.found = append(e.found, fmt.Sprintf("%q, which was taken at %s (%v)", done.Lock, at, done.ContextErr))
			}
		},
	}
}

// byAnother tells whether a context has ended with a hold of another lock that it carries.
func byAnother(err error) bool {
	return errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrUnlocked) || errors.Is(err, rlock.ErrClosed)
}

// text says which holds these are; "" for none.
func (e *early) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.found) == 0 {
		return ""
	}
	return "a context has ended before the hold that it bounds: " + strings.Join(e.found, "; ") +
		": use Acquire, whose context bounds only the wait, or the option AllowEndedContexts"
}
