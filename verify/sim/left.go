package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
)

// leftFor is how long after the last call nothing may be left any more: a client listens for two seconds more, and its connection for messages is
// kept for another one.
const leftFor = 5 * time.Second

// What may be left.
const (
	knownLocks    = "locks"
	openHolds     = "holds"
	owedReleases  = "releases"
	subscriptions = "connections for messages"
	leftChannel   = "the channel " // a server has it
)

// notice writes down what is left after the last call: locks on the servers, other keys, and what clients have in memory but for releases.
func (w *world) notice() {
	for _, s := range w.servers {
		for _, lock := range w.keyNames() {
			for _, owner := range strings.Fields(s.owner(lock)) {
				w.note(event{Kind: left, Lock: lock, Text: owner, For: s.m.TTL(lock)})
			}
		}
		w.noticeKeys(s, "fencelock_client") // of presence
	}
	w.noticeClients()
}

// leftovers writes down what is left when all clients were closed.
func (w *world) leftovers() {
	for _, s := range w.servers {
		w.noticeKeys(s)
		for _, channel := range s.m.PubSubChannels("") {
			w.note(event{Kind: left, Text: leftChannel + channel})
		}
		open := 0
		s.net.each(func(l *link) bool { return l.way.server == s && !l.dead && !l.client.closed }, func(*link) { open++ })
		if open > 0 {
			w.note(event{Kind: left, Text: fmt.Sprintf("%d connections", open)})
		}
	}
	w.noticeClients()
}

// noticeKeys writes down the keys of the server that are neither locks nor counters of tokens nor a quorum's own, nor begin in one of these ways; and the locks that
// never expire.
func (w *world) noticeKeys(s *server, but ...string) {
	but = append(but, "redisson_lock_token:", "fencelock:quorum")
	s.ticks()
	for _, key := range s.m.Keys() {
		switch ttl := s.m.TTL(key); {
		case slices.ContainsFunc(but, func(begin string) bool { return strings.HasPrefix(key, begin) }):
		case strings.HasSuffix(key, ownKeyEnd):
			w.note(event{Kind: left, Lock: lockOfKey(key), Text: strings.TrimPrefix(key, "{"+lockOfKey(key)+"}:"), For: ttl})
		case !slices.Contains(w.keyNames(), key):
			w.note(event{Kind: left, Text: "the key " + key, For: ttl})
		case ttl == 0:
			w.note(event{Kind: left, Text: "the key " + key + ", which never expires"})
		}
	}
}

// noticeClients writes down what the clients of the library have in memory but for releases, also those that are closed.
func (w *world) noticeClients() {
	w.eachClient(func(c *client, l *engine.Lock) {
		locks, holds, _ := l.OnBooks()
		listening := 0
		for _, rdb := range c.rdbs {
			listening += int(rdb.PoolStats().PubSubStats.Active)
		}
		c.noticeLeft(knownLocks, locks)
		c.noticeLeft(openHolds, holds)
		c.noticeLeft(subscriptions, listening)
	})
}

// noticeReleases writes down which clients owe releases still.
func (w *world) noticeReleases() {
	w.eachClient(func(c *client, l *engine.Lock) {
		_, _, releases := l.OnBooks()
		c.noticeLeft(owedReleases, releases)
	})
}

func (c *client) noticeLeft(what string, n int) {
	if n > 0 {
		c.world.note(event{Kind: left, Client: c.name, Text: what, Count: n})
	}
}

// eachClient calls do for each client of the library, with a lock of it.
func (w *world) eachClient(do func(*client, *engine.Lock)) {
	w.mu.Lock()
	everyone := slices.Clone(w.everyone)
	w.mu.Unlock()
	for _, c := range everyone {
		if c.books != nil {
			do(c, c.books)
		}
	}
}

// owedFor is for how long after the last call a release may be owed: what an attempt without an answer may have taken is released for a lease, and
// the release is dropped when its next time has come, a third of a lease later (P3).
func (p plan) owedFor() time.Duration { return p.longestLease() * 4 / 3 }
