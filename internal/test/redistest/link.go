package redistest

import (
	"bufio"
	"net"
	"strings"
	"sync"

	"github.com/fencelock/fencelock/internal/test/fifo"
)

// link is one client connection of a proxy and the server connection behind it.
//
// Each command has a place in the order of the answers to the client. Most
// places are filled by the replies of the server connection, which come in the
// order of the commands written to it; those of faults are filled otherwise.
type link struct {
	p              *Proxy
	client, server net.Conn
	order          *fifo.Queue[chan answer] // the places not yet written to the client
	wire           *fifo.Queue[chan answer] // the places the server is to fill; nil: from here on it pushes
	subscribed     bool                     // the client has sent a command that subscribes
	unanswered     sync.WaitGroup           // commands of faults that are with the server

	once   sync.Once
	closed chan struct{}
}

// answer is what a place in the order is filled with: a reply to write, or the
// end of the connection.
type answer struct {
	frame []byte
	cut   bool
}

func newLink(p *Proxy, client net.Conn) *link {
	return &link{
		p:      p,
		client: client,
		order:  fifo.New[chan answer](),
		wire:   fifo.New[chan answer](),
		closed: make(chan struct{}),
	}
}

// serve runs the link over the given server connection until it is closed.
func (l *link) serve(server net.Conn) {
	l.server = server
	l.p.running.Go(func() {
		<-l.closed
		_ = server.Close()
	})
	l.p.running.Go(l.answers)
	l.p.running.Go(l.replies)
	l.requests()
}

// close ends the link at once.
func (l *link) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.client.Close()
		l.order.Close()
		l.wire.Close()
		l.p.remove(l)
	})
}

// requests takes the commands of the client. When the client goes, the replies
// that faults wait for are still taken from the server.
func (l *link) requests() {
	defer l.close()
	r := bufio.NewReader(l.client)
	for {
		frame, args, err := ReadCommand(r)
		if err != nil {
			break
		}
		l.request(frame, args)
	}
	l.unanswered.Wait()
}

// request treats one command.
func (l *link) request(frame []byte, args []string) {
	l.p.gate.RLock()
	defer l.p.gate.RUnlock()
	subscribes := l.subscribed || strings.HasSuffix(strings.ToUpper(args[0]), "SUBSCRIBE")
	if f := l.p.take(args, subscribes); f != nil {
		f.do.run(l, f, frame)
		return
	}
	if !subscribes {
		l.order.Push(l.forward(frame))
		return
	}
	if !l.subscribed {
		l.subscribed = true
		l.wire.Push(nil)
	}
	l.write(frame)
}

// reserve makes the next place in the order, to be filled once.
func (l *link) reserve() chan answer {
	place := make(chan answer, 1)
	l.order.Push(place)
	return place
}

// forward sends a command to the server and returns the place that its reply
// will fill.
func (l *link) forward(frame []byte) chan answer {
	place := make(chan answer, 1)
	l.wire.Push(place)
	l.write(frame)
	return place
}

// write sends bytes to the server.
func (l *link) write(frame []byte) {
	if _, err := l.server.Write(frame); err != nil {
		l.close()
	}
}

// await sends the command of a fault to the server and calls then, in a
// goroutine of its own, with the server's reply. If no reply comes, it ends the
// connection of the client by way of out.
func (l *link) await(frame []byte, out chan<- answer, then func(a answer, out chan<- answer)) {
	l.unanswered.Add(1)
	reply := l.forward(frame)
	l.p.running.Go(func() {
		a := answer{cut: true}
		select {
		case a = <-reply:
		case <-l.closed:
			select { // the reply may have come with the end
			case a = <-reply:
			default:
			}
		}
		l.unanswered.Done()
		if a.cut {
			out <- a
			return
		}
		then(a, out)
	})
}

// replies takes the replies of the server. At their end the client still gets
// those that have come, and then the end of its connection.
func (l *link) replies() {
	r := bufio.NewReader(l.server)
	pushes := false
	for {
		frame, err := ReadFrame(r)
		if err != nil {
			break
		}
		place, expected := l.wire.Head()
		switch {
		case pushes || expected && place == nil:
			pushes = true
			l.reserve() <- answer{frame: frame}
		case expected && frame[0] != '>':
			l.wire.Pop()
			place <- answer{frame: frame}
		default:
			l.reserve() <- answer{frame: frame}
		}
	}
	l.wire.Close()
	for {
		place, more := l.wire.Pop()
		if !more {
			break
		}
		if place != nil {
			place <- answer{cut: true}
		}
	}
	l.reserve() <- answer{cut: true}
}

// answers writes the answers to the client, in their order.
func (l *link) answers() {
	for {
		place, ok := l.order.Pop()
		if !ok {
			return
		}
		var a answer
		select {
		case a = <-place:
		case <-l.closed:
			return
		}
		if !l.answer(a) {
			return
		}
	}
}

// answer gives one answer to the client and reports whether more can follow.
func (l *link) answer(a answer) bool {
	l.p.gate.RLock()
	defer l.p.gate.RUnlock()
	if a.cut {
		l.close()
		return false
	}
	_, err := l.client.Write(a.frame)
	return err == nil // on an error requests sees the end too, and closes
}
