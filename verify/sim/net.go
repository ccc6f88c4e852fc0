package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A network is all links between the clients and the servers of a world. Nothing on a link blocks the one that writes. One mutex guards all
// of it, as a world has one processor.
type network struct {
	mu    sync.Mutex
	seed  uint64
	far   time.Duration
	links map[*link]bool
	made  uint64
	tally *tally
}

// A way is what the links from one process to one server have in common, and what is wrong with them.
type way struct {
	net    *network
	number uint64
	server *server
	away   gate
	gone   bool          // the process is dead
	loses  uint64        // one reply of so many is lost, and its link with it; 0 for none
	tears  uint64        // one packet of so many, in either direction, arrives in part, and its link ends there; 0 for none
	late   time.Duration // by how much replies are late at most
	silent bool          // messages are lost
	mute   int           // so many faults keep dials from getting an answer
}

// A gate holds up what passes it while it is shut. Several faults may have shut it.
type gate struct {
	shut int
	held []*flow
}

// A link is one connection.
type link struct {
	way            *way
	number         uint64
	up, down       flow
	client, server *end
	dead           bool // it carries nothing any more, and neither end is told
	deaf           bool // it carries no replies any more
	greeted        bool
	address        string // of the server
}

// A flow is one direction of a link.
type flow struct {
	link  *link
	up    bool
	queue []packet
	last  time.Time // when the last packet that was queued is due
	timer *time.Timer
	set   bool // the timer is set, or a gate holds the flow
}

// A packet is what one write wrote; nil for the end of the link.
type packet struct {
	data []byte
	due  time.Time
}

// An end is one end of a link, a net.Conn.
type end struct {
	link    *link
	client  bool
	in      []byte
	eof     bool
	closed  bool
	readBy  time.Time
	arrived chan struct{}
	alarm   *time.Timer
}

// dial makes a link, and returns both ends.
func (w *way) dial() (client, server net.Conn) {
	n := w.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	l := &link{way: w, number: n.made, address: w.server.address()}
	l.up, l.down = flow{link: l, up: true}, flow{link: l}
	l.client = &end{link: l, client: true, arrived: make(chan struct{}, 1)}
	l.server = &end{link: l, arrived: make(chan struct{}, 1)}
	n.links[l] = true
	return l.client, l.server
}

// hash decides by the seed, the process, the time and what is said, and not by which link says it, or by what came before.
func (w *way) hash(what uint64, data []byte) uint64 {
	var head [32]byte
	for i, n := range []uint64{w.net.seed, w.number, what, uint64(time.Now().UnixNano())} {
		binary.LittleEndian.PutUint64(head[8*i:], n)
	}
	h := fnv.New64a()
	_, _ = h.Write(head[:])
	_, _ = h.Write(data)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// takes is how long a packet takes: the distance, and 50 to 350 us.
func (f *flow) takes(data []byte) time.Duration {
	w, what := f.link.way, uint64(1)
	if f.up {
		what = 2
	}
	d := w.net.far + time.Duration(50_000+w.hash(what, data)%300_000)
	if !f.up && w.late > 0 {
		d += time.Duration(w.hash(3, data) % uint64(w.late))
	}
	return d
}

// send queues a packet. With the network's mu held.
func (f *flow) send(data []byte) {
	due := time.Now().Add(f.takes(data))
	if !due.After(f.last) {
		due = f.last.Add(1)
	}
	f.last = due
	f.queue = append(f.queue, packet{data, due})
	f.setTimer(due)
}

func (f *flow) setTimer(due time.Time) {
	if f.set {
		return
	}
	f.set = true
	d := max(time.Until(due), 1)
	if f.timer == nil {
		f.timer = time.AfterFunc(d, f.deliver)
	} else {
		f.timer.Reset(d)
	}
}

// deliver hands over what is due, unless a gate is shut.
func (f *flow) deliver() {
	n := f.link.way.net
	n.mu.Lock()
	defer n.mu.Unlock()
	f.set = false
	for len(f.queue) > 0 {
		p := f.queue[0]
		if time.Now().Before(p.due) {
			f.setTimer(p.due)
			return
		}
		if g := f.heldBy(); g != nil {
			f.set = true
			g.held = append(g.held, f)
			return
		}
		f.queue = f.queue[1:]
		f.arrive(p.data)
	}
}

// heldBy is the shut gate that the flow has to pass; nil where all are open.
func (f *flow) heldBy() *gate {
	w := f.link.way
	switch {
	case w.gone:
	case w.away.shut > 0:
		return &w.away
	case f.up && w.server.frozen.shut > 0:
		return &w.server.frozen
	}
	return nil
}

var message = []byte("*3\r\n$7\r\nmessage")

// arrive hands a packet over, or loses it.
func (f *flow) arrive(data []byte) {
	l := f.link
	w := l.way
	if l.dead {
		return
	}
	if data == nil {
		l.endOf(f).end()
		return
	}
	if w.tears > 0 && len(data) > 1 && w.hash(6, data)%w.tears == 0 {
		l.tear(f, data)
		return
	}
	if !f.up {
		isMessage := bytes.HasPrefix(data, message)
		if w.gone || l.deaf || isMessage && w.silent {
			return
		}
		if isMessage {
			w.net.tally.message(data)
		}
		if w.loses > 0 && !isMessage && w.hash(4, data)%w.loses == 0 {
			if w.hash(5, data)%2 == 0 {
				l.deaf = true
				return
			}
			l.cut()
			return
		}
	}
	l.endOf(f).push(data)
}

func (l *link) endOf(f *flow) *end {
	if f.up {
		return l.server
	}
	return l.client
}

// cut ends the link: the client sees the end at once, the server after what was sent before.
func (l *link) cut() {
	l.client.end()
	l.up.send(nil)
}

// drop ends the link for both, and what is on the way with it.
func (l *link) drop() {
	l.up.queue, l.down.queue = nil, nil
	l.client.end()
	l.server.end()
}

// tear hands over a part of the packet, and ends the link for both.
func (l *link) tear(f *flow, data []byte) {
	if !l.way.gone || f.up {
		l.endOf(f).push(data[:1+l.way.hash(7, data)%uint64(len(data)-1)])
	}
	l.drop()
	l.dead = true // nothing follows
}

// open opens the gate for one fault. Where no other has shut it, what it held goes on, link by link.
func (n *network) open(g *gate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g.shut--; g.shut > 0 {
		return
	}
	held := g.held
	g.held = nil
	for _, f := range held {
		f.set = false
		if len(f.queue) > 0 {
			f.setTimer(time.Now().Add(f.takes(f.queue[0].data)))
		}
	}
}

func (n *network) close(g *gate) {
	n.mu.Lock()
	g.shut++
	n.mu.Unlock()
}

// each calls do for the links that match, in the order in which they were made, with the network's mu held.
func (n *network) each(match func(*link) bool, do func(*link)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*link
	for l := range n.links {
		if match(l) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *link) int { return cmp.Compare(a.number, b.number) })
	for _, l := range all {
		do(l)
	}
}

