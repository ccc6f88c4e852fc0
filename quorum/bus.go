package quorum

import (
	"context"
	"sync"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// A bus is the subscriptions to the nodes, as an engine.Bus. A client listens to the home of a lock alone: there is the line of those who
// wait, and there a release calls.
type bus struct {
	store *store
	buses []*pubsub.Bus // by the node's index
}

// Subscribe implements engine.Bus.
func (b *bus) Subscribe(keys *scripts.Keys, channel string, wake func(message bool, text string)) engine.Subscription {
	s := &subscription{bus: b, keys: keys, channel: channel, wake: wake, node: b.store.homeOrFirst(keys)}
	s.sub = b.buses[s.node.index].Subscribe(channel, wake)
	return s
}

// Hears implements engine.Bus.
func (b *bus) Hears(keys *scripts.Keys) bool {
	return b.buses[b.store.homeOrFirst(keys).index].Hears(keys.Channel())
}

// Sharded implements engine.Bus: a node is no cluster.
func (b *bus) Sharded(context.Context) bool { return false }

// Known implements engine.Bus: channels are not sharded, and that is known.
func (b *bus) Known() (sharded, known bool) { return false, true }

// Close implements engine.Bus: it closes the connections to all nodes.
func (b *bus) Close() {
	for _, one := range b.buses {
		one.Close()
	}
}

// A subscription is to one channel, on the node that is the home of its lock.
type subscription struct {
	bus     *bus
	keys    *scripts.Keys
	channel string
	wake    func(message bool, text string)

	mu     sync.Mutex
	node   *node // that is listened to
	sub    *pubsub.Subscription
	closed bool
}

// Live implements engine.Subscription. Where the lock has another home by now the subscription moves there, and is not live before that
// node has confirmed it.
func (s *subscription) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if home := s.bus.store.home(s.keys.Channel()); home != nil && home != s.node && !s.closed {
		s.sub.Drop()
		s.node, s.sub = home, s.bus.buses[home.index].Subscribe(s.channel, s.wake)
	}
	return s.sub.Live()
}

// Drop implements engine.Subscription.
func (s *subscription) Drop() { s.end().Drop() }

// Close implements engine.Subscription.
func (s *subscription) Close() { s.end().Close() }

// end notes that the subscription does not move any more.
func (s *subscription) end() *pubsub.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.sub
}
