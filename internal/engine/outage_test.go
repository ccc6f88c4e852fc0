package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// While Redis answers none of 200 callers the log says so, now and then that it goes on, and once when it is over, with how long it was
// away.
func TestOutageIsLogged(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		var log locktest.Log
		client, err := newTestClient(rdb, logTo(&log))
		locktest.NoError(t, err)
		defer func() { _ = client.Close() }()
		try := func(i int) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			l := NewLock(client, fmt.Sprint("l", i%50), LockOptions{})
			if held, _, err := l.Acquire(ctx, Request{Forever: true}); err == nil {
				_ = l.Unlock(held)
			}
		}
		var all sync.WaitGroup
		stop := make(chan struct{})
		for i := range 200 {
			all.Go(func() {
				for !isClosed(stop) {
					try(i)
					time.Sleep(time.Second)
				}
			})
		}
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "lines while all is well", len(log.Records()), 0)
		began := time.Now()
		m.SetError("LOADING Redis is loading the dataset in memory")
		locktest.Sleep(60 * time.Second)
		m.SetError("")
		locktest.Sleep(20 * time.Second)
		close(stop)
		all.Wait()
		want := []string{"2s WARN 1s", "13s WARN 12s", "33s WARN 32s", "1m0s INFO 59s"} // the first call comes after a second, and repeats come after pauses
		locktest.DeepEqual(t, "lines", outageLines(&log, began), want)
	})
}

// An outage begins with the first command that fails and ends with an answer. A connection that broke is none, and neither is a late error
// of a command beside which others were answered.
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

// A server that stands still is one that does not answer.
func TestOutageOfAFrozenServer(t *testing.T) {
	server := redistest.Real(t)
	var log locktest.Log
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond })
	client, err := newTestClient(rdb, logTo(&log))
	locktest.NoError(t, err)
	defer func() { _ = client.Close() }()
	l := NewLock(client, "l", LockOptions{})
	held, _, err := l.Acquire(t.Context(), Request{})
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(held))
	server.Freeze()
	wait := locktest.Start(func() error {
		held, _, err := l.Acquire(t.Context(), Request{Forever: true})
		return errors.Join(err, l.Unlock(held))
	})
	redistest.Eventually(t, time.Minute, func() bool { return log.Count("does not answer") == 1 }, "the log says that it does not answer")
	locktest.Equal(t, "lines of its end", log.Count("answers again"), 0)
	server.Thaw()
	locktest.NoError(t, <-wait)
	redistest.Eventually(t, time.Minute, func() bool { return log.Count("answers again") == 1 }, "the log says that it answers again")
}
