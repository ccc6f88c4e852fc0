package quorum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/pubsub"
)

// bus is the subscriptions to the nodes. Each node that had a hold tells of its release. A waiter listens to the node that
// is asked first, as the owner has that too nearly always; and to all of them where that node is silent, or the owner was
// seen without it.
type bus struct {
	store *store
	buses []*pubsub.Bus
	least int           // so many of the nodes meet every majority
	group int           // of waiters, that this client is in
	coil  time.Duration // the longest time between messages that are taken for one, where all nodes are listened to
}

const (
	// silentAfter is for how long the first node may not confirm a subscription.
	silentAfter = 100 * time.Millisecond
	// eager is how many waiters try when they hear of a release.
	eager = 4
	// idleAfter is after what time without a further message the others try too: up to twice of it.
	idleAfter = 25 * time.Millisecond
)

// Subscribe implements seam.Bus.
func (b *bus) Subscribe(channel string, wake func(message bool, text string)) seam.Subscription {
	s := &subscription{bus: b, channel: channel, wake: wake, subs: make([]*pubsub.Subscription, len(b.buses))}
	first := b.store.first(channel)
	if first == nil {
		s.widen()
		return s
	}
	s.listen(first.index)
	s.mu.Lock()
	s.first, s.doubt = s.subs[first.index], time.AfterFunc(silentAfter, s.unlessLive)
	s.mu.Unlock()
	return s
}

// Hears implements seam.Bus. It is asked where there is a line of clients, which a quorum has not.
func (b *bus) Hears(string) bool { return false }

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
	bus     *bus
	channel string
	wake    func(message bool, text string)

	mu      sync.Mutex
	subs    []*pubsub.Subscription // by node
	first   *pubsub.Subscription   // nil where all nodes are listened to from the beginning
	doubt   *time.Timer            // whether that is live
	wide    bool                   // all nodes are listened to
	timer   *time.Timer            // until what was heard is said
	at      time.Time              // when that is,
	last    time.Time              // and when it was decided
	message bool                   // one was heard
	closed  bool
}

// listen subscribes to a node.
func (s *subscription) listen(node int) {
	channel := s.channel
	s.mu.Lock()
	if !s.wide {
		channel = fmt.Sprint(channel, ":", s.bus.group)
	}
	s.mu.Unlock()
	sub := s.bus.buses[node].Subscribe(channel, s.heard)
	s.mu.Lock()
	s.subs[node] = sub
	closed := s.closed
	s.mu.Unlock()
	if closed {
		sub.Close()
	}
}

// widen subscribes to all nodes.
func (s *subscription) widen() {
	s.mu.Lock()
	if s.wide || s.closed {
		s.mu.Unlock()
		return
	}
	s.wide = true
	var rest []int
	for i, sub := range s.subs {
		if sub == nil {
			rest = append(rest, i)
		}
	}
	s.mu.Unlock()
	for _, i := range rest {
		s.listen(i)
	}
}

// narrow gives up the subscriptions to all nodes but the first one, if that is live.
func (s *subscription) narrow() {
	s.mu.Lock()
	first, wide := s.first, s.wide
	s.mu.Unlock()
	if !wide || first == nil || !first.Live() {
		return
	}
	var rest []*pubsub.Subscription
	s.mu.Lock()
	s.wide = false
	for i, sub := range s.subs {
		if sub != nil && sub != first {
			rest = append(rest, sub)
			s.subs[i] = nil
		}
	}
	s.mu.Unlock()
	for _, sub := range rest {
		sub.Close()
	}
	s.unlessLive() // it may have gone meanwhile
}

// unlessLive subscribes to all nodes if the first one is silent.
func (s *subscription) unlessLive() {
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	if first != nil && !first.Live() {
		s.widen()
	}
}

// heard is called by the nodes' buses.
func (s *subscription) heard(message bool, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !message && !s.wide {
		go s.unlessLive() // the bus must not be called from here
	}
	s.message = s.message || message
	now := time.Now()
	if s.timer != nil {
		if s.at.Before(now.Add(s.bus.coil)) || s.wide && now.Sub(s.last) < s.bus.coil {
			return // it is told soon, or is about the same release as the last one
		}
		s.timer.Stop()
	}
	var after time.Duration
	switch {
	case message && !s.bus.store.tries(s.channel):
		after = between(idleAfter, 2*idleAfter)
	case s.wide: // a release comes as a message from each node, one after the other
		after = between(0, s.bus.coil)
	}
	s.last, s.at = now, now.Add(after)
	s.timer = time.AfterFunc(max(after, 1), s.say) // not 0: in a synctest bubble Go 1.26 runs such a timer at once, and crashes with -race
}

func (s *subscription) say() {
	s.mu.Lock()
	message, closed := s.message, s.closed
	s.message, s.timer = false, nil
	s.mu.Unlock()
	if !closed {
		s.wake(message, "")
	}
}

// Live implements seam.Subscription: a release would be heard.
func (s *subscription) Live() bool {
	if s.bus.store.elsewhere(s.channel) {
		s.widen()
	} else {
		s.narrow()
	}
	s.mu.Lock()
	var subs []*pubsub.Subscription
	for _, sub := range s.subs {
		if sub != nil {
			subs = append(subs, sub)
		}
	}
	least := 1
	if s.wide {
		least = s.bus.least
	}
	s.mu.Unlock()
	live := 0
	for _, sub := range subs {
		if sub.Live() {
			live++
		}
	}
	return live >= least
}

// Drop implements seam.Subscription.
func (s *subscription) Drop() { s.Close() }

// Close implements seam.Subscription.
func (s *subscription) Close() {
	s.mu.Lock()
	s.closed = true
	subs := append([]*pubsub.Subscription(nil), s.subs...)
	for _, t := range []*time.Timer{s.timer, s.doubt} {
		if t != nil {
			t.Stop()
		}
	}
	s.mu.Unlock()
	for _, sub := range subs {
		if sub != nil {
			sub.Close()
		}
	}
}
