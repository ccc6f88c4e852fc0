package lockmetrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// endedHold is an error like that of a context whose hold is over, which is context.Canceled too.
type endedHold struct{ error }

func (endedHold) Is(target error) bool { return target == context.Canceled }
func (e endedHold) Unwrap() error      { return e.error }

func TestAcquireOf(t *testing.T) {
	seen := map[lockmetrics.Acquire]bool{}
	for _, c := range []struct {
		by   locktrace.Way
		err  error
		want string
	}{
		{locktrace.FromRedis, nil, "acquired redis "},
		{locktrace.FromHandoff, nil, "acquired handoff "},
		{locktrace.Reentry, nil, "acquired reentry "},
		{locktrace.Reentry + 1, nil, "acquired _OTHER "},
		{locktrace.NotAcquired, fmt.Errorf("l: %w", rlock.ErrNotAcquired), "not_acquired  "},
		{locktrace.NotAcquired, endedHold{rlock.ErrLost}, "error  lost"},
		{locktrace.NotAcquired, endedHold{rlock.ErrUnlocked}, "error  unlocked"},
		{locktrace.NotAcquired, endedHold{rlock.ErrClosed}, "error  closed"},
		{locktrace.NotAcquired, rlock.ErrUnconfirmed, "error  unconfirmed"},
		{locktrace.NotAcquired, fmt.Errorf("l: %w", context.Canceled), "error  canceled"},
		{locktrace.NotAcquired, context.DeadlineExceeded, "error  deadline_exceeded"},
		{locktrace.NotAcquired, fmt.Errorf("l: %w", locktest.Reply("NOAUTH")), "error  redis"},
		{locktrace.NotAcquired, &net.OpError{Op: "dial", Err: errors.New("refused")}, "error  network"},
		{locktrace.NotAcquired, io.EOF, "error  network"},
		{locktrace.NotAcquired, errors.New("something"), "error  _OTHER"},
	} {
		a := lockmetrics.AcquireOf(locktrace.AcquireDone{By: c.by, Err: c.err})
		locktest.Equal(t, fmt.Sprintf("%v, %v", c.by, c.err), fmt.Sprintf("%s %s %s", a.Outcome(), a.How(), a.ErrorType()), c.want)
		seen[a] = true
	}
	locktest.Equal(t, "kinds of ends that were seen", len(seen), int(lockmetrics.Acquires()))
}

// Where functions group locks badly the number of groups has a bound all the same, and a lock stays in its group.
func TestGroups(t *testing.T) {
	var mu sync.Mutex
	var made []string
	groups := lockmetrics.NewGroups(func(lock string) string { return lock }, func(group, _ string) *string {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, group)
		return &group
	})
	before := groups.Of("first", "")
	locktest.Equal(t, "group", *groups.Of("\xff", ""), "\uFFFD")
	locktest.Equal(t, "group", *groups.Of("", ""), lockmetrics.Other)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				groups.Of(fmt.Sprint(i), "")
			}
		})
	}
	all.Wait()
	locktest.Equal(t, "groups", len(made), lockmetrics.MaxGroups+1)
	locktest.Equal(t, "group", *groups.Of("one more", ""), lockmetrics.Other)
	locktest.Equal(t, "the first group is another one", groups.Of("first", "") != before, false)

	one := lockmetrics.NewGroups(nil, func(group, lasting string) *string { group += lasting; return &group })
	locktest.Equal(t, "group", *one.Of("a", ""), "")
	locktest.Equal(t, "two groups", one.Of("a", "") != one.Of("b", ""), false)
}

// Holds that are meant to last are apart, in each group, and the number of their words has a bound.
func TestLasting(t *testing.T) {
	groups := lockmetrics.NewGroups(func(lock string) string { return lock }, func(group, lasting string) *string {
		group += " " + lasting
		return &group
	})
	locktest.Equal(t, "one that leads", *groups.Of("a", "leads"), "a leads")
	first := groups.Of("a", "leads")
	locktest.Equal(t, "another one", groups.Of("a", "leads") == first, true)
	locktest.Equal(t, "one of no group", *groups.Of("", "leads"), "other leads")
	for i := range 3 * lockmetrics.MaxLasting {
		groups.Of("a", fmt.Sprint("word ", i))
	}
	locktest.Equal(t, "parts", len(groups.All()), lockmetrics.MaxLasting+2)
	locktest.Equal(t, "one more word", *groups.Of("b", "naps"), "b other")
	locktest.Equal(t, "the first word", *groups.Of("b", "leads"), "b leads")
	one := lockmetrics.NewGroups(nil, func(group, lasting string) *string { return &lasting })
	locktest.Equal(t, "without groups", *one.Of("a", "leads")+*one.Of("a", ""), "leads")
}

func TestMargin(t *testing.T) {
	for left, want := range map[time.Duration]float64{20 * time.Second: .5, -time.Second: 0} {
		share, is := lockmetrics.Margin(locktrace.RenewalDone{Margin: left, Lease: 40 * time.Second})
		locktest.Equal(t, "share", share, want)
		locktest.Equal(t, "measured", is, true)
	}
	_, is := lockmetrics.Margin(locktrace.RenewalDone{Gone: 1})
	locktest.Equal(t, "measured", is, false)
}
