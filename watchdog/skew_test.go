package watchdog

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A clock that has gone ahead by more than a millisecond has jumped; one that was set back has not.
func TestSkewAhead(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		now, old skew
		want     bool
	}{
		{skew{}, skew{}, false},
		{skew{wall: ms}, skew{}, false},
		{skew{boot: ms}, skew{}, false},
		{skew{wall: ms + 1}, skew{}, true},
		{skew{boot: ms + 1}, skew{}, true},
		{skew{wall: 5 * ms, boot: 7 * ms}, skew{wall: 4 * ms, boot: 6 * ms}, false},
		{skew{wall: -5 * ms}, skew{}, false},
		{skew{wall: -5 * ms, boot: 2 * ms}, skew{}, true},
		{skew{wall: 2 * ms, boot: -5 * ms}, skew{}, true},
	} {
		if got := c.now.ahead(c.old); got != c.want {
			t.Errorf("%+v after %+v: %v", c.now, c.old, got)
		}
	}
	if got, want := (skew{wall: 1, boot: 4}).least(skew{wall: 3, boot: 2}), (skew{wall: 1, boot: 2}); got != want {
		t.Errorf("the least is %+v", got)
	}
}

// skewNow has the distance of each clock from the monotonic one, with its sign.
func TestSkewNow(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) { // where the wall clock goes as the monotonic one does, and the boot clock is 0
		w := New(nil)
		w.epoch.boot = -7 * time.Second
		time.Sleep(3 * time.Second)
		if got, want := w.skewNow(), (skew{boot: 4 * time.Second}); got != want {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	})
}

// A jump is told once. A clock that was set back is believed, so that a jump from there is told too.
func TestJumped(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		w := New(nil)
		for _, step := range []struct {
			what   string
			before time.Duration // how far the wall clock was ahead when jumped was called before; it is not ahead now
			want   bool
		}{
			{"nothing", 0, false},
			{"a jump", -2 * time.Millisecond, true},
			{"nothing after it", 0, false},
			{"too little", -time.Millisecond, false},
			{"set back", time.Minute, false},
		} {
			w.skew.wall += step.before
			if got := w.jumped(); got != step.want {
				t.Errorf("%s: %v", step.what, got)
			}
			if step.what != "too little" && w.skew.wall != 0 {
				t.Errorf("%s: the skew that the next call compares with is %v", step.what, w.skew.wall)
			}
		}
	})
}

// A clock goes ahead beyond the deadline of a lease that is not due: its owner is told within a patrol. A lease that is not
// over goes on.
func TestLostByAJump(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		over, fine := add(w, 10*time.Minute), add(w, 10*time.Minute)
		time.Sleep(patrol)
		over.wantLost(t, nil)
		w.mu.Lock()
		passed := *over.deadline.Load()
		passed.wall = time.Now().UnixNano()
		over.deadline.Store(&passed)
		w.skew.wall -= 10 * time.Minute
		w.mu.Unlock()
		time.Sleep(patrol)
		over.wantLost(t, ErrExpired)
		fine.wantLost(t, nil)
		if n := len(s.seen()); n != 0 {
			t.Errorf("%d round trips", n)
		}
	})
}
