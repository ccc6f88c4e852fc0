package rlocktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Addr returns the address of the Server, as host:port, for code that makes its Redis client of an address. The first call opens a TCP port
// of the loopback interface, which the end of the test closes. [Server.Pause] holds for its connections too, and so does [Server.Refuse]
// for those that give themselves no client name. The Server does not know the locks of such a client: what they leave is no failure of
// the test, and [Server.Stop] and [Server.Kill] are not for them.
//
// In a testing/synctest bubble Addr fails the test: a read from a socket keeps the time of a bubble from going on. Give the code a client of
// [Server.Client] or [Server.Redis] there.
func (s *Server) Addr() string {
	s.t.Helper()
	if s.bubble {
		s.t.Fatal("rlocktest: Addr: a read from a socket keeps the time of a testing/synctest bubble from going on: use Client or Redis, which need no port, or make the Server outside of a bubble")
	}
	addr, err := s.port.open(s.link)
	if err != nil {
		s.t.Fatalf("rlocktest: Addr: %v", err)
	}
	return addr
}

// link returns a connection to the server for one of the port, which Pause and Refuse know.
func (s *Server) link() (net.Conn, error) {
	conn, err := s.redis.Options(&s.paused).Dialer(context.Background(), "", "")
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$%d\r\n%s\r\n", len(refusable), refusable)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len("+OK\r\n")))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// A port is a TCP listener whose connections lead to the Server. The zero port is closed.
type port struct {
	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool // nil while the port is closed
	serving  sync.WaitGroup
}

// open opens the port, if it is closed, and returns its address. link is called for each connection.
func (p *port) open(link func() (net.Conn, error)) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		p.listener, p.conns = l, map[net.Conn]bool{}
		p.serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				p.serving.Go(func() { p.serve(conn, link) })
			}
		})
	}
	return p.listener.Addr().String(), nil
}

// serve carries what a connection and its link have for each other, until one of them ends.
func (p *port) serve(conn net.Conn, link func() (net.Conn, error)) {
	defer conn.Close()
	server, err := link()
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	isOpen := p.conns != nil
	if isOpen {
		p.conns[conn] = true
	}
	p.mu.Unlock()
	if !isOpen {
		return
	}
	p.serving.Go(func() {
		defer conn.Close()
		_, _ = io.Copy(conn, server)
	})
	_, _ = io.Copy(server, conn)
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
}

// close ends the port and its connections.
func (p *port) close() {
	p.mu.Lock()
	if p.conns != nil {
		_ = p.listener.Close()
	}
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.serving.Wait()
}
