package pubsub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A link is one connection and its channels. It has two goroutines: one writes (subscribe, unsubscribe, ping) and decides
// when the connection is over, the other one reads. The maps and fresh are guarded by Bus.mu.
type link struct {
	bus     *Bus
	address string
	node    redis.UniversalClient
	sharded bool
	nudge   chan struct{} // there are fresh channels, or channels to unsubscribe from at once

	channels map[string]*channel
	fresh    []*channel     // not yet subscribed to over this connection
	leaving  map[string]int // for a sharded channel, how many SUNSUBSCRIBE are sent and not confirmed
	refusal  time.Time      // when the server has refused a subscription last
	pause    time.Duration  // after which those that were refused are tried again
	tryAt    time.Time      // when that is; zero where none was refused since the last try
}

// run keeps the link connected until it has no channels left.
func (l *link) run() {
	retry := firstRetry
	for l.bus.ctx.Err() == nil {
		began := time.Now()
		if done := l.connect(); done {
			return
		}
		if time.Since(began) > lastRetry {
			retry = firstRetry
		} else if l.sharded {
			retry = lastRetry // the link that replaces this one will not know how often this one has failed
		}
		if l.sharded {
			l.bus.cluster.ReloadState(l.bus.ctx) // the slots may have moved; it takes a part of the pause
		}
		pause(l.bus.ctx, retry)
		retry = min(2*retry, lastRetry)
		if _, done := l.unwanted(); done {
			return
		}
		if l.sharded {
			l.dissolve() // the bus looks up the node of every channel anew
			return
		}
	}
}

// connect serves one connection until it breaks. done is true where the link has nothing left to do, or the bus is closed.
func (l *link) connect() (done bool) {
	ctx := l.bus.ctx
	var ps *redis.PubSub
	if l.sharded {
		ps = l.node.SSubscribe(ctx)
	} else {
		ps = l.node.Subscribe(ctx)
	}
	l.restart()
	if !l.subscribe(ctx, ps) {
		ps.Close()
		return false
	}
	var heard atomic.Int64
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		l.read(ctx, ps, &heard)
	}()
	done = l.write(ctx, ps, &heard, broken)
	ps.Close()
	<-broken
	l.down()
	if !done && heard.Load() > 0 {
		l.bus.changed(l.address, false)
	}
	return done
}

// write serves the connection's outgoing side, and pings a silent connection. heard counts what read has received. done is
// as connect returns it.
func (l *link) write(ctx context.Context, ps *redis.PubSub, heard *atomic.Int64, broken <-chan struct{}) (done bool) {
	tick := time.NewTicker(linger) // at each tick the link looks for silence, sweeps, and looks whether its node is demoted
	defer tick.Stop()
	last, pinged, before, ticks := time.Now(), false, int64(0), 0
	for {
		select {
		case <-ctx.Done():
			return true
		case <-broken:
			return false
		case <-l.nudge:
			if !l.subscribe(ctx, ps) {
				return false
			}
			if l.sweep(ctx, ps) {
				return true
			}
		case now := <-tick.C:
			if n := heard.Load(); n != before {
				last, pinged, before = now, false, n
			}
			switch quiet := now.Sub(last); {
			case quiet >= 2*silence && pinged:
				l.bus.log.Warn("pubsub: no answer, connecting anew", "quiet", quiet)
				return false
			case quiet >= silence && !pinged:
				pinged = true
				if ps.Ping(ctx) != nil {
					return false
				}
			}
			if l.sweep(ctx, ps) {
				return true
			}
			l.tryRefused(now)
			if ticks++; l.sharded && (ticks == 2 || ticks == 10) {
				l.bus.cluster.ReloadState(ctx) // the node may have been looked up while not all nodes knew of a failover
			}
			if l.demoted(ctx) {
				return false
			}
		}
	}
}

// demoted tells whether the node of a sharded link is no longer the master of the link's channels, by what the cluster client knows. A
// replica delivers messages too, but a release counts only the connections that listen on the master. demoted looks at one channel of the
// link: where a single slot moves, the node itself ends the subscriptions (see dropped). For one address demoted returns true no more than
// once a minute: some clusters have two addresses for one node, and the new link would be replaced again at once.
func (l *link) demoted(ctx context.Context) bool {
	if !l.sharded {
		return false
	}
	l.bus.mu.Lock()
	var name string
	for name = range l.channels {
		break
	}
	l.bus.mu.Unlock()
	master, err := l.bus.cluster.MasterForKey(ctx, name)
	if name == "" || err != nil || master.Options().Addr == l.address {
		return false
	}
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	again := time.Since(l.bus.left[l.address]) < time.Minute
	if !again {
		l.bus.left[l.address] = time.Now()
	}
	return !again
}

// subscribe sends the commands for the fresh channels, one for each, so that a channel which is refused, or is in another
// slot, does not make others fail. It returns false if the connection is broken.
func (l *link) subscribe(ctx context.Context, ps *redis.PubSub) bool {
	l.bus.mu.Lock()
	var fresh []*channel
	for _, ch := range l.fresh {
		if l.channels[ch.name] == ch { // unwanted has not removed the channel
			ch.sent = true
			fresh = append(fresh, ch)
		}
	}
	l.fresh = nil
	l.bus.mu.Unlock()
	send := ps.Subscribe
	if l.sharded {
		send = ps.SSubscribe
	}
	for _, ch := range fresh {
		if send(ctx, ch.name) != nil {
			return false
		}
	}
	return true
}

