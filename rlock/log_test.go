package rlock_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// logLine is what a test looks at of a line.
type logLine struct {
	at      time.Time
	level   slog.Level
	lock    string
	leftOut int
}

// logKeeper keeps what is logged.
type logKeeper struct{ redistest.Log }

// of returns the lines of this text.
func (k *logKeeper) of(text string) []logLine {
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

// logDefault makes a keeper the default log, until the test ends. No parallel test runs meanwhile.
func logDefault(t *testing.T) *logKeeper {
	k := new(logKeeper)
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
)

// A client without WithLogger tells slog.Default, whatever that is when there is something to tell; one with a
// DiscardHandler nobody.
func TestLogDefault(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		loud := rlock.NewLock(bhClient(t, rdb), "loud")
		silent := rlock.NewLock(bhClient(t, rdb, rlock.WithLogger(slog.New(slog.DiscardHandler))), "silent")
		bhLock(t, loud, t.Context())
		bhLock(t, silent, t.Context())
		k := logDefault(t) // after New
		for _, l := range []*rlock.Lock{silent, loud} {
			_, err := l.ForceUnlock(t.Context())
			bhOK(t, err)
		}
		bhAsleep(time.Second)
		if lines := k.of(logLost); len(lines) != 1 || lines[0].lock != "loud" || lines[0].level != slog.LevelWarn {
			t.Errorf("the default log has %v", lines)
		}
	})
}

// A message that repeats itself is logged at once, then once in 10 s with the number of lines that were left out; Close
// tells the rest. None is lost, and other messages do not wait for it.
func TestLogIsThrottled(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		k := new(logKeeper)
		spy := bhSpyOn(rdb)
		c := bhClient(t, rdb, rlock.WithLease(20*time.Second), rlock.WithLogger(slog.New(k)))
		l := rlock.NewLock(c, "l")
		other := rlock.NewLock(c, "other")
		bhLock(t, l, t.Context())
		bhLock(t, other, t.Context())
		var failures atomic.Int64
		spy.wrap(func(ctx context.Context, s string, next func() error) error {
			if s == "renew" {
				failures.Add(1)
				return errors.New("no renewals today")
			}
			return next()
		})
		bhAsleep(15 * time.Second)
		_, err := other.ForceUnlock(t.Context())
		bhOK(t, err)
		bhAsleep(time.Millisecond)
		bhEqual(t, "lines of the other loss, at once", len(k.of(logLost)), 1)
		bhAsleep(10 * time.Second)
		bhEqual(t, "lines of both losses", len(k.of(logLost)), 2)
		bhLock(t, l, t.Context())
		bhAsleep(9 * time.Second)
		bhOK(t, c.Close())
		bhAsleep(time.Minute)

		lines, told, failed := k.of(logRenewals), 0, int(failures.Load())
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
