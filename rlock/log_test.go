package rlock_test

import (
	"errors"
	"log"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// logLine is what a test looks at of a line.
type logLine struct {
	at      time.Time
	level   slog.Level
	lock    string
	leftOut int
}

// logLines returns the lines of this text.
func logLines(k *locktest.Log, text string) []logLine {
	var found []logLine
	for _, r := range k.Records() {
		if r.Message != text {
			continue
		}
		line := logLine{at: r.Time, level: r.Level}
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "left out":
				line.leftOut = int(a.Value.Int64())
			case "lock", "one":
				line.lock = a.Value.String()
			}
			return true
		})
		found = append(found, line)
	}
	return found
}

// logDefault makes a new log the default one, until the test ends. No parallel test runs meanwhile.
func logDefault(t *testing.T) *locktest.Log {
	k := new(locktest.Log)
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	slog.SetDefault(slog.New(k))
	return k
}

const (
	logRenewals = "rlock: renewals failed, they are repeated until the leases are over"
	logLost     = "rlock: lock lost"
	logRanOut   = "rlock: a lease that is not renewed ran out"
)

// A client without WithLogger tells slog.Default, whatever that is when there is something to tell; one with a
// DiscardHandler nobody.
func TestLogDefault(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		loud := rlock.NewLock(newClient(t, rdb), "loud")
		silent := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(slog.New(slog.DiscardHandler))), "silent")
		take(t, loud, t.Context())
		take(t, silent, t.Context())
		k := logDefault(t) // after New
		for _, l := range []*rlock.Lock{silent, loud} {
			_, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
		}
		locktest.Sleep(time.Second)
		if lines := logLines(k, logLost); len(lines) != 1 || lines[0].lock != "loud" || lines[0].level != slog.LevelWarn {
			t.Errorf("the default log has %v", lines)
		}
	})
}

// A message that repeats itself is logged at once, then once in 10 s with the number of lines that were left out; Close
// tells the rest. None is lost, and other messages do not wait for it.
func TestLogIsThrottled(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		k := new(locktest.Log)
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb, rlock.WithLease(20*time.Second), rlock.WithLogger(slog.New(k)))
		l := rlock.NewLock(c, "l")
		other := rlock.NewLock(c, "other")
		take(t, l, t.Context())
		take(t, other, t.Context())
		var failures atomic.Int64
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "renew") {
				failures.Add(1)
				return errors.New("no renewals today")
			}
			return next()
		})
		locktest.Sleep(15 * time.Second)
		_, err := other.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Millisecond)
		locktest.Equal(t, "lines of the other loss, at once", len(logLines(k, logLost)), 1)
		locktest.Sleep(10 * time.Second)
		locktest.Equal(t, "lines of both losses", len(logLines(k, logLost)), 2)
		take(t, l, t.Context())
		locktest.Sleep(9 * time.Second)
		locktest.NoError(t, c.Close())
		locktest.Sleep(time.Minute)

		lines, told, failed := logLines(k, logRenewals), 0, int(failures.Load())
		for i, line := range lines {
			told += 1 + line.leftOut
			if i > 0 && i < len(lines)-1 && line.at.Sub(lines[i-1].at) < 10*time.Second {
				t.Errorf("a line %v after the one before", line.at.Sub(lines[i-1].at))
			}
		}
		if failed <= len(lines) || len(lines) > 6 || lines[0].leftOut != 0 || told != failed {
			t.Errorf("%d renewals failed; %d lines tell of %d: %v", failed, len(lines), told, lines)
		}
	})
}
