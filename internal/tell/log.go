package tell

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Every is how often a message is logged at most: an outage, or a name that something else uses, repeats its own as
// often as calls are made.
const Every = 10 * time.Second

// A throttle is the slog.Handler of a client's lines. A message is logged at once, and then no more than once in each
// Every: the last line of that time, with how many others were left out. No line waits for the user's handler: all of its methods
// are called by the outbox.
type throttle struct {
	to    func() slog.Handler // asked for each line, for slog.Default changes
	least slog.Level
	*messages
}

// messages is what was logged less than Every ago. The messages are literals of the code, so there are few.
type messages struct {
	out  Outbox
	lost atomic.Int64 // lines for which the outbox had no room, since the last one that was told

	mu     sync.Mutex
	recent map[string]*message
}

type message struct {
	timer    *time.Timer // the end of the time in which its lines are held back
	last     slog.Record // the latest of them,
	to       func() slog.Handler
	heldBack int // and how many there are
}

func newThrottle(to func() slog.Handler, least slog.Level) *throttle {
	return &throttle{to, least, &messages{recent: make(map[string]*message)}}
}

// DefaultLog is the log of a client that was given none.
func DefaultLog() *slog.Logger {
	return slog.New(newThrottle(func() slog.Handler { return slog.Default().Handler() }, slog.LevelWarn))
}

// Throttled is the user's logger, with nothing left out for its level: its own handler decides.
func Throttled(log *slog.Logger) *slog.Logger {
	return slog.New(newThrottle(log.Handler, slog.Level(math.MinInt)))
}

// Enabled implements slog.Handler. The user's handler is asked by write.
func (t *throttle) Enabled(_ context.Context, level slog.Level) bool { return level >= t.least }

// write has the line told.
func (m *messages) write(to func() slog.Handler, r slog.Record) {
	told := m.out.Add(func() {
		h, ctx := to(), context.Background()
		if !h.Enabled(ctx, r.Level) {
			return
		}
		if n := m.lost.Swap(0); n > 0 {
			r.AddAttrs(slog.Int64("lines lost before", n))
		}
		_ = h.Handle(ctx, r)
	})
	if !told {
		m.lost.Add(1)
	}
}

func (t *throttle) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &throttle{func() slog.Handler { return t.to().WithAttrs(attrs) }, t.least, t.messages}
}

func (t *throttle) WithGroup(name string) slog.Handler {
	return &throttle{func() slog.Handler { return t.to().WithGroup(name) }, t.least, t.messages}
}

// Handle implements slog.Handler. It does not block.
func (t *throttle) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone()
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.recent[r.Message]
	if m != nil {
		m.last, m.to = r, t.to
		m.heldBack++
		return nil
	}
	m = new(message)
	m.timer = time.AfterFunc(Every, func() { t.tell(r.Message, m, false) })
	t.recent[r.Message] = m
	t.write(t.to, r)
	return nil
}

// tell logs the last line that was held back. The message is forgotten where there is none, or with forget.
func (t *throttle) tell(text string, m *message, forget bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, last, to := m.heldBack, m.last, m.to
	m.heldBack = 0
	if n == 0 || forget {
		m.timer.Stop()
		delete(t.recent, text)
	} else {
		m.timer.Reset(Every)
	}
	if n > 1 {
		last.AddAttrs(slog.Int("left out", n-1))
	}
	if n > 0 {
		t.write(to, last)
	}
}

// Flush logs at once what a log of this package has held back, and waits until that is told, no longer than flushTime.
func Flush(log *slog.Logger) {
	t := log.Handler().(*throttle)
	t.mu.Lock()
	recent := maps.Clone(t.recent)
	t.mu.Unlock()
	for text, m := range recent {
		t.tell(text, m, true)
	}
	t.out.Flush()
}
