package rlocktest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
)

// order has which locks were taken, or waited for, by holders of which others.
type order struct {
	mu    sync.Mutex
	pairs map[[2]string]pair // by outer and inner lock; of a permit of a semaphore it is the name that stands for all slots
	slots map[string]string  // these names, by the locks of the slots that had a permit
}

// A pair is a lock that was taken by a holder of another one.
type pair struct {
	site    string // where the first such call is, or the first that may wait
	mayWait bool
}

// trace returns the functions that tell it.
func (o *order) trace() *locktrace.Trace {
	return &locktrace.Trace{
		WaitStarted: func(e locktrace.WaitStarted) { o.note(e.Call) },
		AcquireDone: func(e locktrace.AcquireDone) {
			if e.Slot != "" {
				o.noteSlot(e.Slot, e.Lock)
			}
			if e.Err == nil && e.By != locktrace.Reentry { // a call that has waited in vain was noted when it began to wait; a re-entry waits for nobody
				o.note(e.Call)
			}
		},
	}
}

// note notes that a call takes a lock, or waits for it.
func (o *order) note(c locktrace.Call) {
	for _, outer := range holder.HeldBy(c.Context) {
		o.mu.Lock()
		if all := o.slots[outer]; all != "" {
			outer = all
		}
		names := [2]string{outer, c.Lock}
		if outer == c.Lock && !scripts.IsPermits(outer) { // a nested call, or one of another client; a permit under a permit may wait for that
			o.mu.Unlock()
			continue
		}
		if o.pairs == nil {
			o.pairs = map[[2]string]pair{}
		}
		if before, known := o.pairs[names]; !known || c.MayWait && !before.mayWait {
			o.pairs[names] = pair{site(), c.MayWait}
		}
		o.mu.Unlock()
	}
}

// noteSlot notes that the lock of a slot has a permit of the semaphore of this name.
func (o *order) noteSlot(slot, semaphore string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.slots == nil {
		o.slots = map[string]string{}
	}
	o.slots[slot] = semaphore
}

// site returns where the code outside of the library is that makes the call.
func site() string {
	at, _ := caller()
	return at
}

// caller returns site, and the name of the library's function that is called there.
func caller() (site, method string) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		path, isOurs := strings.CutPrefix(frame.Function, "github.com/fencelock/fencelock/")
		pkg, _, _ := strings.Cut(path, ".")
		if !isOurs || !slices.Contains(library, pkg) {
			return fmt.Sprintf("%s:%d", frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line), method
		}
		method = path[strings.LastIndexByte(path, '.')+1:]
		if !more {
			return "an unknown place", method
		}
	}
}

// library are the packages between the caller of a lock and what is told here.
var library = []string{"rlocktest", "internal/engine", "rlock", "fenced", "quorum", "observe/locktrace"}

// cycle says which locks were taken in a circle, so that their holders can wait for each other; "" for none. A call with wait 0 waits
// for nobody, and neither does a re-entry.
func (o *order) cycle() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	inner := map[string][]string{}
	for names, p := range o.pairs {
		if p.mayWait {
			inner[names[0]] = append(inner[names[0]], names[1])
		}
	}
	var path []string
	done := map[string]bool{}
	var visit func(name string) []string
	visit = func(name string) []string {
		if at := slices.Index(path, name); at >= 0 {
			return append(slices.Clone(path[at:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		slices.Sort(inner[name])
		for _, next := range inner[name] {
			if circle := visit(next); circle != nil {
				return circle
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	names := make([]string, 0, len(inner))
	for name := range inner {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		circle := visit(name)
		if circle == nil {
			continue
		}
		var steps []string
		for i, outer := range circle[:len(circle)-1] {
			steps = append(steps, fmt.Sprintf("%q under %q at %s", circle[i+1], outer, o.pairs[[2]string{outer, circle[i+1]}].site))
		}
		return "locks are taken in a circle, so that their holders can wait for each other: " + strings.Join(steps, ", ")
	}
	return ""
}

// RequireOrder fails the test unless some holder of outer has taken inner so far, and no holder of inner has taken outer.
func (s *Server) RequireOrder(outer, inner string) {
	s.t.Helper()
	s.order.mu.Lock()
	defer s.order.mu.Unlock()
	if at, wrong := s.order.pairs[[2]string{inner, outer}]; wrong {
		s.t.Errorf("rlocktest: %q was taken under %q at %s, want it outside", outer, inner, at.site)
	}
	if _, right := s.order.pairs[[2]string{outer, inner}]; !right {
		s.t.Errorf("rlocktest: %q was not taken under %q", inner, outer)
	}
}
