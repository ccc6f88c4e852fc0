package engine

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// Of a round trip that renews several holds the trace is told the least time that a lease had left, whichever hold comes first, and the
// length of that lease. A hold that Redis was only asked about is not counted.
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
			h := &hold{client: c}
			h.lease.Owner = h
			c.dog.Add(&h.lease, watchdog.Now(), left)
			t.Cleanup(func() { c.dog.Remove(&h.lease) })
			return watchdog.Renewal{Owner: h, Length: asked}
		}
		long, short, asked := renewal(time.Hour, 20*time.Second), renewal(time.Minute, 10*time.Second), renewal(time.Second, 0)
		for _, batch := range [][]watchdog.Renewal{{long, short, asked}, {asked, short, long}} {
			c.renewalDone(batch, nil, time.Now())
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
		if len(told) != 2 {
			t.Error("a question is told as a renewal")
		}
	})
}
