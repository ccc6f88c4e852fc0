package redisserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// FreePort returns a port on loopback that is free now, and so is the port [BusOffset] above it. The system gives neither to
// outgoing connections: those take ports all the time. Other programs that use this package do not get it either before a server
// listens on it: this one keeps the UDP port of the same number, until it has taken maxTaken others.
func FreePort() (int, error) {
	taken.Lock()
	defer taken.Unlock()
	var err error
	for range 100 {
		port := 10000 + rand.IntN(BusOffset) // with its bus below 30000: systems begin at 32768 or above
		var mark net.PacketConn
		if mark, err = take(port); err != nil {
			continue
		}
		if taken.marks = append(taken.marks, mark); len(taken.marks) > maxTaken {
			_ = taken.marks[0].Close()
			taken.marks = taken.marks[1:]
		}
		return port, nil
	}
	return 0, err
}

// BusOffset is how far above its port a node of a cluster has its second one, for the other nodes, unless it is told another
// (which Redis 7 can be).
const BusOffset = 10000

// take returns the mark of a port that is free, and its bus too.
func take(port int) (net.PacketConn, error) {
	mark, err := net.ListenPacket("udp", loopback(port))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(vacant(port), vacant(port+BusOffset)); err != nil {
		_ = mark.Close()
		return nil, err
	}
	return mark, nil
}

// vacant returns an error if the port is in use.
func vacant(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

// loopback is the address of a port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// maxTaken is far more than there are servers that have a port and do not listen yet, or are between two starts, and no burden on
// the files of a process.
const maxTaken = 300

var taken struct {
	sync.Mutex
	marks []net.PacketConn
}
