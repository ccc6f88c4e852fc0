package sqltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencelock/fencelock/guard/sqlguard"
)

// A write without an answer is told apart from one that has not happened, wherever the connection is lost.
func TestPgxConnectionLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      string // the statement at which the connection is lost
		sent    bool   // after the server has it
		unknown bool
		written int64
	}{
		{"before the check", "INSERT INTO", false, false, 0},
		{"after the check", "INSERT INTO", true, false, 0},
		{"before the write", "UPDATE account", false, false, 0},
		{"after the write", "UPDATE account", true, false, 0},
		{"before the commit", "commit", false, true, 0},
		{"after the commit", "commit", true, true, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines atomic.Pointer[[]byte]
			p := openPooled(t, func(config *pgxpool.Config) {
				config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // a statement is one message
				dial := config.ConnConfig.DialFunc
				config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return &cut{conn, &lines, c.sent}, err
				}
			})
			noError(t, p.pool.Ping(t.Context()))
			at := []byte(c.at)
			lines.Store(&at)
			err := p.pgx.Do(t.Context(), p.pool, "r", 5, func(tx pgx.Tx) error { return p.set(t.Context(), tx, 7) })
			if err == nil || errors.Is(err, sqlguard.ErrUnknown) != c.unknown {
				t.Errorf("error %v, want that it is ErrUnknown: %v", err, c.unknown)
			}
			if lines.Load() != nil {
				t.Fatal("the connection was not lost")
			}
			p.has(t, c.written)
			noError(t, p.pgx.Do(t.Context(), p.pool, "r", 5, func(tx pgx.Tx) error { return p.set(t.Context(), tx, 8) })) // the pool has another one
		})
	}
}

// cut is a connection that is lost at the first message with the text.
type cut struct {
	net.Conn
	at   *atomic.Pointer[[]byte]
	sent bool
}

func (c *cut) Write(message []byte) (int, error) {
	at := c.at.Load()
	if at == nil || !bytes.Contains(message, *at) || !c.at.CompareAndSwap(at, nil) {
		return c.Conn.Write(message)
	}
	defer c.Conn.Close()
	if c.sent {
		if _, err := c.Conn.Write(message); err != nil {
			return 0, err
		}
		if _, err := io.ReadAtLeast(c.Conn, make([]byte, 512), 1); err != nil { // the server has done it
			return 0, err
		}
	}
	return 0, net.ErrClosed
}
