package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// slowBy is what the slow link adds to each round trip.
const slowBy = time.Millisecond

// A link is a way to the server that takes longer: what a client sends arrives later by a fixed time, in its order and
// with no bound on how much is under way; what the server sends arrives at once. It runs in this process, whose CPU
// includes what it takes.
type link struct {
	addr     string
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	conns    []net.Conn
}

func startLink(to string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{addr: listener.Addr().String(), listener: listener}
	l.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			if !l.keep(client, server) {
				return
			}
			l.wg.Go(func() { forwardLater(server, client, delay) })
			l.wg.Go(func() { forward(client, server) })
		}
	})
	return l, nil
}

// keep notes connections for close; false, and they are closed, if it was.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		closeConns(conns)
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// close ends all connections, and waits until nothing runs any more.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	_ = l.listener.Close()
	closeConns(l.conns)
	l.mu.Unlock()
	l.wg.Wait()
}

func closeConns(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// forward passes on what comes, and then the end.
func forward(to, from net.Conn) {
	defer closeConns([]net.Conn{to, from})
	_, _ = io.Copy(to, struct{ io.Reader }{from}) // not by splice: the same work in both directions
}

// A parcel is bytes under way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// forwardLater passes on what comes, each piece when it is due.
func forwardLater(to, from net.Conn, delay time.Duration) {
	// A channel of this size holds more than a client sends in the delay; past it the sender waits, and nothing is lost.
	underway := make(chan parcel, 1<<12)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var err error
		for p := range underway {
			time.Sleep(time.Until(p.due))
			if err == nil {
				_, err = to.Write(p.bytes)
			}
		}
		_ = to.Close()
	}()
	defer func() { close(underway); <-written }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			underway <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}
