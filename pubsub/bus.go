package pubsub

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	probeTimeout = 500 * time.Millisecond  // for the question whether there are sharded channels
	silence      = 3 * time.Second         // a connection without a sign of life is pinged after it, and replaced after as long again
	linger       = time.Second             // how long a channel stays subscribed after its last subscription was closed; the period of link.write
	firstRetry   = 50 * time.Millisecond   // the first pause between attempts to connect, which doubles
	lastRetry    = 1000 * time.Millisecond // up to this one
	firstRefused = time.Second             // the first pause after which a subscription is tried again that was refused for want of a right, which doubles
	lastRefused  = 30 * time.Second        // up to this one
)

// Sharding says whether the channels of a cluster are sharded (SSUBSCRIBE). Outside a cluster channels never are, also with
// a cluster client such as redis.NewFailoverClusterClient returns.
type Sharding int

const (
	Auto Sharding = iota // sharded where the servers are a cluster that knows sharded channels, as Redisson does
	On                   // sharded where the servers are a cluster, or do not say what they are
	Off                  // never sharded
)

// A Bus has the subscriptions of one Redis client. New makes one.
type Bus struct {
	rdb      redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	log      *slog.Logger
	ctx      context.Context
	shutdown context.CancelFunc

	wanted   Sharding
	sharding atomic.Int32               // a Sharding; Auto until the server was asked
	changed  func(node string, up bool) // of OnChange

	mu       sync.Mutex
	asked    *question // under way; nil for none
	channels map[string]*channel
	links    map[string]*link     // by the address of the node, "" where there is one link
	said     string               // the error that was logged last
	left     map[string]time.Time // when a link to this address was replaced because the slots' master has another one
}

// A channel is what the subscriptions to one name share. Its fields are guarded by Bus.mu.
type channel struct {
	name string
	subs []*Subscription // few: one for each caller of Subscribe in this process
	link *link           // nil while the channel's node is looked up
	idle time.Time       // when the last of subs was closed
	drop bool            // the bus unsubscribes at once, without lingering
	sent bool            // the command to subscribe is being written, or was
	live bool            // the server has confirmed the subscription, and the connection is there
}

// A Subscription is one caller's interest in a channel.
type Subscription struct {
	bus  *Bus
	ch   *channel
	wake func(message bool, text string)
}

// New returns a bus on rdb. The bus connects with the first subscription, and logs to log what keeps it from listening.
func New(rdb redis.UniversalClient, sharding Sharding, log *slog.Logger) *Bus {
	b := &Bus{rdb: rdb, log: log, wanted: sharding, changed: func(string, bool) {}, channels: map[string]*channel{}, links: map[string]*link{}, left: map[string]time.Time{}}
	b.cluster, _ = rdb.(*redis.ClusterClient)
	b.sharding.Store(int32(sharding))
	switch {
	case b.cluster == nil:
		b.sharding.Store(int32(Off))
	case sharding == On && b.guessed():
		b.sharding.Store(int32(Auto))
	}
	b.ctx, b.shutdown = context.WithCancel(context.Background())
	return b
}

// OnChange makes the bus call changed when a connection on which it listens is up, as Redis has answered on it, or is down. A
// connection that is closed because nobody needs it is not told of. node is the address of the cluster's node with sharded channels,
// otherwise "". The bus calls changed with no lock held, and reads no messages of that connection meanwhile. OnChange comes before
// the first Subscribe.
func (b *Bus) OnChange(changed func(node string, up bool)) { b.changed = changed }

// Subscribe calls wake whenever the channel may have news, until the subscription is closed: for a message with message true
// and the text of the message, for a change of the connection with message false. The bus calls wake from goroutines of its
// own, and from Subscribe itself where the channel is live already. wake must not block, nor call the bus. Subscribe never
// fails: while Redis is away the subscription is not live, and becomes so by itself.
func (b *Bus) Subscribe(name string, wake func(message bool, text string)) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := b.channels[name]
	if ch == nil {
		ch = &channel{name: name}
		b.channels[name] = ch
		b.place(ch)
	}
	s := &Subscription{b, ch, wake}
	ch.subs, ch.drop = append(ch.subs, s), false
	if ch.live {
		wake(false, "")
	}
	return s
}

