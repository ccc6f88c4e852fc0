package pubsub_test

import (
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// bound is how long these tests wait for what must happen and has no bound of its own.
const bound = 20 * time.Second

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 6)) }

// newBus is a bus that is closed with the test.
func newBus(t *testing.T, rdb redis.UniversalClient, sharding pubsub.Sharding) (*pubsub.Bus, *locktest.Log) {
	t.Helper()
	log := new(locktest.Log)
	b := pubsub.New(rdb, sharding, log.Logger())
	t.Cleanup(b.Close)
	return b, log
}

// listener counts the wake-ups of a subscription.
type listener struct {
	*pubsub.Subscription
	woken atomic.Int64
}

func listen(b *pubsub.Bus, channel string) *listener {
	l := &listener{}
	l.Subscription = b.Subscribe(channel, func(bool, string) { l.woken.Add(1) })
	return l
}

// eventually requires that the subscription becomes live.
func (l *listener) eventually(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, bound, l.Live, "the subscription is live")
}

// hears requires that a message wakes the listener.
func (l *listener) hears(t *testing.T, publish func() error) {
	t.Helper()
	before := l.woken.Load()
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, bound, func() bool { return l.woken.Load() > before }, "the message wakes")
}

// network is the connections between a client and a miniredis in a synctest bubble, with what may happen to them.
type network struct {
	server *miniredis.Miniredis
	rdb    *redis.Client

	mu    sync.Mutex
	dials int
	down  bool
	conns map[*wire]struct{}
}

// newNetwork is a server, and a client whose connections the test can break.
func newNetwork(t *testing.T) *network {
	m, _ := redistest.Pipe(t)
	n := &network{server: m, conns: map[*wire]struct{}{}}
	n.rdb = redistest.PipeClient(t, m, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.dials++
			if n.down {
				return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.ErrClosed}
			}
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			w := &wire{Conn: c, n: n, muted: make(chan struct{})}
			n.conns[w] = struct{}{}
			return w, nil
		}
	})
	return n
}

// wire is one connection.
type wire struct {
	net.Conn
	n     *network
	once  sync.Once
	muted chan struct{} // closed when nothing comes any more
}

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		select {
		case <-w.muted:
			if err == nil {
				continue // it came, and nobody hears it
			}
		default:
		}
		return n, err
	}
}

func (w *wire) Close() error {
	w.n.mu.Lock()
	delete(w.n.conns, w)
	w.n.mu.Unlock()
	return w.Conn.Close()
}

// open is the number of connections.
func (n *network) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

func (n *network) dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// mute lets nothing more through to the client on the present connections, which stay open.
func (n *network) mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.conns {
		w.once.Do(func() { close(w.muted) })
	}
}

// cut closes the present connections; while down no others come about.
func (n *network) cut(down bool) {
	n.mu.Lock()
	n.down = down
	var open []*wire
	for w := range n.conns {
		open = append(open, w)
	}
	n.mu.Unlock()
	for _, w := range open {
		_ = w.Conn.Close()
	}
}

func (n *network) up() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}
