package redistest

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
)

// A Firewall stands between a client and its server.
type Firewall struct {
	forgotten atomic.Int64
	refuses   atomic.Bool
}

// Forget does what a restart of the firewall does to the connections through it: nothing passes any more, in either direction, and neither
// end is told.
func (f *Firewall) Forget() { f.forgotten.Add(1) }

// Refuse is Forget, but a write to such a connection fails at once, as after a reset.
func (f *Firewall) Refuse() {
	f.refuses.Store(true)
	f.Forget()
}

// Dialer returns a dialer whose connections go through the firewall.
func (f *Firewall) Dialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &firewalled{conn, f, f.forgotten.Load()}, nil
	}
}

// firewalled is a connection through a firewall.
type firewalled struct {
	net.Conn
	f    *Firewall
	made int64 // what f.forgotten was
}

func (c *firewalled) forgotten() bool { return c.f.forgotten.Load() != c.made }

// Read implements net.Conn. What comes through a connection that is forgotten is dropped.
func (c *firewalled) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.forgotten() {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *firewalled) Write(b []byte) (int, error) {
	switch {
	case !c.forgotten():
		return c.Conn.Write(b)
	case c.f.refuses.Load():
		return 0, syscall.EPIPE
	}
	return len(b), nil
}
