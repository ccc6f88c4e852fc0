package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/pubsub"
)

// bus is the subscriptions to all nodes. What they wake for is said once, a random short time later: a release comes as a
// message from each node, one after the other, and as many waiters as hear the first would each take a part of the nodes.
type bus struct {
	buses []*pubsub.Bus
	least int           // so many of the nodes meet every majority
	coil  time.Duration // the longest such time
}

// Subscribe implements seam.Bus.
func (b *bus) Subscribe(channel string, wake func(message bool)) seam.Subscription {
	s := &subscription{bus: b, wake: wake}
	for _, one := range b.buses {
		sub := one.Subscribe(channel, s.heard)
		s.mu.Lock()
		s.subs = append(s.subs, sub)
		s.mu.Unlock()
	}
	return s
}

// Sharded implements seam.Bus: a node is no cluster.
func (b *bus) Sharded(context.Context) bool { return false }

// Known implements seam.Bus.
func (b *bus) Known() (sharded, known bool) { return false, true }

// Close implements seam.Bus.
func (b *bus) Close() {
	for _, one := range b.buses {
		one.Close()
	}
}

type subscription struct {
	bus  *bus
	wake func(message bool)

	mu      sync.Mutex
	subs    []*pubsub.Subscription
	timer   *time.Timer // until what was heard is said
	message bool        // one was heard
	closed  bool
}

// heard is called by the nodes' buses.
func (s *subscription) heard(message bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.message = s.message || message
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(between(0, s.bus.coil), s.say)
	}
}

func (s *subscription) say() {
	s.mu.Lock()
	message, closed := s.message, s.closed
	s.message, s.timer = false, nil
	s.mu.Unlock()
	if !closed {
		s.wake(message)
	}
}

// Live implements seam.Subscription: a release by a majority would be heard.
func (s *subscription) Live() bool {
	s.mu.Lock()
	subs := s.subs
	s.mu.Unlock()
	live := 0
	for _, sub := range subs {
		if sub.Live() {
			live++
		}
	}
	return live >= s.bus.least
}

// Close implements seam.Subscription.
func (s *subscription) Close() {
	s.mu.Lock()
	s.closed = true
	subs := s.subs
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	for _, sub := range subs {
		sub.Close()
	}
}
