package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// A dial to a silent host ends when go-redis ends it, and gets through with the first packet that is sent again after that is over.
func TestDialsToASilentHost(t *testing.T) {
	for _, c := range []struct{ over, limit, took time.Duration }{
		{0, time.Minute, 0},
		{500 * time.Millisecond, time.Minute, time.Second},
		{1500 * time.Millisecond, time.Minute, 3 * time.Second},
		{3500 * time.Millisecond, time.Minute, 5 * time.Second},
		{time.Minute, time.Minute, 5 * time.Second},
		{time.Minute, 2 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{links: make(map[*link]bool)}
			w := &way{net: n, server: &server{net: n}, mute: 1}
			time.AfterFunc(c.over, func() { n.mu.Lock(); w.mute--; n.mu.Unlock() })
			time.Sleep(1)
			ctx, cancel := context.WithTimeout(context.Background(), c.limit)
			defer cancel()
			began := time.Now()
			err := w.reaches(ctx)
			if took := time.Since(began); took != c.took || (err != nil) != (c.over > c.took || c.took >= dialMost) {
				t.Errorf("%v, in a silence of %v: %v after %v", c.limit, c.over, err, took)
			}
			time.Sleep(time.Minute)
		})
	}
}

// A link that tears hands over a part of what was written, and is over for both ends.
func TestLinksThatTear(t *testing.T) {
	for _, up := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{links: make(map[*link]bool)}
			w := &way{net: n, server: &server{net: n}, tears: 1}
			from, to := w.dial()
			if !up {
				from, to = to, from
			}
			_, _ = from.Write([]byte("hello"))
			_, _ = from.Write([]byte("again"))
			got, err := io.ReadAll(to)
			if len(got) == 0 || len(got) >= 5 || err != nil {
				t.Errorf("it has read %q, %v", got, err)
			}
			if _, err := from.Read(make([]byte, 9)); !errors.Is(err, io.EOF) {
				t.Errorf("the other end has no end: %v", err)
			}
		})
	}
}