// Hears tells whether the server counts this client as listening on the channel: the client is subscribed, or has closed its
// last subscription a moment ago.
func (b *Bus) Hears(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := b.channels[name]
	return ch != nil && ch.live
}

// Live tells whether a message would arrive: the server has confirmed the subscription, and its connection is not known to
// be broken.
func (s *Subscription) Live() bool {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.ch.live
}

// Close ends the subscription. It may be called twice. The client stays subscribed to the channel for a second after its
// last subscription, as callers often come back.
func (s *Subscription) Close() { s.end(false) }

// Drop is Close, but the client unsubscribes at once where this was the last subscription to the channel. A release counts
// the connections that listen, and a client that does not want to hear is not to be one of them.
func (s *Subscription) Drop() { s.end(true) }

func (s *Subscription) end(drop bool) {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(s.ch.subs, s)
	if i < 0 {
		return
	}
	s.ch.subs = slices.Delete(s.ch.subs, i, i+1)
	if len(s.ch.subs) == 0 {
		s.ch.idle, s.ch.drop = time.Now(), drop
		if drop && s.ch.link != nil {
			s.ch.link.look()
		}
	}
}

// Close ends all subscriptions and connections. It does not wait until they have ended.
func (b *Bus) Close() {
	b.shutdown()
}

// Sharded tells whether messages are to be published to sharded channels. With a cluster client Sharded asks a server
// whether the servers are a cluster and know sharded channels, the way Redisson does, and remembers the answer. Without an
// answer, as while Redis is away, Sharded returns false, and the next call asks again. Calls at the same time wait for the same
// answer, each no longer than its context allows.
func (b *Bus) Sharded(ctx context.Context) bool {
	b.mu.Lock()
	if sharded, known := b.Known(); known {
		b.mu.Unlock()
		return sharded
	}
	q := b.asked
	if q == nil {
		q = &question{answered: make(chan struct{})}
		b.asked = q
		go b.ask(context.WithoutCancel(ctx), q)
	}
	b.mu.Unlock()
	select {
	case <-q.answered:
		return q.answer == On
	case <-ctx.Done():
		return false
	}
}

// A question is whether there are sharded channels. The answer is Auto where none came.
type question struct {
	answered chan struct{} // closed when answer is there
	answer   Sharding
}

// ask asks the server, and remembers the answer.
func (b *Bus) ask(ctx context.Context, q *question) {
	q.answer = b.probe(ctx)
	b.mu.Lock()
	if q.answer != Auto {
		b.sharding.Store(int32(q.answer))
	}
	b.asked = nil
	b.mu.Unlock()
	close(q.answered)
}

// Known returns what Sharded does, without asking a server. known is false where Sharded would have to ask.
func (b *Bus) Known() (sharded, known bool) {
	s := Sharding(b.sharding.Load())
	return s == On, s != Auto
}

// probe asks the server: On or Off, or Auto where no answer came within probeTimeout.
func (b *Bus) probe(ctx context.Context) Sharding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answer := On
	if b.guessed() {
		answer = b.clustered(ctx)
	}
	if answer == On && b.wanted == Auto {
		answer = b.knows(ctx)
	}
	return answer
}

// guessed tells that the cluster client has not learned from its servers that they are a cluster: somebody else says which
// server has which slots, as the Sentinels do for redis.NewFailoverClusterClient.
func (b *Bus) guessed() bool { return b.cluster.Options().ClusterSlots != nil }