// look makes the link see to its fresh channels, and to those that it is to unsubscribe from. It does not block.
func (l *link) look() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// sweep unsubscribes from the channels without subscriptions whose time is over, or that are to be dropped. done is true
// where the link has no channels left.
func (l *link) sweep(ctx context.Context, ps *redis.PubSub) (done bool) {
	old, done := l.unwanted()
	if done || len(old) == 0 {
		return done
	}
	if l.sharded {
		for _, name := range old {
			l.bus.mu.Lock()
			l.leaving[name]++
			l.bus.mu.Unlock()
			_ = ps.SUnsubscribe(ctx, name) // read notices a broken connection
		}
	} else {
		_ = ps.Unsubscribe(ctx, old...)
	}
	return false
}

// unwanted removes from the bus and the link the channels that have had no subscription for a while, or are to be dropped,
// and returns their names. Where none is left it removes the link from the bus too, and done is true.
func (l *link) unwanted() (old []string, done bool) {
	b := l.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, ch := range l.channels {
		if len(ch.subs) == 0 && (ch.drop || time.Since(ch.idle) >= linger) {
			old = append(old, name)
			delete(l.channels, name)
			delete(b.channels, name)
		}
	}
	if done = len(l.channels) == 0; done {
		delete(b.links, l.address)
	}
	return old, done
}

// read serves the connection's incoming side until it breaks.
func (l *link) read(ctx context.Context, ps *redis.PubSub, heard *atomic.Int64) {
	for {
		got, err := ps.Receive(ctx)
		if err != nil && !isReply(err) {
			return
		}
		if heard.Add(1) == 1 {
			l.bus.changed(l.address, true)
		}
		switch got := got.(type) {
		case *redis.Message:
			l.wake(got.Channel, false, got.Payload)
		case *redis.Subscription:
			switch got.Kind {
			case "subscribe", "ssubscribe":
				l.wake(got.Channel, true, "")
			case "sunsubscribe":
				if l.dropped(got.Channel) {
					return // the slot has moved to another node
				}
			}
		}
		if err != nil && l.refused(err) {
			return
		}
	}
}

// refused deals with an error reply, and tells whether the connection is to be replaced.
func (l *link) refused(err error) bool {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "NOPERM"):
		l.bus.complain("the Redis user may not subscribe: waiters poll instead", err)
		l.plan(time.Now())
		return false
	case strings.HasPrefix(text, "MOVED"), strings.HasPrefix(text, "CLUSTERDOWN"):
		return true // the slots have moved
	case Lacks(err):
		l.bus.complain("the server, or a proxy in front of it, knows no subscriptions: waiters poll instead. Connect past the proxy, or shorten WithPollInterval", err)
		l.plan(time.Now())
		return false
	}
	l.bus.complain("error reply: waiters poll until a new connection is there", err)
	return true
}

// plan has the channels that were refused tried again, after ever longer pauses: the user may have the right by then.
func (l *link) plan(now time.Time) {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if now.Sub(l.refusal) > 2*lastRefused {
		l.pause = 0
	}
	if l.refusal = now; l.tryAt.IsZero() {
		l.pause = min(max(2*l.pause, firstRefused), lastRefused)
		l.tryAt = now.Add(l.pause)
	}
}

// tryRefused subscribes again to the channels that the server has not confirmed, if that is due.
func (l *link) tryRefused(now time.Time) {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.tryAt.IsZero() || now.Before(l.tryAt) {
		return
	}
	l.tryAt = time.Time{}
	for _, ch := range l.channels {
		if ch.sent && !ch.live {
			ch.sent = false
			l.fresh = append(l.fresh, ch)
		}
	}
	l.look()
}

// dropped tells whether the server has ended the subscription to a channel without a SUNSUBSCRIBE of this link.
func (l *link) dropped(name string) bool {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.leaving[name] > 0 {
		if l.leaving[name]--; l.leaving[name] == 0 {
			delete(l.leaving, name)
		}
		return false
	}
	ch := l.channels[name]
	return ch != nil && ch.sent
}

// wake calls the channel's subscribers, for a message with this text, or for a confirmation: with confirmed the channel is
// live from now on.
func (l *link) wake(name string, confirmed bool, text string) {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	ch := l.channels[name]
	if ch == nil {
		return
	}
	if confirmed {
		ch.live = true
	}
	for _, s := range ch.subs {
		s.wake(!confirmed, text)
	}
}

// restart makes every channel of the link a fresh one, for a new connection.
func (l *link) restart() {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	l.fresh, l.leaving, l.tryAt = l.fresh[:0], map[string]int{}, time.Time{}
	for _, ch := range l.channels {
		ch.sent = false
		l.fresh = append(l.fresh, ch)
	}
}

// down wakes the subscribers of live channels, as no messages come until there is a new connection.
func (l *link) down() {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	for _, ch := range l.channels {
		if ch.live {
			ch.live = false
			for _, s := range ch.subs {
				s.wake(false, "")
			}
		}
	}
}

// dissolve removes the link from the bus, and has the bus give its channels to other links.
func (l *link) dissolve() {
	b := l.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.links, l.address)
	var channels []*channel
	for _, ch := range l.channels {
		ch.link = nil
		channels = append(channels, ch)
	}
	if len(channels) > 0 {
		b.place(channels...)
	}
}

// isReply tells that err is an error reply: the connection is there.
func isReply(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}

// Lacks tells that a server, or a proxy in front of it, has said that it does not have the command, in Redis's words, those of Envoy, Dragonfly or
// Garnet.
func Lacks(err error) bool {
	if redis.HasErrorPrefix(err, "WRONGPASS") { // "… or user is disabled"
		return false
	}
	return isReply(err) && slices.ContainsFunc([]string{"unknown", "unsupported command", "not supported", "is disabled"},
		func(words string) bool { return strings.Contains(strings.ToLower(err.Error()), words) })
}
