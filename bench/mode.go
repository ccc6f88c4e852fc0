package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A mode is a kind of load.
type mode struct {
	kind       string // what is acquired: "" (a lock), semaphore, readWrite
	reads      int    // of a read-write lock: so many of ten uses read
	lone       bool   // the first caller writes, all others read, and the times are the first one's
	family     string // own: a key for each goroutine; one: one key for all; hot: few hot keys among many
	goroutines int
	clients    int    // the goroutines are dealt to them in turn
	inside     string // what is done while the lock is held: "", "get", "1ms", "2ms"
	callers    int    // of each client, in the modes that compare numbers of clients; 0 in all others
	busy       bool   // callers pause at random, so that the lock is taken for about busyShare of the time
	nodes      int    // servers of a quorum; 0: one server, and no quorum
	slow       bool   // the server is behind a link that adds slowBy
	trouble    string // of the server of a quorum that is the home of the mode's key: "", far, dead
	others     bool   // for fencelock beside locks that are not in Redis
}

const (
	hotKeys  = 8    // half of all acquires go to one of these
	manyKeys = 1000 // the other half to any of these
)

// modes are in the order of the report.
func modes() []mode {
	var all []mode
	for _, g := range []int{1, 64, 1024} {
		all = append(all, mode{family: "own", goroutines: g, clients: 1})
	}
	for _, g := range []int{4, 64, 512} {
		for _, inside := range []string{"", "get", "1ms"} {
			all = append(all, mode{family: "one", goroutines: g, clients: 4, inside: inside})
		}
	}
	all = append(all,
		mode{family: "hot", goroutines: 64, clients: 4},
		mode{family: "own", goroutines: 64, clients: 1, slow: true},
		mode{family: "one", goroutines: 64, clients: 4, slow: true})
	return slices.Concat(all, clientModes(), kindModes(), otherModes())
}

// usual tells that a run has the mode that is not asked for modes.
func (m mode) usual() bool { return !m.others && m.kind == "" }

func usualModes() []mode {
	return slices.DeleteFunc(modes(), func(m mode) bool { return !m.usual() })
}

// name is what -modes selects by.
func (m mode) name() string {
	switch {
	case m.callers > 0:
		return m.clientName()
	case m.slow:
		return fmt.Sprintf("slow/%s/g=%d", m.family, m.goroutines)
	case m.family == "one":
		return fmt.Sprintf("%s/g=%d/%s", m.family, m.goroutines, m.insideName())
	default:
		return fmt.Sprintf("%s/g=%d", m.family, m.goroutines)
	}
}

// group is the first part of the name: modes of a group share a chart.
func (m mode) group() string {
	group, _, _ := strings.Cut(m.name(), "/")
	return group
}

// baseline is the contender to whose rounds in the same repeat ratios are.
func (m mode) baseline() string {
	switch {
	case m.nodes > 0:
		return "redsync"
	case m.kind != "":
		return "redisson"
	case m.others:
		return ours
	}
	return baseline
}

func (m mode) insideName() string {
	if m.inside == "" {
		return "empty"
	}
	return m.inside
}

// title says the mode in words.
func (m mode) title() string {
	clients := "1 client"
	if m.clients > 1 {
		clients = fmt.Sprintf("%d clients in one process", m.clients)
	}
	keys := map[string]string{
		"own": "a key for each goroutine",
		"one": "one key for all",
		"hot": fmt.Sprintf("%d hot keys among %d", hotKeys, manyKeys),
	}[m.family]
	switch {
	case m.kind == semaphore:
		keys = fmt.Sprintf("a semaphore of %d permits", permits)
	case m.lone:
		keys = "a read-write lock, which one caller writes and the others read"
	case m.kind == readWrite:
		keys = fmt.Sprintf("a read-write lock, which %d of 10 uses read", m.reads)
	}
	inside := map[string]string{"": "nothing inside", "get": "one GET inside", "1ms": "1 ms inside", "2ms": "2 ms inside"}[m.inside]
	more := ""
	if m.slow {
		more += fmt.Sprintf(", over a link that adds %v to each round trip", slowBy)
	}
	if m.busy {
		more += fmt.Sprintf(", pauses at random so that the lock is taken for about %.0f%% of the time", 100*busyShare)
	}
	if m.nodes > 0 {
		more += fmt.Sprintf(", a quorum of %d servers, whose commands are added up", m.nodes)
	}
	switch m.trouble {
	case far:
		more += fmt.Sprintf("; the server that fencelock asks first is behind a link that adds %v to each round trip", farBy)
	case dead:
		more += "; nothing listens at the address of the server that fencelock asks first"
	}
	return fmt.Sprintf("%s, %d goroutines, %s, %s%s", keys, m.goroutines, clients, inside, more)
}

// keys returns the names of the mode's keys. The prefix is the round's own: a waiter that an earlier round had to
// abandon disturbs no one.
func (m mode) keys(prefix string) []string {
	names := make([]string, m.keyCount())
	for i := range names {
		names[i] = fmt.Sprintf("%s:%d", prefix, i)
	}
	return names
}

func (m mode) keyCount() int {
	return map[string]int{"own": m.goroutines, "one": 1, "hot": manyKeys}[m.family]
}

// pick returns which key a goroutine takes next.
func (m mode) pick(goroutine int) int {
	switch {
	case m.family == "own":
		return goroutine
	case m.family == "one":
		return 0
	case rand.IntN(2) == 0:
		return rand.IntN(hotKeys)
	default:
		return rand.IntN(manyKeys)
	}
}

// work is what is done with the lock held. The GET goes over the same client for every contender.
func (m mode) work(ctx context.Context, rdb *redis.Client) {
	switch m.inside {
	case "get":
		_ = rdb.Get(ctx, "value").Err()
	case "1ms":
		time.Sleep(time.Millisecond)
	case "2ms":
		time.Sleep(section)
	}
}

// selected returns those whose name contains one of the comma-separated words, all if there are none. A word that is a
// whole name selects only that.
func selected[T any](all []T, name func(T) string, words string) ([]T, error) {
	if words == "" {
		return all, nil
	}
	take := make([]bool, len(all))
	for word := range strings.SplitSeq(words, ",") {
		word = strings.TrimSpace(word)
		var exact, part []int
		for i, one := range all {
			if name(one) == word {
				exact = append(exact, i)
			} else if strings.Contains(name(one), word) {
				part = append(part, i)
			}
		}
		if len(exact) > 0 {
			part = exact
		}
		if len(part) == 0 || word == "" {
			return nil, fmt.Errorf("nothing is called %q", word)
		}
		for _, i := range part {
			take[i] = true
		}
	}
	var some []T
	for i, one := range all {
		if take[i] {
			some = append(some, one)
		}
	}
	return some, nil
}