// push hands data to who reads this end. With the network's mu held.
func (e *end) push(data []byte) {
	e.in = append(e.in, data...)
	e.notify()
}

func (e *end) end() {
	e.eof = true
	e.notify()
}

func (e *end) notify() {
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

// Read implements net.Conn.
func (e *end) Read(b []byte) (int, error) {
	n := e.link.way.net
	for {
		n.mu.Lock()
		readBy := e.readBy
		switch {
		case e.closed:
			n.mu.Unlock()
			return 0, net.ErrClosed
		case len(e.in) > 0:
			got := copy(b, e.in)
			if e.in = e.in[got:]; len(e.in) == 0 {
				e.in = nil
			}
			n.mu.Unlock()
			return got, nil
		case e.eof:
			n.mu.Unlock()
			return 0, io.EOF
		case !readBy.IsZero() && !time.Now().Before(readBy):
			n.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		n.mu.Unlock()
		if readBy.IsZero() {
			<-e.arrived
			continue
		}
		if e.alarm == nil {
			e.alarm = time.NewTimer(time.Until(readBy))
		} else {
			e.alarm.Reset(time.Until(readBy))
		}
		select {
		case <-e.arrived:
		case <-e.alarm.C:
		}
	}
}

// Write implements net.Conn. HELLO is answered at once: go-redis waits for that answer with a subscription's mutex held, others wait for the
// mutex, and a goroutine that waits for a mutex keeps virtual time from going on.
func (e *end) Write(b []byte) (int, error) {
	l := e.link
	n := l.way.net
	n.mu.Lock()
	defer n.mu.Unlock()
	other := l.client
	if e.client {
		other = l.server
	}
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.eof && other.closed || e.client && e.eof:
		return 0, &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
	case e.client && !l.greeted && bytes.Contains(b, []byte("\r\nhello\r\n")):
		l.greeted = true
		e.push([]byte("*0\r\n"))
		return len(b), nil
	case e.client && l.way.gone:
		return len(b), nil
	}
	e.out().send(bytes.Clone(b))
	return len(b), nil
}

func (e *end) out() *flow {
	if e.client {
		return &e.link.up
	}
	return &e.link.down
}

// Close implements net.Conn.
func (e *end) Close() error {
	l := e.link
	n := l.way.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.notify()
	e.out().send(nil)
	if l.client.closed && l.server.closed {
		delete(n.links, l)
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	n := e.link.way.net
	n.mu.Lock()
	defer n.mu.Unlock()
	e.readBy = t
	e.notify()
	return nil
}

// SetDeadline implements net.Conn.
func (e *end) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn. No write takes time.
func (e *end) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (e *end) LocalAddr() net.Addr { return address("pipe") }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return address(e.link.address) }

type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }
