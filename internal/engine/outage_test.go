package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/tell"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// outageLines are what the log has of outages, each with the second since began in which it came.
func outageLines(log *locktest.Log, began time.Time) (all []string) {
	for _, r := range log.Records() {
		if !strings.Contains(r.Message, "answer") {
			continue
		}
		line := fmt.Sprintf("%v %v", r.Time.Sub(began).Round(time.Second), r.Level)
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "away" {
				line += fmt.Sprint(" ", a.Value.Duration().Round(time.Second))
			}
			return true
		})
		all = append(all, line)
	}
	return all
}

// An outage begins with the first command that fails and ends with an answer. A connection that
// broke is none, and neither is a late error of a command beside which others were answered.
func TestOutages(t *testing.T) {
	for _, c := range []struct {
		what    string
		cluster bool
		happens func(heard func(slot uint16, sent time.Duration, err error))
		want    []string
	}{
		{"a broken connection", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 0, io.EOF)
			time.Sleep(900 * time.Millisecond)
			heard(0, 0, io.EOF)
			heard(0, 0, nil)
		}, nil},
		{"silence", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 5*time.Second, context.DeadlineExceeded)
			time.Sleep(time.Second)
			heard(0, 0, nil)
			heard(0, 0, nil)
		}, []string{"0s WARN 5s", "1s INFO 6s"}},
		{"a late error", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 0, nil)
			heard(0, 5*time.Second, context.DeadlineExceeded)
			time.Sleep(time.Second)
			heard(0, 0, nil)
		}, nil},
		{"an error that stays is an answer", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 2*time.Second, io.EOF)
			time.Sleep(time.Second)
			heard(0, 0, locktest.Reply("NOPERM no"))
		}, []string{"0s WARN 2s", "1s INFO 3s"}},
		{"a hold that is gone is an answer", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 2*time.Second, scripts.ErrGone)
		}, nil},
		{"the end of a context is none", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 2*time.Second, io.EOF)
			heard(0, 0, context.Canceled)
		}, []string{"0s WARN 2s"}},
		{"a client that asks nothing for long", false, func(heard func(uint16, time.Duration, error)) {
			heard(0, 2*time.Second, io.EOF)
			time.Sleep(time.Hour)
			heard(0, 0, nil)
		}, []string{"0s WARN 2s", "1h0m0s INFO 2s"}},
		{"one node of a cluster", true, func(heard func(uint16, time.Duration, error)) {
			for range 3 {
				heard(1, 2*time.Second, io.EOF)
				heard(2, 0, nil)
				time.Sleep(3 * time.Second)
			}
			heard(1, 0, nil)
		}, []string{"0s WARN 2s", "9s INFO 11s"}},
		{"a node that nobody asks any more", true, func(heard func(uint16, time.Duration, error)) {
			heard(1, 2*time.Second, io.EOF)
			time.Sleep(50 * time.Second)
			heard(2, 0, nil)
			time.Sleep(10 * time.Second)
			heard(2, 0, nil)
		}, []string{"0s WARN 2s", "1m0s INFO 2s"}},
		{"half a day", false, func(heard func(uint16, time.Duration, error)) {
			for range 12 * 3600 {
				heard(0, 2*time.Second, io.EOF)
				time.Sleep(time.Second)
			}
		}, nil},
	} {
		redistest.Virtual(t, func(t *testing.T) {
			var log locktest.Log
			client, _ := newFakeClient(t, &fakeBus{}, Limits{}, logTo(&log))
			client.cluster = c.cluster
			time.Sleep(10 * time.Second) // errors are as old as 5 s
			began := time.Now()
			c.happens(func(slot uint16, ago time.Duration, err error) {
				client.heard(slot, time.Now().Add(-ago), err)
			})
			locktest.Sleep(2 * tell.Every)
			lines := outageLines(&log, began)
			if c.what == "half a day" {
				if len(lines) < 12*6 || len(lines) > 12*6+10 {
					t.Errorf("%d lines of half a day", len(lines))
				}
				return
			}
			locktest.DeepEqual(t, c.what, lines, c.want)
		})
	}
}