// clustered asks whether the servers are a cluster: On or Off, or Auto where no answer came.
func (b *Bus) clustered(ctx context.Context) Sharding {
	node, err := b.cluster.MasterForKey(ctx, "fencelock")
	if err != nil {
		return Auto
	}
	info, err := node.Info(ctx, "cluster").Result()
	switch {
	case strings.Contains(info, "cluster_enabled:1"):
		return On
	case strings.Contains(info, "cluster_enabled:0"):
		return Off
	case err != nil && !isReply(err) || passing(err):
		return Auto
	}
	// The Redis user has no right to INFO, or a proxy has answered.
	info, err = node.ClusterInfo(ctx).Result()
	switch {
	case strings.Contains(info, "cluster_state:"):
		return On
	case err != nil && !isReply(err) || passing(err):
		return Auto
	case err != nil && !strings.HasPrefix(err.Error(), "NOPERM"):
		return Off // "cluster support disabled", or no such command
	}
	if b.wanted == On {
		return On
	}
	b.complain("the Redis user may not ask whether the servers are a cluster (INFO, CLUSTER INFO): sharded channels are not used unless they are on", err)
	return Off
}

// passing tells that err is of a server that will soon say something else.
func passing(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "LOADING") || strings.HasPrefix(err.Error(), "MASTERDOWN") || strings.HasPrefix(err.Error(), "BUSY"))
}

// knows asks whether the cluster has sharded channels: On or Off, or Auto where no answer came.
func (b *Bus) knows(ctx context.Context) Sharding {
	err := b.cluster.PubSubShardNumSub(ctx, "fencelock").Err()
	switch {
	case err == nil:
		return On
	case Lacks(err):
		return Off
	case isReply(err) && strings.HasPrefix(err.Error(), "NOPERM"):
		b.complain("the Redis user may not ask whether there are sharded channels: they are not used", err)
		return Off
	}
	return Auto
}

// place gives each of the channels to the link of its node, at once or, where a node must be looked up, later. With b.mu
// held.
func (b *Bus) place(channels ...*channel) {
	if sharded, known := b.Known(); known && !sharded {
		for _, ch := range channels {
			b.attach(ch, "", b.rdb)
		}
		return
	}
	go b.placeSharded(channels)
}

// placeSharded gives each of the channels to the link of its node, and tries to look the nodes up for as long as that takes.
func (b *Bus) placeSharded(channels []*channel) {
	for retry := firstRetry; b.ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		sharded := b.Sharded(b.ctx)
		var left []*channel
		for _, ch := range channels {
			if !b.placeOne(ch, sharded) {
				left = append(left, ch)
			}
		}
		if channels = left; len(left) == 0 {
			return
		}
		b.cluster.ReloadState(b.ctx)
		pause(b.ctx, retry)
	}
}

// placeOne gives the channel to the link of its node, if the node is known, or drops a channel without subscriptions. It
// tells whether nothing is left to do for the channel.
func (b *Bus) placeOne(ch *channel, sharded bool) bool {
	address, node := "", b.rdb
	if sharded {
		master, err := b.cluster.MasterForKey(b.ctx, ch.name)
		if err != nil {
			return b.forget(ch)
		}
		address, node = master.Options().Addr, master
	} else {
		if _, known := b.Known(); !known {
			return b.forget(ch)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attach(ch, address, node)
	return true
}

// forget drops a channel that nobody is subscribed to, and tells whether it did.
func (b *Bus) forget(ch *channel) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(ch.subs) > 0 {
		return false
	}
	delete(b.channels, ch.name)
	return true
}

// attach gives the channel to the link to this node, and makes the link if there is none. With b.mu held.
func (b *Bus) attach(ch *channel, address string, node redis.UniversalClient) {
	l := b.links[address]
	if l == nil {
		sharded, _ := b.Known()
		l = &link{bus: b, address: address, node: node, sharded: sharded, nudge: make(chan struct{}, 1), channels: map[string]*channel{}}
		b.links[address] = l
		go l.run()
	}
	ch.link, ch.sent, ch.live = l, false, false
	l.channels[ch.name] = ch
	l.fresh = append(l.fresh, ch)
	l.look()
}

// complain logs what is wrong, unless the same error was logged last.
func (b *Bus) complain(what string, err error) {
	b.mu.Lock()
	again := b.said == err.Error()
	b.said = err.Error()
	b.mu.Unlock()
	if !again {
		b.log.Warn("pubsub: "+what, "error", err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
