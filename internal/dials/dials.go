// Package dials knows why a client of Redis has no connection.
//
// Dials.mu, and that of the list of all hooks, are taken with no other mutex of the package held.
package dials

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// Dials is a go-redis hook that knows which dials are under way, why the latest one failed that did, and whether dials lead to another server.
// A command learns of a failed dial when go-redis has dialed five times, after half a second, or after five times the DialTimeout: for a call
// that waits for less that is too late.
type Dials struct {
	what string // what a dial makes

	mu       sync.Mutex
	underWay []*dialing // the oldest one first
	failedAt time.Time
	failure  error         // nil for none
	addr     string        // to which the latest dial led that did not fail
	moves    atomic.Uint32 // how often that was another one than before
}

// dialing is a dial that is under way.
type dialing struct {
	began time.Time
	to    string
}

// Of returns the hook of a client of Redis, of which there is one, however many lock clients it has.
func Of(rdb *redis.Client) *Dials {
	hooked.Lock()
	defer hooked.Unlock()
	key := weak.Make(rdb)
	d := hooked.of[key]
	if d == nil {
		d = &Dials{what: "dial"}
		if rdb.Options().TLSConfig != nil {
			d.what = "dial and TLS handshake"
		}
		rdb.AddHook(d)
		hooked.of[key] = d
		runtime.AddCleanup(rdb, func(key weak.Pointer[redis.Client]) {
			hooked.Lock()
			defer hooked.Unlock()
			delete(hooked.of, key)
		}, key)
	}
	return d
}

var hooked = struct {
	sync.Mutex
	of map[weak.Pointer[redis.Client]]*Dials
}{of: make(map[weak.Pointer[redis.Client]]*Dials)}

// DialHook implements redis.Hook.
func (d *Dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		one := d.begin(network + " " + addr)
		conn, err := next(ctx, network, addr)
		d.end(one, conn, err)
		return conn, err
	}
}

func (d *Dials) begin(to string) *dialing {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := &dialing{time.Now(), to}
	d.underWay = append(d.underWay, one)
	return one
}

func (d *Dials) end(one *dialing, conn net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.underWay = slices.DeleteFunc(d.underWay, func(other *dialing) bool { return other == one })
	if err == nil {
		d.led(conn.RemoteAddr())
		return
	}
	if errors.Is(err, context.Canceled) {
		return // whoever dialed has given up, and nobody else is to hear of that
	}
	if op := new(net.OpError); !errors.As(err, &op) { // it does not say what it is of: a TLS handshake, or a dialer of the user's
		err = fmt.Errorf("%s %s: %w", d.what, one.to, err)
	}
	d.failedAt, d.failure = time.Now(), err
}

// led notes the address to which a dial has led; nil where its connection does not say. With d.mu held.
func (d *Dials) led(to net.Addr) {
	if to == nil {
		return
	}
	addr := to.String()
	if d.addr != "" && d.addr != addr {
		d.moves.Add(1)
	}
	d.addr = addr
}

// Moved tells whether a dial has led to another address than the one before it, since it was asked last with this variable.
func (d *Dials) Moved(seen *atomic.Uint32) bool {
	if d == nil {
		return false
	}
	n := d.moves.Load()
	return seen.Load() != n && seen.Swap(n) != n
}

// ProcessHook implements redis.Hook.
func (d *Dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (d *Dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Since returns why a command that was sent at this time may have no connection: a dial is under way for most of the time since then, or
// one failed. It returns nil where nothing is known.
func (d *Dials) Since(t time.Time) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.underWay) > 0 {
		if oldest := d.underWay[0]; time.Since(oldest.began) > time.Since(t)/2 {
			return fmt.Errorf("%s %s: no end of it after %v", d.what, oldest.to, time.Since(oldest.began).Round(time.Millisecond))
		}
	}
	if d.failure != nil && !d.failedAt.Before(t) {
		return d.failure
	}
	return nil
}
