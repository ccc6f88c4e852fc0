package redistest

import (
	"bufio"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy on loopback between clients and one server. It knows
// where commands and replies begin and end, so that single ones can be treated:
// see [Proxy.On] and [Action].
//
// What is sent over a server connection of its own (see the actions) does not
// carry the state of the client's connection: AUTH, SELECT, MULTI.
type Proxy struct {
	t        testing.TB
	target   string
	listener net.Listener
	ctx      context.Context // ends with the proxy
	end      context.CancelFunc
	running  sync.WaitGroup

	gate   sync.RWMutex // read-locked to forward, locked while frozen
	ice    sync.Mutex   // guards frozen; never taken under gate
	frozen bool

	mu     sync.Mutex // guards the rest; may be taken under gate
	links  map[*link]struct{}
	faults []*Fault
	refuse bool
}

// NewProxy starts a proxy to the server at the address target. It is closed
// when the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: listen: %v", err)
	}
	p := &Proxy{t: t, target: target, listener: listener, links: map[*link]struct{}{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	t.Cleanup(func() {
		p.check()
		p.close()
	})
	return p
}

// Addr returns the address that clients connect to, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// On arranges that the first command from now on, on whichever connection, for
// which match reports true gets the action, once. If the fault did not fire by
// the end of the test, the test fails and names it.
//
// A match function is called with the name of the command and its arguments, on
// every command until its fault has one, and by one goroutine at a time. If
// several faults match a command, the first of them takes it.
//
// Once a connection has subscribed to anything, only [Refuse] applies to it,
// beginning with the command that subscribes.
func (p *Proxy) On(name string, match func(args []string) bool, do Action) *Fault {
	f := &Fault{
		p: p, name: name, match: match, do: do,
		fired: make(chan struct{}), done: make(chan struct{}), released: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// Cut closes all current connections of clients, and those to the server
// behind them.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Refuse says whether new connections are closed at once from now on.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Freeze stops forwarding, in both directions and for released commands too,
// and leaves connections open. Nothing is forwarded after it has returned.
func (p *Proxy) Freeze() {
	p.ice.Lock()
	defer p.ice.Unlock()
	if !p.frozen {
		p.frozen = true
		p.gate.Lock()
	}
}

// Thaw resumes forwarding after [Proxy.Freeze]; nothing is lost in between.
func (p *Proxy) Thaw() {
	p.ice.Lock()
	defer p.ice.Unlock()
	if p.frozen {
		p.frozen = false
		p.gate.Unlock()
	}
}

// accept takes connections until the proxy ends.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(client) })
	}
}

// connect serves one client connection.
func (p *Proxy) connect(client net.Conn) {
	l := newLink(p, client)
	defer l.close()
	p.mu.Lock()
	refused := p.refuse || p.ctx.Err() != nil
	if !refused {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if refused {
		return
	}
	if server, err := p.dial(); err == nil {
		l.serve(server)
	}
}

// remove forgets a link that was closed.
func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// dial opens a connection to the server.
func (p *Proxy) dial() (net.Conn, error) {
	d := net.Dialer{Timeout: time.Minute}
	return d.DialContext(p.ctx, "tcp", p.target)
}

// send sends one command over a connection of its own and returns the reply.
func (p *Proxy) send(frame []byte) ([]byte, error) {
	server, err := p.dial()
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(p.ctx, func() { _ = server.Close() })()
	p.gate.RLock()
	_, err = server.Write(frame)
	p.gate.RUnlock()
	if err != nil {
		return nil, err
	}
	return ReadFrame(bufio.NewReader(server))
}

// take returns the fault that gets the command, or nil.
func (p *Proxy) take(args []string, subscribes bool) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *Fault
	for _, f := range p.faults {
		if f.taken || subscribes && !f.do.everywhere {
			continue
		}
		if f.match(args) && first == nil {
			first = f
		}
	}
	if first != nil {
		first.taken = true
	}
	return first
}

// check fails the test for each fault that did not fire. A fault that has its
// command is given ten seconds more for the server's answer.
func (p *Proxy) check() {
	p.mu.Lock()
	faults := p.faults
	p.mu.Unlock()
	for i, f := range faults {
		p.mu.Lock()
		taken := f.taken
		p.mu.Unlock()
		if !taken {
			p.t.Errorf("redistest: fault %d, %q, did not fire: no command matched", i+1, f.name)
			continue
		}
		select {
		case <-f.fired:
		case <-time.After(10 * time.Second):
			p.t.Errorf("redistest: fault %d, %q, did not fire: the server has not answered its command", i+1, f.name)
		}
	}
}

// close ends the proxy and waits for its goroutines.
func (p *Proxy) close() {
	p.end()
	_ = p.listener.Close()
	p.Cut()
	p.Thaw()
	p.running.Wait()
}
