package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/tell"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// Inv9: the client's list has the holds that are registered, the newest first, in whatever order
// they end. Each is a user of its lock's state.
func TestInv9_ListOfHolds(t *testing.T) {
	for _, ends := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		c, _ := newFakeClient(t, new(fakeBus), Limits{})
		ls := NewLock(c, "l", LockOptions{}).lockState()
		var want []*hold
		check := func() {
			t.Helper()
			var listed []*hold
			var before *hold
			for h := c.firstHold; h != nil; before, h = h, h.next {
				if h.prev != before {
					t.Fatalf("%v: a hold does not know the one before it", ends)
				}
				listed = append(listed, h)
			}
			if !slices.Equal(listed, want) || c.held != len(want) || int(ls.users) != len(want)+1 {
				t.Fatalf("%v: %d are listed, %d counted, and %d use the lock's state; want %d", ends, len(listed), c.held, ls.users, len(want))
			}
		}
		keys := scripts.KeysOf("l")
		all := []*hold{holdOn(c, keys, "", 0), holdOn(c, keys, "", 0), holdOn(c, keys, "", 0)}
		for _, h := range all {
			h.lockState = ls
			locktest.Equal(t, "registered", c.registerHold(h), true)
			want = append([]*hold{h}, want...)
			check()
		}
		for _, i := range ends {
			c.unregisterHold(all[i])
			want = slices.DeleteFunc(want, func(h *hold) bool { return h == all[i] })
			check()
		}
		ls.removeUser()
		locktest.Equal(t, "lock states", c.LockStates(), 0)
	}
}

// P12: a call whose answer comes when the client is closed gets no hold: nobody would renew it, or
// end its context.
func TestP12_NoHoldBeginsAfterClose(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{}, func(s *Settings) {
		s.Trace = &locktrace.Trace{HoldDone: func(e locktrace.HoldDone) { t.Errorf("told of a hold: %+v", e) }}
	})
	l := NewLock(c, "l", LockOptions{})
	ctx := context.Background()
	w := &waiter{Lock: l, lease: time.Minute, ctx: ctx, under: ctx, holder: holder.New(ctx), lockState: NewLock(c, "l", LockOptions{}).lockState()}
	locktest.NoError(t, c.Close())
	lv, err := w.begin(outcome{hold: takenBy(c, "l", time.Minute), sentAt: watchdog.Now()})
	locktest.IsError(t, err, ErrClosed)
	if lv != nil || c.held != 0 || c.firstHold != nil || w.lockState.hold != nil || l.ownHold(w.holder) != nil || len(c.tracedHolds.holds) != 0 {
		t.Error("something is left of a hold")
	}
	w.lockState.removeUser()
}

// P29: the releaser's own releases go on too.
func TestP29_TheReleaserGoesOnCalling(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		store.onSend(func(caller scripts.Caller) {
			caller.Sending(nil)
			_, leave := caller.(*leaveOp)
			caller.Answered(scripts.Answer{Held: true, More: !leave}, nil)
		})
		a := &takenBy(c, "l", time.Minute).attempts
		c.releaser.Release(a)
		locktest.Sleep(time.Second)
		all := store.all()
		locktest.Equal(t, "commands", len(all), 2)
		if all[1].op != scripts.Leave(a.Keys, "", false) {
			t.Errorf("the second is %+v", all[1].op)
		}
	})
}

// P30: a client that was refused the line does without it for a minute, also where the refusal came
// with the answer to a release, and says so once.
func TestP30_TheLineIsUsedAgain(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const line = "lacks a right to the line"
		var log locktest.Log
		c, _ := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log))
		keys := scripts.KeysOf("l")
		locktest.Equal(t, "the line is used at first", c.usesLine(), true)
		locktest.Sleep(time.Hour)
		for range 2 {
			c.releaseAnswered(scripts.Answer{Held: true, Outside: scripts.Forbidden}, keys)
			locktest.Sleep(noLineTime - time.Millisecond)
			locktest.Equal(t, "it is used within a minute", c.usesLine(), false)
			locktest.Sleep(time.Millisecond)
			locktest.Equal(t, "it is used after a minute", c.usesLine(), true)
		}
		locktest.Equal(t, "lines", log.Count(line), 1)
		locktest.Equal(t, "lines that name the keys", log.Count("lock=l line=fencelock_line:{l}"), 1)
	})
}

