package limits

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/proto"

	"github.com/fencelock/fencelock/internal/test/fifo"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A Server is a Redis with limits.
type Server struct {
	profile Profile
	dial    Dialer

	mu    sync.Mutex
	known map[string]string // the digest of what is sent in place of a script, by that of the script
}

// A Dialer is one of go-redis.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// New puts the limits in front of the server to which dial connects. A WAIT that they allow is answered as by a server with one replica.
func New(p Profile, dial Dialer) *Server {
	return &Server{profile: p, dial: dial, known: map[string]string{}}
}

// Dial is a [Dialer] of connections with the limits.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	server, err := s.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	l := &link{Server: s, client: inner, server: server, replies: fifo.New[string](), order: fifo.New[string]()}
	go l.requests()
	go l.answers()
	go l.write()
	return socket{client}, nil
}

// A socket is an end of a net.Pipe that says what a socket does, where the other end is closed: that is seen by reads and writes alone.
type socket struct{ net.Conn }

// Write implements net.Conn.
func (s socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err == io.ErrClosedPipe {
		err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.EPIPE}
	}
	return n, err
}

func (s socket) later(err error) error {
	if err == io.ErrClosedPipe {
		return nil
	}
	return err
}

// SetDeadline implements net.Conn.
func (s socket) SetDeadline(t time.Time) error { return s.later(s.Conn.SetDeadline(t)) }

// SetReadDeadline implements net.Conn.
func (s socket) SetReadDeadline(t time.Time) error { return s.later(s.Conn.SetReadDeadline(t)) }

// SetWriteDeadline implements net.Conn.
func (s socket) SetWriteDeadline(t time.Time) error { return s.later(s.Conn.SetWriteDeadline(t)) }

// A link is one connection. Its queues hold what a net.Pipe does not.
type link struct {
	*Server
	client, server net.Conn
	order          *fifo.Queue[string] // of the answers: what the limits say, or one of these
	replies        *fifo.Queue[string] // to the client
	subscribed     bool
}

const (
	ofServer = ""     // the server's next reply
	pushes   = "push" // all that the server says from here on
)

// requests reads what the client asks for.
func (l *link) requests() {
	defer l.server.Close()
	defer l.order.Close()
	for r := bufio.NewReader(l.client); ; {
		_, args, err := redistest.ReadCommand(r)
		if err != nil {
			return
		}
		said := l.limit(args)
		switch {
		case said == hangUp:
			return
		case said != "" && l.subscribed:
			l.replies.Push(said)
			continue
		case said != "":
			l.order.Push(said)
			continue
		case l.subscribed:
		case strings.HasSuffix(strings.ToUpper(args[0]), "SUBSCRIBE"):
			l.subscribed = true
			l.order.Push(pushes)
		default:
			l.order.Push(ofServer)
		}
		if proto.Write(l.server, args) != nil {
			return
		}
	}
}

// answers brings the server's replies, and what the limits say, in order.
func (l *link) answers() {
	defer l.replies.Close()
	r := bufio.NewReader(l.server)
	for {
		said, ok := l.order.Pop()
		if !ok {
			return
		}
		for more := true; more; more = said == pushes {
			if said != ofServer && said != pushes {
				l.replies.Push(said)
				break
			}
			reply, err := redistest.ReadFrame(r)
			if err != nil {
				return
			}
			l.replies.Push(string(reply))
		}
	}
}

func (l *link) write() {
	defer l.client.Close()
	defer l.server.Close()
	for {
		reply, ok := l.replies.Pop()
		if !ok {
			return
		}
		if _, err := l.client.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// hangUp is what limit returns where the connection is to end.
const hangUp = "hang up"

// limit returns what is said in place of the server, "" for nothing. It changes the arguments to those that the server gets.
func (s *Server) limit(args []string) string {
	p, name, word := s.profile, strings.ToUpper(args[0]), ""
	if len(args) > 1 {
		word = strings.ToUpper(args[1])
	}
	if l := p.limit(Outside, name, word); l != nil {
		words := p.words(l, name)
		switch {
		case words == "":
			return fmt.Sprintf("$%d\r\n%s\r\n", len(l.Says), l.Says)
		case p.does(HangsUp):
			return hangUp
		}
		return "-" + words + "\r\n"
	}
	switch {
	case name == "WAIT":
		return ":1\r\n"
	case name == "CLUSTER" && word == "SLOTS" && p.does(OneNode):
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$4\r\nnode\r\n:6379\r\n"
	case p.does(MixedChannels) && mixed[name] != "":
		args[0] = mixed[name]
	case p.does(MixedChannels) && name == "PUBSUB":
		args[1] = strings.TrimPrefix(word, "SHARD")
	case name == "EVAL" || name == "EVALSHA":
		if p.does(OneSlot) && slots(args) > 1 {
			return "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
		}
		return s.script(name, args)
	}
	return ""
}

// mixed are the commands of channels that are not sharded, by those of the sharded ones.
var mixed = map[string]string{"SPUBLISH": "PUBLISH", "SSUBSCRIBE": "SUBSCRIBE", "SUNSUBSCRIBE": "UNSUBSCRIBE"}

// script puts the limits into the script.
func (s *Server) script(name string, args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "EVAL" {
		text := s.profile.limited(args[1])
		s.known[digest(args[1])] = digest(text)
		args[1] = text
		return ""
	}
	sent, is := s.known[args[1]]
	if !is {
		return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	}
	args[1] = sent
	return ""
}

// slots is how many hash slots the keys of a script have, by what is hashed of them.
func slots(args []string) int {
	n, err := strconv.Atoi(args[2])
	if err != nil || n > len(args)-3 {
		return 0
	}
	seen := map[string]bool{}
	for _, key := range args[3 : 3+n] {
		if _, rest, is := strings.Cut(key, "{"); is {
			if tag, _, is := strings.Cut(rest, "}"); is && tag != "" {
				key = tag
			}
		}
		seen[key] = true
	}
	return len(seen)
}
