package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// Inv12: each setting is taken at the ends of its range and refused beyond them, by an error that
// names the option.
func TestInv12_RangesOfSettings(t *testing.T) {
	durations := func(least, most time.Duration, set func(s *Settings, d time.Duration)) map[string]func(*Settings) {
		all := make(map[string]func(*Settings))
		for what, d := range map[string]time.Duration{"least": least, "most": most, "too little": least - 1, "too much": most + 1} {
			all[what] = func(s *Settings) { set(s, d) }
		}
		return all
	}
	const day = 24 * time.Hour
	for option, values := range map[string]map[string]func(*Settings){
		"WithLease":         durations(10*time.Millisecond, 100*365*day, func(s *Settings, d time.Duration) { s.Lease = d }),
		"WithPollInterval":  durations(time.Millisecond, day, func(s *Settings, d time.Duration) { s.Poll = d }),
		"WithUnlockTimeout": durations(time.Millisecond, day, func(s *Settings, d time.Duration) { s.UnlockTimeout = d }),
		"WithPatience":      durations(time.Millisecond, day, func(s *Settings, d time.Duration) { s.Patience = d }),
		"WithHandoffs": {
			"least":      func(s *Settings) { s.Handoffs = 0 },
			"most":       func(s *Settings) { s.Handoffs = 1 << 20 },
			"too little": func(s *Settings) { s.Handoffs = -1 },
			"too much":   func(s *Settings) { s.Handoffs = 1<<20 + 1 },
		},
	} {
		for what, set := range values {
			_, err := MakeSettings([]func(*Settings){set})
			switch refused := strings.HasPrefix(what, "too"); {
			case refused && (err == nil || !strings.HasPrefix(err.Error(), "rlock: "+option)):
				t.Errorf("%s, %s: the error is %v", option, what, err)
			case !refused && err != nil:
				t.Errorf("%s, %s: %v", option, what, err)
			}
		}
	}
	_, err := MakeSettings([]func(*Settings){nil})
	locktest.ErrorSays(t, err, "rlock: New", "an option is nil")
}

// A client trusts in no more of a lease than is sent to Redis, which is whole milliseconds.
func TestLeaseIsCutToMilliseconds(t *testing.T) {
	set, err := MakeSettings([]func(*Settings){func(s *Settings) { s.Lease = 1500*time.Millisecond + 999*time.Microsecond }})
	locktest.NoError(t, err)
	locktest.Equal(t, "lease", set.Lease, 1500*time.Millisecond)
}

// Inv12: who has given a bare number, as Java takes it, is asked whether seconds or milliseconds
// are meant. Others are not.
func TestInv12_BareNumbers(t *testing.T) {
	for d, unit := range map[time.Duration]string{
		-1: "", 0: "", 1: "Second", 999: "Second", 1000: "Millisecond", time.Millisecond - 1: "Millisecond", time.Millisecond: "", time.Second: "",
	} {
		want := ""
		if unit != "" {
			want = fmt.Sprintf("; is %d*time.%s meant?", int64(d), unit)
		}
		locktest.Equal(t, d.String(), meant(d), want)
	}
}