// P10: releases that Redis refuses to publish are counted, and the first is logged with the right
// that is missing.
func TestP10_WhatIsNeededToPublish(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		redistest.Virtual(t, func(t *testing.T) {
			var log locktest.Log
			c, _ := newFakeClient(t, &fakeBus{sharded: sharded}, Limits{}, logTo(&log))
			for _, name := range []string{"l", "m"} {
				c.releaseAnswered(scripts.Answer{Held: true, Untold: true}, scripts.KeysOf(name))
				locktest.Sleep(time.Minute)
			}
			locktest.Equal(t, "releases that were not published", c.Unpublished(), 2)
			needs := "needs PUBLISH on the channel lock=l channel=redisson_lock__channel:{l}"
			if sharded {
				needs = "needs SPUBLISH, and Redis 7 or later, on the channel lock=l channel=redisson_lock__channel:{l}"
			}
			locktest.Equal(t, "lines", len(log.Records()), 1)
			locktest.Equal(t, "lines that say what is needed", log.Count(needs), 1)
		})
	}
}

// What becomes of each renewal of a batch: what the watchdog is told, and what the hold says when
// it is lost. Renewals that fail are logged together. The question whether a hold is there is no
// renewal, and what fails because the client is closed is not logged.
func TestOutcomesOfRenewals(t *testing.T) {
	gone := fmt.Errorf("%w: the key has another type", scripts.ErrGone)
	all := []struct {
		lock   string
		length time.Duration
		err    error
		want   error // what the watchdog is told
		says   error // what the hold notes
	}{
		{lock: "renewed", length: time.Minute},
		{lock: "away", length: time.Minute, err: io.EOF, want: io.EOF, says: io.EOF},
		{lock: "away too", length: time.Minute, err: io.EOF, want: io.EOF, says: io.EOF},
		{lock: "gone", length: time.Minute, err: scripts.ErrGone, want: watchdog.ErrGone},
		{lock: "gone, and why", length: time.Minute, err: gone, want: watchdog.ErrGone, says: gone},
		{lock: "asked", err: io.EOF, want: io.EOF},
		{lock: "asked, and gone", err: gone, want: watchdog.ErrGone, says: gone},
		{lock: "asked, and there"},
	}
	for _, closed := range []bool{false, true} {
		var log locktest.Log
		c, store := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log))
		if closed {
			locktest.NoError(t, c.Close())
		}
		store.renew = func(renewals []scripts.Renewal) {
			for i := range renewals {
				if renewals[i].Keys.Lock != all[i].lock || renewals[i].Lease != all[i].length {
					t.Errorf("renewal %d is %+v", i, renewals[i])
				}
				renewals[i].Err = all[i].err
			}
		}
		var batch []watchdog.Renewal
		for _, r := range all {
			batch = append(batch, watchdog.Renewal{Owner: takenBy(c, r.lock, time.Minute), Length: r.length})
		}
		for i, err := range c.renewLeases(t.Context(), batch) {
			locktest.Equal(t, all[i].lock+": outcome", err, all[i].want)
			var says error
			if failed := batch[i].Owner.(*hold).failedRenewal.Load(); failed != nil {
				says = failed.err
			}
			locktest.Equal(t, all[i].lock+": noted", says, all[i].says)
		}
		want := 1
		if closed {
			want = 0
		}
		tell.Flush(c.set.Log)
		locktest.Equal(t, "lines", len(log.Records()), want)
		locktest.Equal(t, "lines that count what failed", log.Count("renewals failed, they are repeated until the leases are over locks=2 one=away too error=EOF"), want)

		store.renew = nil
		if outcome := c.renewLeases(t.Context(), batch); outcome != nil {
			t.Errorf("where all are renewed: %v", outcome)
		}
	}
}

// Where several servers have a lock it is not handed on within the client: one command cannot do
// that on all of them.
func TestNoHandoffsWithSeveralServers(t *testing.T) {
	for _, several := range []bool{false, true} {
		c, _ := newFakeClient(t, new(fakeBus), Limits{Servers: map[bool]int{true: 5}[several]}, func(s *Settings) { s.Handoffs = 7 })
		want := 7
		if several {
			want = 0
		}
		locktest.Equal(t, "handoffs", c.set.Handoffs, want)
	}
}
