package tell

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The user's handler decides which levels it is told; slog.Default is told of warnings and errors only.
func TestLogLevels(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var text bytes.Buffer
		user := Throttled(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelError})))
		user.Warn("a warning")
		user.Error("an error")
		synctest.Wait()
		if got := text.String(); strings.Contains(got, "a warning") || !strings.Contains(got, "an error") {
			t.Errorf("a handler of errors was told %q", got)
		}
		var all locktest.Log
		Throttled(all.Logger()).Debug("for everybody")
		synctest.Wait()
		byDefault := slog.New(newThrottle(func() slog.Handler { return &all }, slog.LevelWarn))
		byDefault.Info("a detail")
		byDefault.Warn("a warning")
		synctest.Wait()
		locktest.Equal(t, "lines", all.String(), "for everybody\na warning")
	})
}

// A buffer is a bytes.Buffer that is written to beside the test.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Attributes and groups of a logger are told with its lines, and lines of one message are throttled together, whichever logger has them.
func TestLogAttributes(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var text buffer
		log := Throttled(slog.New(slog.NewTextHandler(&text, nil)))
		log.With("who", "me").WithGroup("of").Warn("a line", "lock", "l")
		log.Warn("a line", "lock", "m")
		synctest.Wait()
		if got := text.String(); !strings.Contains(got, "who=me of.lock=l") || strings.Contains(got, "lock=m") {
			t.Errorf("told at once: %q", got)
		}
		locktest.Sleep(Every)
		if got := text.String(); !strings.Contains(got, "lock=m") || strings.Count(got, "who=me") != 1 {
			t.Errorf("told in the end: %q", got)
		}
		locktest.Sleep(Every)
	})
}

// A message that was not logged for Every is logged at once again. One line that was held back has left out no other.
func TestLogAfterAPause(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var all locktest.Log
		log := Throttled(all.Logger())
		began := time.Now()
		for _, at := range []time.Duration{0, Every + time.Second, Every + 2*time.Second, 4 * Every} {
			locktest.Sleep(at - time.Since(began))
			log.Warn("a line")
		}
		locktest.Sleep(2 * Every)
		want := []time.Duration{0, Every + time.Second, 2*Every + time.Second, 4 * Every}
		for i, r := range all.Records() {
			if i >= len(want) || r.Time.Sub(began) != want[i] || r.NumAttrs() != 0 {
				t.Errorf("line %d came after %v, with %d attributes", i, r.Time.Sub(began), r.NumAttrs())
			}
		}
		locktest.Equal(t, "lines", len(all.Records()), len(want))
	})
}
