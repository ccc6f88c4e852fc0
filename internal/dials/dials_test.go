package dials

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv9: nothing is kept of a client of Redis that is gone.
func TestInv9_NothingIsKeptOfAClientOfRedis(t *testing.T) {
	key := func() weak.Pointer[redis.Client] {
		rdb := redis.NewClient(&redis.Options{Protocol: 2})
		first := Of(rdb)
		locktest.Equal(t, "the client of Redis has one hook", Of(rdb), first)
		locktest.NoError(t, rdb.Close())
		return weak.Make(rdb)
	}()
	redistest.Eventually(t, time.Minute, func() bool {
		runtime.GC()
		hooked.Lock()
		defer hooked.Unlock()
		_, kept := hooked.of[key]
		return !kept
	}, "the hook is forgotten")
}

// P38: a dial that leads to another address than the one before it says so once to each lock client.
func TestP38_ADialToAnotherServer(t *testing.T) {
	var d Dials
	to := net.IPv4(127, 0, 0, 1)
	dial := d.DialHook(func(context.Context, string, string) (net.Conn, error) { return connTo{to: &net.IPAddr{IP: to}}, nil })
	var one, two atomic.Uint32
	for i, want := range []bool{false, false, true, false, true} {
		if want {
			to = net.IPv4(127, 0, 0, byte(2+i))
		}
		_, err := dial(t.Context(), "", "")
		locktest.NoError(t, err)
		for _, seen := range []*atomic.Uint32{&one, &two} {
			locktest.Equal(t, fmt.Sprint("moved at dial ", i), d.Moved(seen), want)
			locktest.Equal(t, "moved again", d.Moved(seen), false)
		}
	}
	locktest.Equal(t, "without dials", (*Dials)(nil).Moved(&one), false)
}

type connTo struct {
	net.Conn
	to net.Addr
}

func (c connTo) RemoteAddr() net.Addr { return c.to }
