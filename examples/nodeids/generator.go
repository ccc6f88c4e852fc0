//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// made is an id with what its receiver checks.
type made struct {
	ID    int64
	Node  int
	Lock  string // the name of the permit
	Token int64
}

// A generator makes snowflake ids: milliseconds since 2020, 10 bits of the node, and 12 bits that count within a millisecond. Its node id is the slot
// of a permit.
type generator struct {
	permit *fenced.Hold
	last   int64 // millisecond
	count  int64
}

var since = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// next returns the next id, or why the node id is no longer this process's.
func (g *generator) next() (made, error) {
	if err := g.permit.Err(); err != nil {
		return made{}, err
	}
	now := max(time.Since(since).Milliseconds(), g.last) // also where the clock is set back
	if now > g.last {
		g.last, g.count = now, 0
	}
	if g.count++; g.count == 1<<12 {
		g.last, g.count = g.last+1, 0
	}
	return made{g.last<<22 | int64(g.permit.Slot())<<12 | g.count, g.permit.Slot(), g.permit.Name(), g.permit.Token()}, nil
}

// work is one process: it takes a node id, and makes ids until that is lost.
func work(ctx context.Context, addr string, freezes bool, out io.Writer) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithLease(lease), rlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer client.Close()
	permit, err := fenced.NewSemaphore(client, "node-ids", nodes).Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Unlock(context.WithoutCancel(ctx))
	g, send := &generator{permit: permit}, json.NewEncoder(out)
	for n := 1; ; n++ {
		m, err := g.next()
		if errors.Is(err, rlock.ErrLost) {
			return nil
		} else if err != nil {
			return err
		}
		if freezes && n == 3 {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		}
		if err := send.Encode(m); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
