package redisserver

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// No other test program is given the port before a server listens on it.
func TestFreePortIsKept(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if mark, err := net.ListenPacket("udp", addr); err == nil {
		_ = mark.Close()
		t.Error("another program would be given it")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// A node of a cluster listens on a second port too. The system must not give that one to a connection, and a port whose second
// one is in use is no free one.
func TestFreePortHasRoomForTheBus(t *testing.T) {
	for range 30 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if bus := port + BusOffset; bus >= 32768 { // where Linux begins
			t.Fatalf("the bus of port %d is %d", port, bus)
		}
	}
	found := poll(startTimeout, func() bool { // another program can take one of them between the steps
		port := 10000 + rand.IntN(BusOffset)
		bus, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+BusOffset)))
		if err != nil {
			return false
		}
		if mark, err := take(port); err == nil {
			_ = mark.Close()
			t.Fatal("a port is free whose bus is in use")
		}
		_ = bus.Close()
		mark, err := take(port)
		if err != nil {
			return false
		}
		return mark.Close() == nil
	})
	if !found {
		t.Error("no port is free that was not while its bus was in use")
	}
}
