package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// A tally counts what a world has done, by names. A run says which of the names that it knows it has never come to (cover.go).
type tally struct {
	mu   sync.Mutex
	done map[string]int
}

func newTally() *tally { return &tally{done: make(map[string]int)} }

func (t *tally) did(what string) {
	t.mu.Lock()
	t.done[what]++
	t.mu.Unlock()
}

// counts returns what was done.
func (t *tally) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.done)
}

// A scriptCounter counts the scripts that one server runs. It knows those whose text it was sent.
type scriptCounter struct {
	tally *tally
	names map[string]string // by the SHA-1 of the text
}

// operation is the line of a script's text that says which operation the script does.
var operation = regexp.MustCompile(`(?m)^local operation = (\w+)$`)

// nameOf is what the library calls the script with this text; "" for scripts of others.
func nameOf(text string) string {
	if found := operation.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	for _, name := range []string{"batch", "renew", "inspect", "mark", "set_members", "write", "index"} {
		if strings.HasPrefix(text, "-- "+name+" ") || strings.Contains(text, "\n-- "+name+" ") {
			return name
		}
	}
	return ""
}

// counts counts the script of this command, and the operations of a batch.
func (s *scriptCounter) counts(cmd string, args []string) {
	var sha string
	switch {
	case cmd == "EVALSHA" && len(args) > 1:
		sha = args[0]
	case cmd == "EVAL" && len(args) > 1:
		sum := sha1.Sum([]byte(args[0]))
		sha = hex.EncodeToString(sum[:])
		s.names[sha] = nameOf(args[0])
	}
	switch name := s.names[sha]; name {
	case "":
	case "batch":
		for _, arg := range args[2:] {
			if op := strings.TrimRight(arg, "+"); slices.Contains(batched, op) {
				s.tally.did("batch of " + op)
			}
		}
	default:
		s.tally.did("script " + name)
	}
}

// message counts a message that a client hears: of a release, or about its place in a line.
func (t *tally) message(data []byte) {
	words := strings.Split(string(data), "\r\n") // *3, $7, message, the length of the channel, the channel, that of the text, the text
	if len(words) < 7 {
		return
	}
	if !strings.HasPrefix(words[4], "fencelock_line") {
		t.did("message of a release")
		return
	}
	name, _, _ := strings.Cut(words[6], " ")
	if name == "" {
		name = "empty"
	}
	t.did("message " + name)
}

// batched are the operations that a batch can have, by the names that stand there: of one server, and of the servers of a quorum.
var batched = []string{
	"acquire", "wait", "try", "level", "unlock", "release", "quick", "leave", "transfer", "import",
	"vote", "turn", "outside", "extend", "recount", "raise", "withdraw", "calling", "newcomers", "look",
}

// sortsOfErrors are what an error can be.
var sortsOfErrors = []struct {
	name string
	is   func(error) bool
}{
	{"another has it", isError(rlock.ErrNotAcquired)},
	{"the votes are split", isError(quorum.ErrSplitVote)},
	{"lost", isError(rlock.ErrLost)},
	{"not held", isError(rlock.ErrNotHeld)},
	{"unlocked", isError(rlock.ErrUnlocked)},
	{"an upgrade", isError(rlock.ErrUpgrade)},
	{"closed", isError(rlock.ErrClosed)},
	{"not confirmed", isError(rlock.ErrUnconfirmed)},
	{"no majority", isError(quorum.ErrNoMajority)},
	{"a young node", isError(quorum.ErrRestarted)},
	{"gave up", isError(context.Canceled)},
	{"no answer", func(err error) bool {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	}},
	{"connection refused", isError(syscall.ECONNREFUSED)},
	{"connection ended", func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) }},
	{"client of Redis closed", isError(redis.ErrClosed)},
	{"not sent", func(err error) bool { return strings.Contains(err.Error(), "no connection to Redis was free in time") }},
	{"no right", scripts.Denied},
	{"the server refuses", func(err error) bool {
		return redis.HasErrorPrefix(err, "READONLY") || redis.HasErrorPrefix(err, "LOADING") || redis.HasErrorPrefix(err, "OOM") || redis.HasErrorPrefix(err, "BUSY")
	}},
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// ends counts how a call, or what it has got, has ended: an error for all that it is.
func (t *tally) ends(what string, err error) {
	sorts := 0
	if err == nil {
		t.did(what + ": well")
		return
	}
	for _, sort := range sortsOfErrors {
		if sort.is(err) {
			t.did(what + ": " + sort.name)
			sorts++
		}
	}
	if sorts == 0 {
		t.did(what + ": something else")
	}
}

// trace counts what a client tells of its locks.
func (t *tally) trace() *locktrace.Trace {
	return &locktrace.Trace{
		WaitStarted: func(locktrace.WaitStarted) { t.did("wait") },
		AcquireDone: func(e locktrace.AcquireDone) {
			way := "by " + e.By.String()
			if e.By == locktrace.FromRedis && e.Contended {
				way += " after a wait"
			}
			t.did("acquire " + way)
			if e.Err == nil && e.Took > longWait {
				t.did("acquire after a long wait")
			}
			if e.By == locktrace.FromHandoff && e.Attempts > 0 {
				t.did("acquire by handoff after attempts")
			}
		},
		HoldDone: func(e locktrace.HoldDone) { t.did("hold " + e.End.String()) },
		RenewalDone: func(e locktrace.RenewalDone) {
			if e.Locks > 1 {
				t.did("renewal of several leases")
			}
			if e.Locks >= manyLeases {
				t.did("renewal of many leases")
			}
			if e.Gone > 0 {
				t.did("renewal of a hold that is gone")
			}
			t.did(map[bool]string{true: "renewal that is well", false: "renewal that fails"}[e.Failed == 0])
		},
		SubscriptionChanged: func(e locktrace.SubscriptionChanged) {
			t.did(map[bool]string{true: "subscription up", false: "subscription down"}[e.Up])
		},
		ReleaseDelayed: func(locktrace.ReleaseDelayed) { t.did("release in the background") },
		ReleaseEnded: func(e locktrace.ReleaseEnded) {
			t.did(map[bool]string{true: "its confirmation", false: "its end without one"}[e.Confirmed])
		},
	}
}

// manyLeases are many for one renewal.
const manyLeases = 6

// longWait is longer than the lease of any client.
const longWait = renewed
