package main

import (
	"context"
	"net"
	"time"
)

// again is after which pauses TCP sends its first packet again to a host that is silent. A dial of go-redis ends after 5 s.
var again = []time.Duration{time.Second, 2 * time.Second}

const dialMost = 5 * time.Second // the DialTimeout of go-redis; a subscription gives its own dialer none

// reaches waits until a first packet has got through to the server. The error is that of the context, or of the dial.
func (w *way) reaches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialMost)
	defer cancel()
	for n := 0; ; n++ {
		w.net.mu.Lock()
		mute := w.mute > 0 && !w.gone && !w.server.over
		w.net.mu.Unlock()
		if !mute {
			return nil
		}
		pause := dialMost
		if n < len(again) {
			pause = again[n]
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
		}
	}
}

// noDials is a fault: no connection can be made, and mostly there is none any more.
func (w *world) noDials(f fault) (ends func()) {
	ways := w.waysOf(f)
	change := func(by int) {
		w.set(func() {
			for _, one := range ways {
				one.mute += by
			}
		})
	}
	change(1)
	if f.X%4 > 0 {
		w.net.each(w.of(f), (*link).cut)
	}
	return func() { change(-1) }
}
