package main

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A link is the network between one worker and a server: a TCP proxy that can break in the ways that networks do.
type link struct {
	listener net.Listener
	target   atomic.Pointer[string]

	refuses  atomic.Bool  // new connections are closed at once
	delay    atomic.Int64 // ns that each piece of a reply takes longer
	replies  atomic.Bool  // what comes from the server is lost
	messages atomic.Bool  // what is published is lost

	mu    sync.Mutex
	pairs map[*pair]struct{}
}

// A pair is a connection of the worker and the one to the server behind it.
type pair struct {
	client, server net.Conn
	subscribed     atomic.Bool
	holed          atomic.Bool // something that came from the server was lost: it is good for nothing more
}

func newLink(target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, pairs: make(map[*pair]struct{})}
	l.aim(target)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(client)
		}
	}()
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// aim makes new connections lead to this server.
func (l *link) aim(target string) { l.target.Store(&target) }

// cut closes all connections, or those that have lost something.
func (l *link) cut(which func(*pair) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		if which(p) {
			p.close()
		}
	}
}

func every(*pair) bool { return true }

func holed(p *pair) bool { return p.holed.Load() }

func (l *link) close() {
	_ = l.listener.Close()
	l.refuses.Store(true)
	l.cut(every)
}

func (p *pair) close() {
	_ = p.client.Close()
	_ = p.server.Close()
}

func (l *link) connect(client net.Conn) {
	if l.refuses.Load() {
		_ = client.Close()
		return
	}
	server, err := net.DialTimeout("tcp", *l.target.Load(), time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	p := &pair{client: client, server: server}
	l.mu.Lock()
	l.pairs[p] = struct{}{}
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.requests(p) })
	both.Go(func() { l.answers(p) })
	both.Wait()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

func (l *link) requests(p *pair) {
	defer p.close()
	pump(p.client, p.server, func(b []byte) bool {
		if bytes.Contains(bytes.ToLower(b), []byte("subscribe\r\n")) {
			p.subscribed.Store(true)
		}
		return true
	})
}

func (l *link) answers(p *pair) {
	defer p.close()
	pump(p.server, p.client, func(b []byte) bool {
		time.Sleep(time.Duration(l.delay.Load()))
		if l.replies.Load() {
			p.holed.Store(true)
		}
		message := l.messages.Load() && p.subscribed.Load() && bytes.Contains(b, []byte("\r\nmessage\r\n"))
		return !message && !p.holed.Load()
	})
}

// pump copies until an end is closed, without what keep refuses.
func pump(from, to net.Conn, keep func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && keep(buf[:n]) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
