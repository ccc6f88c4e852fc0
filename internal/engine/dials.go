package engine

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dials is a go-redis hook that knows why the latest dial failed that did, and whether dials lead to another server. A command learns of that when go-redis has
// dialed five times, after half a second: for a call with a shorter wait that is too late.
type dials struct {
	failed atomic.Pointer[dialFailure]
	addr   atomic.Pointer[string] // to which the latest dial led that did not fail
	moves  atomic.Uint32          // how often that was another one than before
}

type dialFailure struct {
	at  time.Time
	err error
}

// dialsOf returns the hook of a client of Redis, of which there is one, however many lock clients it has.
func dialsOf(rdb *redis.Client) *dials {
	hooked.Lock()
	defer hooked.Unlock()
	key := weak.Make(rdb)
	d := hooked.of[key]
	if d == nil {
		d = new(dials)
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
	of map[weak.Pointer[redis.Client]]*dials
}{of: make(map[weak.Pointer[redis.Client]]*dials)}

// DialHook implements redis.Hook.
func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			d.failed.Store(&dialFailure{time.Now(), err})
		} else {
			addr := conn.RemoteAddr().String()
			if old := d.addr.Swap(&addr); old != nil && *old != addr {
				d.moves.Add(1)
			}
		}
		return conn, err
	}
}

// moved tells whether a dial has led to another address than the one before it, since it was asked last with this variable.
func (d *dials) moved(seen *atomic.Uint32) bool {
	if d == nil {
		return false
	}
	n := d.moves.Load()
	return seen.Load() != n && seen.Swap(n) != n
}

// ProcessHook implements redis.Hook.
func (d *dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (d *dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// since returns why a dial failed at this time or later, nil if none did.
func (d *dials) since(t time.Time) error {
	if d == nil {
		return nil
	}
	if f := d.failed.Load(); f != nil && !f.at.Before(t) {
		return f.err
	}
	return nil
}
