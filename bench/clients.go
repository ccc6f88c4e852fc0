package main

import (
	"fmt"
	"time"
)

// The modes of many clients: one key, and a client stands for a process. It has connections of its own, and all clients run
// in this process, so that 1,000 of them fit on one machine. The modes of a quorum are among them, also those of one client.
const (
	section   = 2 * time.Millisecond // what "2ms" is
	busyShare = 0.7                  // see mode.busy
	majority  = 5                    // servers of a quorum
	farBy     = 30 * time.Millisecond
)

// Troubles of a server of a quorum.
const (
	far  = "far"  // it is behind a link that adds farBy
	dead = "dead" // nothing listens at its address
)

// A round of many clients measures for several windows, because a full turn of all callers may take seconds. It takes part in
// one repeat of several in return.
const (
	clientWindows = 4
	clientEvery   = 4
)

// clientModes are in the order of the report.
func clientModes() []mode {
	var all []mode
	loads := []mode{{}, {inside: "2ms"}, {inside: "2ms", busy: true}}
	for _, load := range loads {
		for _, n := range []int{4, 16, 64, 256, 1000} {
			all = append(all, load.with(n, 1))
		}
	}
	all = append(all, mode{}.with(64, 8))
	for _, g := range []int{1, 16, 128} {
		all = append(all, mode{nodes: majority}.own(g))
	}
	for _, load := range loads {
		load.nodes = majority
		for _, n := range []int{4, 16, 64} {
			all = append(all, load.with(n, 1))
		}
	}
	for _, inside := range []string{"", "1ms"} {
		all = append(all, mode{nodes: majority, inside: inside}.with(4, 16))
	}
	for _, trouble := range []string{far, dead} {
		m := mode{nodes: majority, trouble: trouble}
		all = append(all, m.own(1), m.with(16, 1))
		m.inside, m.busy = "2ms", true
		all = append(all, m.with(16, 1))
	}
	return all
}

// otherModes are for locks that are not in Redis. In none of them two callers of a client want the same key: a session of etcd and a
// connection of PostgreSQL have a lock as often as they ask for it.
func otherModes() []mode {
	var all []mode
	for _, g := range []int{1, 16, 128} {
		all = append(all, mode{others: true}.own(g))
	}
	return append(all, mode{others: true}.with(64, 1), mode{others: true, inside: "2ms", busy: true}.with(64, 1))
}

// with is the load from so many clients with so many callers each.
func (m mode) with(clients, callers int) mode {
	m.family, m.clients, m.callers, m.goroutines = "one", clients, callers, clients*callers
	return m
}

// own is the load from one client with so many callers, each with a key of its own.
func (m mode) own(callers int) mode {
	m = m.with(1, callers)
	m.family = "own"
	return m
}

func (m mode) clientName() string {
	group, n := "clients", fmt.Sprint(m.clients)
	switch {
	case m.kind != "":
		group = m.kindGroup()
	case m.others:
		group = "others"
	case m.trouble != "":
		group = "quorum-" + m.trouble
	case m.nodes > 0 && m.family == "own":
		group = "quorum-own"
	case m.nodes > 0:
		group = "quorum"
	}
	if m.family == "own" {
		return fmt.Sprintf("%s/g=%d", group, m.goroutines)
	}
	if m.callers > 1 {
		n += fmt.Sprintf("x%d", m.callers)
	}
	return fmt.Sprintf("%s/n=%s/%s", group, n, m.load())
}

// load is the last part of the name.
func (m mode) load() string {
	if m.busy {
		return fmt.Sprintf("%s-%.0f", m.insideName(), 100*busyShare)
	}
	return m.insideName()
}

// alone tells that only fencelock takes part, unless others are asked for. With 256 clients they have a tenth of its rate and
// less, and a full turn of 1,000 callers would take them longer than a window.
func (m mode) alone() bool { return m.clients >= 1000 }

// every is in how many repeats there is one round of each contender.
func (m mode) every() int {
	if m.callers > 0 {
		return clientEvery
	}
	return 1
}

// patienceFor is how much longer than elsewhere each waiter has after the end of the load: who is slow does not hang.
const patienceFor = 20 * time.Millisecond

// connecting is how much longer than elsewhere the warm-up is for each client: what connecting costs is not measured.
const connecting = 3 * time.Millisecond

// of is the timing of a round in the mode. Where callers pause, nothing is measured before all have begun.
func (t timing) of(m mode) timing {
	if m.callers == 0 {
		return t
	}
	t.warm += time.Duration(m.clients) * connecting
	if m.busy {
		t.warm = max(2*t.window, m.pause()+t.window)
	}
	t.window *= clientWindows
	t.grace += time.Duration(m.goroutines) * patienceFor
	return t
}

// pause is how long a caller pauses in the mean after a use: 0 where it comes back at once. All callers together then want
// the lock for busyShare of the time, if they did not wait for each other.
func (m mode) pause() time.Duration {
	if !m.busy {
		return 0
	}
	return time.Duration(float64(section)*float64(m.goroutines)/busyShare) - section
}
