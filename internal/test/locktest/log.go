package locktest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A Log is a slog.Handler that keeps what it is told. The zero Log is ready.
type Log struct {
	mu      sync.Mutex
	records []slog.Record
}

// Logger returns a logger that tells the log.
func (l *Log) Logger() *slog.Logger { return slog.New(l) }

// Enabled implements slog.Handler.
func (l *Log) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *Log) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler. The time of what is kept is when it came.
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone()
	r.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// Records returns what was logged.
func (l *Log) Records() []slog.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]slog.Record(nil), l.records...)
}

// With returns the lines, with their attributes, that have this part.
func (l *Log) With(part string) []string {
	var found []string
	for _, r := range l.Records() {
		line := r.Message
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// Count tells how many lines, with their attributes, have this part.
func (l *Log) Count(part string) int { return len(l.With(part)) }

// String returns all lines.
func (l *Log) String() string { return strings.Join(l.With(""), "\n") }
