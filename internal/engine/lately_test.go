package engine

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/scripts"
)

// P38: of the locks that were released lately each is there once, and the newest one always.
func TestP38_LatelyReleased(t *testing.T) {
	l := new(lately)
	for i := range 100_000 {
		keys := scripts.KeysOf(fmt.Sprint("lock ", i))
		for range 2 {
			l.note(keys)
			n := 0
			for _, set := range l.locks {
				for _, have := range set {
					if have.keys == keys {
						n++
					}
				}
			}
			if n != 1 {
				t.Fatalf("%s is there %d times", keys.Lock, n)
			}
		}
		if i > 3*latelySets*latelyWays {
			break
		}
	}
}

// P38: a dial that leads to another address than the one before it says so once to each lock client.
func TestP38_ADialToAnotherServer(t *testing.T) {
	var d dials
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
			locktest.Equal(t, fmt.Sprint("moved at dial ", i), d.moved(seen), want)
			locktest.Equal(t, "moved again", d.moved(seen), false)
		}
	}
	locktest.Equal(t, "without dials", (*dials)(nil).moved(&one), false)
}

type connTo struct {
	net.Conn
	to net.Addr
}

func (c connTo) RemoteAddr() net.Addr { return c.to }
