package quorum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/pubsub"
)

// A bus is the subscriptions to the nodes, as an engine.Bus. Each node that had a hold publishes its release. A waiter listens to the
// first node, the one that attempts ask first, because the owner nearly always has that node. The waiter listens to all nodes where
// the first node is silent, or an answer has shown that the owner has not got it.
type bus struct {
	store       *store
	buses       []*pubsub.Bus
	least       int           // this many nodes have one in common with every majority
	group       int           // the group of waiters that this client listens in, 0 to scripts.Groups-1
	mergeWithin time.Duration // messages within this time are taken for one, where all nodes are listened to
}

const (
	// silentAfter is the time in which the first node has to confirm a subscription; then the waiter listens to all nodes.
	silentAfter = 100 * time.Millisecond
	// askAtOnce is how many clients, on the average, ask for the lock at once when they hear of a release.
	askAtOnce = 4
	// idleAfter is the pause without a further message after which the other clients ask too: a random time from idleAfter to
	// twice as long.
	idleAfter = 25 * time.Millisecond
)

// Subscribe implements engine.Bus. It listens to the first node, or to all nodes where there is no first node now.
func (b *bus) Subscribe(channel string, wake func(message bool, text string)) engine.Subscription {
	s := &subscription{bus: b, channel: channel, wake: wake, subs: make([]*pubsub.Subscription, len(b.buses))}
	first := b.store.first(channel)
	if first == nil {
		s.widen()
		return s
	}
	s.listen(first.index)
	s.mu.Lock()
	s.first, s.silence = s.subs[first.index], time.AfterFunc(silentAfter, s.unlessLive)
	s.mu.Unlock()
	return s
}

// Hears implements engine.Bus. The engine asks it for the line of clients, which a quorum has not got.
func (b *bus) Hears(string) bool { return false }

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

// A subscription is this client's interest in the releases of one lock.
type subscription struct {
	bus     *bus
	channel string
	wake    func(message bool, text string)

	mu      sync.Mutex
	subs    []*pubsub.Subscription // by the node's index; nil for a node that is not listened to
	first   *pubsub.Subscription   // the one to the first node; nil where all nodes are listened to from the beginning
	silence *time.Timer            // after silentAfter looks whether first is live
	wide    bool                   // all nodes are listened to
	timer   *time.Timer            // calls say; nil while nothing is to be said
	at      time.Time              // when timer fires
	last    time.Time              // when timer was set
	message bool                   // a release was heard since wake was called
	closed  bool
}

// listen subscribes to a node: to the channel of this client's group, or, where all nodes are listened to, to the channel of the
// lock.
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

// widen subscribes to all nodes that are not listened to yet.
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

// narrow closes the subscriptions to all nodes but the first one, if that one is live.
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
	s.unlessLive() // the first node may have become silent meanwhile
}

// unlessLive subscribes to all nodes if the subscription to the first one is not live.
func (s *subscription) unlessLive() {
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	if first != nil && !first.Live() {
		s.widen()
	}
}

// heard is called by the nodes' buses: message is true for a release, and false for a change of a subscription. It sets the timer for
// waking the waiters: at once for one of the few clients that ask first, after idleAfter or more for the others.
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
		if s.at.Before(now.Add(s.bus.mergeWithin)) || s.wide && now.Sub(s.last) < s.bus.mergeWithin {
			return // the waiters are woken soon anyway, or this is the same release as the last message was
		}
		s.timer.Stop()
	}
	var after time.Duration
	switch {
	case message && !s.bus.store.tries(s.channel):
		after = between(idleAfter, 2*idleAfter)
	case s.wide: // one release is a message from each node, one after the other
		after = between(0, s.bus.mergeWithin)
	}
	s.last, s.at = now, now.Add(after)
	s.timer = time.AfterFunc(max(after, 1), s.say) // not 0: in a synctest bubble Go 1.26 runs such a timer at once, and crashes with -race
}

// say wakes the waiters, with what was heard.
func (s *subscription) say() {
	s.mu.Lock()
	message, closed := s.message, s.closed
	s.message, s.timer = false, nil
	s.mu.Unlock()
	if !closed {
		s.wake(message, "")
	}
}

// Live implements engine.Subscription: it tells whether a release would be heard. It first subscribes to all nodes if the owner was
// seen without the first node, and to the first node alone otherwise.
func (s *subscription) Live() bool {
	if s.bus.store.ownerLacksFirst(s.channel) {
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

// Drop implements engine.Subscription: it closes the subscription.
func (s *subscription) Drop() { s.Close() }

// Close implements engine.Subscription: it ends the subscriptions to all nodes, and wakes nobody afterwards.
func (s *subscription) Close() {
	s.mu.Lock()
	s.closed = true
	subs := append([]*pubsub.Subscription(nil), s.subs...)
	for _, t := range []*time.Timer{s.timer, s.silence} {
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
