package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencelock/fencelock/internal/tell"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

const (
	minLease = 10 * time.Millisecond // below it the margin and a round trip leave nothing
	minWait  = time.Millisecond      // below it no answer of Redis can be waited for
	maxLease = scripts.MaxTTL        // beyond it Redis's own arithmetic overflows
)

// Settings is what the options of a client say.
type Settings struct {
	Lease         time.Duration // of holds that name none themselves
	Poll          time.Duration
	UnlockTimeout time.Duration
	Patience      time.Duration
	Handoffs      int
	LocalHandoffs int // 0: none
	Sharding      pubsub.Sharding
	Log           *slog.Logger
	Trace         *locktrace.Trace      // nil: none
	Presence      string                // the name of WithPresence; "" without it
	Replicas      *scripts.Confirmation // of WithReplicas, or nil
	Fsync         *scripts.Confirmation // of WithFsync, or nil
	Quorum        any                   // what the options of package quorum say, or nil
	presenceErr   error                 // what is wrong with WithPresence
}

// MakeSettings returns the defaults, changed by the options, and checked.
func MakeSettings[O ~func(*Settings)](opts []O) (Settings, error) {
	s := Settings{
		Lease:         30 * time.Second,
		Poll:          time.Second,
		UnlockTimeout: 5 * time.Second,
		Patience:      10 * time.Second,
		Handoffs:      32,
		Log:           tell.DefaultLog(),
	}
	for _, opt := range opts {
		if opt == nil {
			return s, errors.New("rlock: New: an option is nil: leave it out")
		}
		opt(&s)
	}
	if err := s.check(); err != nil {
		return s, err
	}
	s.Lease = s.Lease.Truncate(time.Millisecond) // as it is sent
	return s, nil
}

// SetPresence is WithPresence.
func (s *Settings) SetPresence(name string) {
	if s.Presence = name; name == "" || len(name) > maxPresence {
		s.presenceErr = fmt.Errorf("rlock: WithPresence: a name of %d bytes: name the service or the program, with 1 to %d", len(name), maxPresence)
	}
}

const (
	// maxLocalHandoffs bounds those of a series, as each takes a token of the 2^53 that there are.
	maxLocalHandoffs = 1024
	// mostOnFloor bounds them where tokens are times in microseconds: where a series is taken
	// 20,000 times a second, its tokens do not run ahead of the clock, and are not given again
	// where the counter is lost.
	mostOnFloor = 32
)

// maxPresence bounds the name of WithPresence.
const maxPresence = 200

// SetLog makes log the client's, with what repeats itself throttled; nil is refused by
// MakeSettings.
func (s *Settings) SetLog(log *slog.Logger) {
	if s.Log = log; log != nil {
		s.Log = tell.Throttled(log)
	}
}

// silence is how long a call that may wait goes without an answer from Redis to a command.
func (s *Settings) silence() time.Duration { return max(s.Patience, onceMore) + s.confirmTimes() }

func (s *Settings) check() error {
	if err := checkLease(s.Lease); err != nil {
		return fmt.Errorf("rlock: WithLease: %w", err)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"WithPollInterval", s.Poll}, {"WithUnlockTimeout", s.UnlockTimeout}, {"WithPatience", s.Patience}} {
		if d.d < time.Millisecond || d.d > 24*time.Hour {
			return fmt.Errorf("rlock: %s(%v): use a millisecond or more, and a day or less", d.name, d.d)
		}
	}
	if s.Handoffs < 0 || s.Handoffs > 1<<20 {
		return fmt.Errorf("rlock: WithHandoffs(%d): use 0 or more, and a million or less", s.Handoffs)
	}
	if s.LocalHandoffs < 0 || s.LocalHandoffs > maxLocalHandoffs {
		return fmt.Errorf("rlock: WithLocalHandoffs(%d): use 0 or more, and %d or less", s.LocalHandoffs, maxLocalHandoffs)
	}
	if s.presenceErr != nil {
		return s.presenceErr
	}
	if s.Log == nil {
		return fmt.Errorf("rlock: WithLogger(nil): leave the option out for slog.Default(), or pass slog.New(slog.DiscardHandler) to log nothing")
	}
	return s.checkConfirmation()
}

func checkLease(lease time.Duration) error {
	if lease < minLease || lease > maxLease {
		return fmt.Errorf("lease %v: use %v or more, and 100 years or less%s", lease, minLease, meant(lease))
	}
	return nil
}

// meant asks about a duration that looks like a bare number, as Java takes them: of seconds, or of
// milliseconds.
func meant(d time.Duration) string {
	switch {
	case d <= 0 || d >= time.Millisecond:
		return ""
	case d < 1000:
		return fmt.Sprintf("; is %d*time.Second meant?", int64(d))
	default:
		return fmt.Sprintf("; is %d*time.Millisecond meant?", int64(d))
	}
}
