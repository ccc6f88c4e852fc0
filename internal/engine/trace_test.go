package engine

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// Of a round trip that renews several holds the trace is told the least time that a lease had left,
// whichever hold comes first, and the length of that lease. A hold that Redis was only asked about
// is not counted.
func TestMarginOfARenewal(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		var told []locktrace.RenewalDone
		c, err := newTestClient(rdb, func(s *Settings) {
			s.Trace = &locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { told = append(told, e) }}
		})
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		renewal := func(left, asked time.Duration) watchdog.Renewal {
			h := &hold{possession: new(possession), lockState: &lockState{client: c}}
			h.Lease.Owner = h
			c.dog.Add(&h.Lease, watchdog.Now(), left)
			t.Cleanup(func() { c.dog.Remove(&h.Lease) })
			return watchdog.Renewal{Owner: h, Length: asked}
		}
		long, short, asked := renewal(time.Hour, 20*time.Second), renewal(time.Minute, 10*time.Second), renewal(time.Second, 0)
		for _, batch := range [][]watchdog.Renewal{{long, short, asked}, {asked, short, long}} {
			c.renewalDone(batch, nil, time.Now())
			synctest.Wait()
		}
		for _, e := range told {
			if e.Locks != 2 || e.Lease != 10*time.Second || e.Margin > time.Minute || e.Margin < 58*time.Second {
				t.Errorf("told of %+v", e)
			}
		}
		if len(told) != 2 {
			t.Errorf("%d were told", len(told))
		}
		c.renewalDone([]watchdog.Renewal{asked}, nil, time.Now())
		synctest.Wait()
		if len(told) != 2 {
			t.Error("a question is told as a renewal")
		}
	})
}

// A renewal that finds its hold gone is told as such while the hold is there for the client, and so
// is a question; one that got no answer is told as failed. A question that got no answer is no
// event, and after Close there is none.
func TestToldOfARenewal(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var told []locktrace.RenewalDone
		c, _ := newFakeClient(t, new(fakeBus), Limits{}, func(s *Settings) {
			s.Trace = &locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { told = append(told, e) }}
		})
		of := func(lock string, asked time.Duration, traced bool) watchdog.Renewal {
			h := takenBy(c, lock, time.Minute)
			c.dog.Add(&h.Lease, watchdog.Now(), time.Minute)
			t.Cleanup(func() { c.dog.Remove(&h.Lease) })
			if traced {
				c.tracedHolds.begin(h, "")
			}
			return watchdog.Renewal{Owner: h, Length: asked}
		}
		there, ended, asked, askedEnded := of("there", time.Minute, true), of("ended", time.Minute, false), of("asked", 0, true), of("asked ended", 0, false)
		for _, step := range []struct {
			what    string
			batch   []watchdog.Renewal
			outcome []error
			want    locktrace.RenewalDone // without the times
			none    bool
		}{
			{what: "renewed", batch: []watchdog.Renewal{there, asked}, outcome: []error{nil, nil}, want: locktrace.RenewalDone{Locks: 1}},
			{what: "gone", batch: []watchdog.Renewal{there}, outcome: []error{watchdog.ErrGone}, want: locktrace.RenewalDone{Locks: 1, Gone: 1}},
			{what: "just unlocked", batch: []watchdog.Renewal{ended}, outcome: []error{watchdog.ErrGone}, want: locktrace.RenewalDone{Locks: 1}},
			{what: "failed", batch: []watchdog.Renewal{asked, there, ended}, outcome: []error{io.EOF, io.EOF, nil},
				want: locktrace.RenewalDone{Locks: 2, Failed: 1, LastLock: "there", Err: io.EOF}},
			{what: "asked, and gone", batch: []watchdog.Renewal{asked}, outcome: []error{watchdog.ErrGone}, want: locktrace.RenewalDone{Gone: 1}},
			{what: "asked, and just unlocked", batch: []watchdog.Renewal{askedEnded}, outcome: []error{watchdog.ErrGone}, none: true},
			{what: "asked in vain", batch: []watchdog.Renewal{asked}, outcome: []error{io.EOF}, none: true},
		} {
			told = nil
			c.renewalDone(step.batch, step.outcome, time.Now())
			synctest.Wait()
			if step.none {
				locktest.Equal(t, step.what+": events", len(told), 0)
				continue
			}
			locktest.Equal(t, step.what+": events", len(told), 1)
			got := told[0]
			locktest.Equal(t, step.what+": client", got.Client, c.id)
			got.Client, got.Took, got.Margin, got.Lease = "", 0, 0, 0
			locktest.Equal(t, step.what, got, step.want)
		}
		told = nil
		c.renewalDone([]watchdog.Renewal{there}, []error{nil}, time.Now().Add(-10*time.Second))
		synctest.Wait()
		if e := told[0]; e.Took != 10*time.Second || e.Lease != time.Minute || e.Margin > time.Minute || e.Margin < 59*time.Second {
			t.Errorf("after ten seconds: %+v", e)
		}
		locktest.NoError(t, c.Close())
		told = nil
		c.renewalDone([]watchdog.Renewal{there}, []error{io.EOF}, time.Now())
		synctest.Wait()
		locktest.Equal(t, "events after Close", len(told), 0)
	})
}

// A hold of a dropped holder that ran out is told as dropped. One that was forced open, or ended
// with its client, is told as that.
func TestEndsOfDroppedHolders(t *testing.T) {
	for end, want := range map[locktrace.End]locktrace.End{
		locktrace.Lost: locktrace.Dropped, locktrace.Forced: locktrace.Forced, locktrace.Closed: locktrace.Closed,
	} {
		var told []locktrace.End
		c, _ := newFakeClient(t, new(fakeBus), Limits{}, func(s *Settings) {
			s.Trace = &locktrace.Trace{HoldDone: func(e locktrace.HoldDone) { told = append(told, e.End) }}
		})
		h := takenBy(c, "l", time.Minute)
		c.tracedHolds.drop(h) // it is not traced so far
		c.tracedHolds.begin(h, "")
		c.tracedHolds.drop(h)
		h.tellDoneNow(time.Now(), end, ErrLost)
		h.tellDoneNow(time.Now(), end, ErrLost)
		locktest.DeepEqual(t, "told of", told, []locktrace.End{want})
	}
}
