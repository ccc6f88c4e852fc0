package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

func TestTheLinkAddsItsDelayToEachRoundTrip(t *testing.T) {
	realtime.Test(t, "round trips of 15 ms")
	addr, _ := testServer(t)
	const delay = 5 * time.Millisecond
	l, err := startLink(addr, delay)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	rdb := open(l.addr)
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	if err := rdb.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	var trips []time.Duration
	for range 20 {
		begin := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		trips = append(trips, time.Since(begin))
	}
	least := trips[0]
	for _, trip := range trips {
		least = min(least, trip)
	}
	if least < delay || least > 3*delay {
		t.Errorf("the shortest of %d round trips took %v, want %v and a bit", len(trips), least, delay)
	}
}

// What is sent while something else is under way does not wait for it, and comes in order.
func TestTheLinkIsWideAndInOrder(t *testing.T) {
	realtime.Test(t, "an echo within a second")
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		c, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	const delay, pieces = 50 * time.Millisecond, 40
	l, err := startLink(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	begin := time.Now()
	var sent []byte
	for i := range pieces {
		piece := bytes.Repeat([]byte{byte(i)}, 10_000)
		sent = append(sent, piece...)
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // a piece of its own
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what came is not what was sent: %v", err)
	}
	if took := time.Since(begin); took < delay || took > pieces*delay/2 {
		t.Errorf("it took %v: one delay of %v, not %d of them", took, delay, pieces)
	}
}
