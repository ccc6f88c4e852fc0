// Package memredis is a Redis in the memory of a test: a miniredis that clients reach over in-memory pipes. It opens no port.
// In a testing/synctest bubble its keys expire by the clock of the bubble, and nothing in it keeps that clock from going on. Links
// can be held up, and cut.
package memredis

import (
	"context"
	"net"
	"reflect"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/fencelock/fencelock/internal/test/fifo"
)

// A Server is one Redis. New makes one.
type Server struct {
	*miniredis.Miniredis

	// go-redis dials in goroutines that closing a client does not wait for. miniredis allows no Dial beside its Close, and starts
	// anew with one after its Close.
	mu    sync.Mutex // held while dialing
	over  bool
	links []net.Conn // their server's ends
}

// New returns a server. In a bubble call it there, and close it there.
func New() *Server {
	s := &Server{Miniredis: miniredis.NewMiniRedis()}
	s.ClockTTL(true)
	return s
}

// Close waits until nobody is dialing, and ends the server and all links: go-redis, in older versions, forgets a connection on which the server
// has not answered in time. Who dials later gets net.ErrClosed.
func (s *Server) Close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.Miniredis.Close()
	for _, inner := range s.links {
		_ = inner.Close()
	}
}

// Options returns the options of a go-redis client whose links pass these gates. Open the gates before the server is closed.
func (s *Server) Options(gates ...*Gate) *redis.Options {
	o := &redis.Options{
		Addr:   "pipe",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return s.dial(gates) },
		// Nothing on a connection but the commands of the test.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled, EndpointType: maintnotifications.EndpointTypeNone}, // nor a look for the address
		// go-redis shares the timers of callers that wait for a connection between all pools of the process, and a timer from
		// outside a bubble must not be used in it. In a pool this large nobody waits.
		PoolSize:        4096,
		ConnMaxIdleTime: -1,
	}
	SetPipelinePool(o, -1)
	return o
}

// SetPipelinePool gives the client a pool of this size for pipelines, -1 for none; false where go-redis, in an older version, has no such pool.
func SetPipelinePool(o *redis.Options, size int) bool {
	field := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize")
	if field.IsValid() {
		field.SetInt(int64(size))
	}
	return field.IsValid()
}

func (s *Server) dial(gates []*Gate) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	}
	server, err := s.Dial()
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	s.links = append(s.links, inner)
	link(inner, server, gates)
	return client, nil
}

// link links the server's end of a client's connection to a connection of the server. A net.Pipe holds no data, so that the server would stand still (inside its
// lock) whenever a client does not read. Like the sockets of a connection, the link therefore keeps what either end has written until the
// other one takes that: also what a client has written that has closed its end since.
func link(inner, server net.Conn, gates []*Gate) {
	requests, replies := fifo.New[[]byte](), fifo.New[[]byte]()
	go keep(inner, requests)
	go keep(server, replies)
	go carry(requests, server, gates)
	go carry(replies, inner, gates)
}

// keep reads from the connection into the queue, until the connection ends.
func keep(from net.Conn, queue *fifo.Queue[[]byte]) {
	defer queue.Close()
	for {
		buf := make([]byte, 4096)
		n, err := from.Read(buf)
		if n > 0 {
			queue.Push(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// carry writes what is in the queue to the connection, and ends the connection after the last of it.
func carry(queue *fifo.Queue[[]byte], to net.Conn, gates []*Gate) {
	defer to.Close()
	for {
		b, ok := queue.Pop()
		if !ok {
			return
		}
		if !pass(gates) {
			// The client gets no end of the link either: a subscription of go-redis would connect anew, under a mutex that
			// others wait for, and that wait keeps the time of a bubble from going on.
			continue
		}
		if _, err := to.Write(b); err != nil {
			return
		}
	}
}

// pass waits until all gates are open; false where one was cut.
func pass(gates []*Gate) bool {
	for _, g := range gates {
		if !g.wait() {
			return false
		}
	}
	return true
}

// A Gate holds up, or cuts, the links that pass it. The zero Gate is open.
type Gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate is opened or cut; nil while it is open
	cut  bool
}

// Shut holds up what the links carry in both directions from now on.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil && !g.cut {
		g.shut = make(chan struct{})
	}
}

// Open lets pass what was held up.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// Cut drops what the links carry, for ever. The links stay, and are silent.
func (g *Gate) Cut() {
	g.mu.Lock()
	g.cut = true
	g.mu.Unlock()
	g.Open()
}

// wait returns when the gate is open; false where it was cut.
func (g *Gate) wait() bool {
	for {
		g.mu.Lock()
		shut, cut := g.shut, g.cut
		g.mu.Unlock()
		if shut == nil {
			return !cut
		}
		<-shut
	}
}
