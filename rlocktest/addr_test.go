package rlocktest_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// byAddr returns a client of the locks as a program makes one that is told an address.
func byAddr(t testing.TB, addr string) (*redis.Client, *rlock.Client) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = rdb.Close()
	})
	return rdb, client
}

// A program that is told the address has the same Redis, also for messages.
func TestAddr(t *testing.T) {
	s := rlocktest.New(t)
	addr := s.Addr()
	locktest.Equal(t, "the address, again", s.Addr(), addr)
	rdb, client := byAddr(t, addr)
	mine, theirs := rlock.NewLock(s.Client(), "x"), rlock.NewLock(client, "x")
	held, err := mine.Lock(t.Context())
	locktest.NoError(t, err)
	_, err = theirs.TryLock(t.Context(), 0, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.NoError(t, mine.Unlock(held))
	held, err = theirs.Lock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "holder", s.Holder("x"), client.ID())
	locktest.NoError(t, theirs.Unlock(held))

	sub := rdb.Subscribe(t.Context(), "news")
	defer sub.Close()
	_, err = sub.Receive(t.Context())
	locktest.NoError(t, err)
	locktest.NoError(t, s.Redis().Publish(t.Context(), "news", "hello").Err())
	m, err := sub.ReceiveMessage(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "message", m.Payload, "hello")
}

// Pause and Refuse hold for those who come by the address.
func TestFaultsOfAddr(t *testing.T) {
	s := rlocktest.New(t)
	rdb, _ := byAddr(t, s.Addr())
	locktest.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	s.Refuse(errors.New("NOAUTH Authentication required."))
	locktest.ErrorSays(t, rdb.Get(t.Context(), "k").Err(), "NOAUTH")
	s.Refuse(nil)
	s.Pause()
	got := locktest.Start(func() error { return rdb.Get(t.Context(), "k").Err() })
	locktest.NothingComes(t, got, 100*time.Millisecond, "an answer of a server that stands still")
	s.Resume()
	locktest.NoError(t, <-got)
}

// The port is closed, and its connections are, when the test is over; whether a client is closed or not.
func TestAddrEndsWithTheTest(t *testing.T) {
	var addr string
	var conn net.Conn
	t.Run("server", func(t *testing.T) {
		s := rlocktest.New(t)
		addr = s.Addr()
		var err error
		conn, err = net.Dial("tcp", addr)
		locktest.NoError(t, err)
		_, err = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		locktest.NoError(t, err)
		reply := make([]byte, 64)
		n, err := conn.Read(reply)
		locktest.NoError(t, err)
		locktest.Equal(t, "reply", string(reply[:n]), "+PONG\r\n")
	})
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	if late, err := net.Dial("tcp", addr); err == nil {
		_ = late.Close()
		t.Error("the port is open")
	}
}

func TestAddrInABubble(t *testing.T) {
	got := told(t, func(t testing.TB) { rlocktest.New(t).Addr() })
	if !strings.Contains(got, "use Client or Redis") || !strings.Contains(got, "outside of a bubble") {
		t.Errorf("the test was told %q", got)
	}
}
