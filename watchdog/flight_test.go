package watchdog

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Where many large batches wait, or many are under way, there is a pause, which all of them have room for in a quarter of the time that is
// left.
func TestGap(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			batches int           // that wait
			flying  int           // that are under way
			size    int           // of the one that begins
			left    time.Duration // to the first deadline
			want    time.Duration
		}{
			{1, 1, maxBatch, time.Hour, 0},
			{large - 1, 1, maxBatch, time.Hour, 0},
			{large, 1, maxBatch, time.Hour, batchPause},
			{10 * large, 1, maxBatch, time.Hour, batchPause},
			{large, 1, maxBatch, 4 * large * batchPause, batchPause},
			{large, 1, maxBatch, 2 * large * batchPause, batchPause / 2},
			{2 * large, 1, maxBatch, 4 * large * batchPause, batchPause / 2},
			{large, 1, maxBatch, 0, 0},
			{large, 1, maxBatch, -time.Second, 0},
			{0, large - 1, maxBatch, time.Hour, 0},
			{0, large, maxBatch, time.Hour, batchPause},
			{1, large, maxBatch, 2 * batchPause, batchPause / 2},
			{1, large, 1, time.Hour, batchPause},
			{large, 1, maxBatch / 2, time.Hour, batchPause},
			{large, 1, maxBatch/2 - 1, time.Hour, 0},
		} {
			p := backlog{batches: c.batches, flying: c.flying, over: now.Sub(start) + c.left}
			if got := p.gap(now, c.size); got != c.want {
				t.Errorf("%d batches, %d under way, this one of %d, %v left: %v, want %v", c.batches, c.flying, c.size, c.left, got, c.want)
			}
		}
	})
}

// A round trip has a third of the shortest lease in it; where a renewal only asks, that is the lease as it was.
func TestTimeout(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		renewal := func(lease, asked time.Duration) Renewal {
			o := newOwner(asked)
			d := DeadlineOf(now(), lease)
			o.deadline.Store(&d)
			return Renewal{o, asked, &o.Lease}
		}
		for _, c := range []struct {
			renewals []Renewal
			want     time.Duration
		}{
			{[]Renewal{renewal(time.Minute, time.Minute)}, maxFlight},
			{[]Renewal{renewal(6*time.Second, 6*time.Second)}, 2 * time.Second},
			{[]Renewal{renewal(time.Minute, 6*time.Second)}, 2 * time.Second},
			{[]Renewal{renewal(3*time.Second, 0)}, time.Second},
			{[]Renewal{renewal(time.Minute, time.Minute), renewal(3*time.Second, 3*time.Second), renewal(9*time.Second, 9*time.Second)}, time.Second},
		} {
			if got := timeout(c.renewals); got != c.want {
				t.Errorf("%d renewals, the first asks for %v: %v, want %v", len(c.renewals), c.renewals[0].Length, got, c.want)
			}
		}
	})
}

// A slot may start a batch when fewer than usual are under way, or when they take long, up to the most of all.
func TestQueue(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			waiting, short, flying int
			last                   time.Duration // so long ago the last batch was started
			want                   bool
		}{
			{0, 0, 0, time.Hour, false},
			{1, 0, 0, 0, true},
			{0, 1, 0, 0, true},
			{1, 1, 0, 0, true},
			{1, 0, usual - 1, 0, true},
			{1, 0, usual, 0, false},
			{1, 0, usual, slow, false},
			{1, 0, usual, slow + 1, true},
			{1, 0, maxFlying - 1, time.Hour, true},
			{1, 0, maxFlying, time.Hour, false},
		} {
			w := New(nil)
			in := &slotQueue{waiting: make([]batch, c.waiting), short: make([]batch, c.short), flying: c.flying, last: now.Add(-c.last)}
			w.queue(in, now)
			if in.ready != c.want || (len(w.backlog.ready) == 1) != c.want {
				t.Errorf("%+v: ready %v, %d in the backlog", c, in.ready, len(w.backlog.ready))
			}
			w.queue(in, now) // once is enough
			if len(w.backlog.ready) > 1 {
				t.Errorf("%+v: twice in the backlog", c)
			}
		}
	})
}

// The backlog knows how many batches wait, and the first deadline among them, whatever the order in which they came.
func TestBacklog(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		w := New(nil)
		w.backlog.turn = time.Now().Add(time.Hour) // nothing is started
		var renewals []Renewal
		for _, length := range []time.Duration{20 * time.Second, 10 * time.Second, 30 * time.Second} {
			for range maxBatch {
				o := newOwner(length)
				d := DeadlineOf(now(), length)
				o.deadline.Store(&d)
				o.kept = true
				w.leases.add(&o.Lease, w.countOf(d.mono))
				renewals = append(renewals, Renewal{o, length, &o.Lease})
			}
		}
		w.send(renewals)
		first := DeadlineOf(now(), 10*time.Second)
		if w.backlog.batches != 3 || w.backlog.over != first.mono {
			t.Errorf("%d batches, the first deadline in %v", w.backlog.batches, w.backlog.over-time.Since(start))
		}
	})
}
