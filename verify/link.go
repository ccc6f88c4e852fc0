package main

import (
	"bytes"
	"net"
	"regexp"
	"strconv"
	"strings"
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

	// called, if it is there, is asked before a message that calls the client in a line: false loses it.
	called atomic.Pointer[func() bool]
	client atomic.Pointer[string] // whose channel in a line was subscribed to here

	mu    sync.Mutex
	pairs map[*pair]struct{}
}

// A pair is a connection of the worker and the one to the server behind it.
type pair struct {
	client, server net.Conn
	subscribed     atomic.Bool
	part           []byte      // of a frame, while it is subscribed
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
	pump(p.client, p.server, func(b []byte) []byte {
		if bytes.Contains(bytes.ToLower(b), []byte("subscribe\r\n")) {
			p.subscribed.Store(true)
			if own := lineChannel.FindSubmatch(b); own != nil {
				client := string(own[1])
				l.client.Store(&client)
			}
		}
		return b
	})
}

func (l *link) answers(p *pair) {
	defer p.close()
	pump(p.server, p.client, func(b []byte) []byte {
		time.Sleep(time.Duration(l.delay.Load()))
		if l.replies.Load() {
			p.holed.Store(true)
		}
		if p.holed.Load() {
			return nil
		}
		if p.subscribed.Load() {
			return p.frames(b, l.keeps)
		}
		return b
	})
}

// lineChannel is the channel of a client in a line, of a semaphore too: see docs/line.md.
var lineChannel = regexp.MustCompile(`\r\nfencelock_line(?:_of)?:[^\r]*:([^\r:]+)\r\n`)

// keeps tells whether a frame gets to the worker.
func (l *link) keeps(frame []byte) bool {
	if !bytes.Contains(frame, []byte("\r\nmessage\r\n")) {
		return true
	}
	ask := l.called.Load()
	if ask != nil && lineChannel.Match(frame) && bytes.Contains(frame, []byte("\r\nc ")) && !(*ask)() {
		return false
	}
	return !l.messages.Load()
}

// frames returns those of the whole frames so far that keep keeps: the network loses no half of one.
func (p *pair) frames(b []byte, keep func(frame []byte) bool) (kept []byte) {
	p.part = append(p.part, b...)
	for n := frameLen(p.part); n > 0; n = frameLen(p.part) {
		if keep(p.part[:n]) {
			kept = append(kept, p.part[:n]...)
		}
		p.part = p.part[n:]
	}
	return kept
}

// frameLen is how long the first frame of the Redis protocol is; 0: it is not whole.
func frameLen(b []byte) int {
	line, _, whole := bytes.Cut(b, []byte("\r\n"))
	if !whole || len(line) == 0 {
		return 0
	}
	length, size := len(line)+2, 0
	if strings.IndexByte("$=!*>~%", line[0]) >= 0 {
		size, _ = strconv.Atoi(string(line[1:]))
	}
	switch line[0] {
	case '$', '=', '!':
		if size >= 0 {
			length += size + 2
		}
		if length > len(b) {
			return 0
		}
		return length
	case '%':
		size *= 2
	}
	for range max(size, 0) {
		n := frameLen(b[length:])
		if n == 0 {
			return 0
		}
		length += n
	}
	return length
}

// pump copies what pass lets through, until an end is closed.
func pump(from, to net.Conn, pass func([]byte) []byte) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if b := pass(buf[:n]); len(b) > 0 {
				if _, err := to.Write(b); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}
