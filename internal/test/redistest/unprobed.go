package redistest

import (
	"bytes"
	"context"
	"io"
	"net"
)

// Unprobed returns a dialer for a server that fails when a client looks whether it answers (scripts/alive.go). For a test whose hooks hold up
// commands, in place of a server that is silent: that PING goes through no hook. A nil dial is that of package net.
func Unprobed(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return unprobed{conn}, nil
	}
}

type unprobed struct{ net.Conn }

// Write implements net.Conn.
func (c unprobed) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("ping\r\n$9\r\nfencelock\r\n")) {
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}
