package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

var (
	// ErrNoMajority: too few nodes answered and count, so that nobody can say who has the lock. What is returned is a
	// *MajorityError, which says what each node said. From every method that asks the nodes.
	ErrNoMajority = errors.New("no majority of the nodes")
	// ErrRestarted: a node started less than the longest lease ago, and may have forgotten holds. From a node's error in
	// a *MajorityError.
	ErrRestarted = errors.New("the node has started a moment ago and may have forgotten holds")
	// ErrSameServer: two of the nodes are one server, whose vote must not count twice. From every method that asks the nodes.
	ErrSameServer = errors.New("two nodes are the same server: give each node an address of its own")
)

// ErrSplitVote: several clients asked for the lock at the same moment, each had the votes of a part of the nodes, and that
// did not change within the call's wait. It is rlock.ErrNotAcquired too: ask for the lock again, or with a longer wait.
// From acquiring calls with a wait.
var ErrSplitVote error = splitVote{}

type splitVote struct{}

func (splitVote) Error() string {
	return "not acquired: the votes were split among several clients that asked at once, and none has a majority of the nodes (a longer wait helps)"
}

func (splitVote) Is(target error) bool { return target == rlock.ErrNotAcquired }

// errSilent is a node without an answer in time.
var errSilent = errors.New("no answer in time (see WithNodeTimeout)")

// errNoUptime is a node that cannot count.
var errNoUptime = errors.New("the node does not tell since when it runs (INFO server), and cannot count: the Redis user needs INFO")

// NodeError is what one node said, or why it does not count.
type NodeError struct {
	Node string // its address
	Err  error
}

func (e *NodeError) Error() string { return e.Node + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *NodeError) Unwrap() error { return e.Err }

// MajorityError is ErrNoMajority with what the nodes said.
type MajorityError struct {
	Nodes, Need int           // how many there are, and a majority of them
	Failed      []*NodeError  // the ones that did not count
	Delay       time.Duration // how long after its start a node does not count

	nothing bool // no node can have done what it was asked to
}

func (e *MajorityError) Error() string {
	young := 0
	why := make([]string, len(e.Failed))
	for i, f := range e.Failed {
		if errors.Is(f, ErrRestarted) {
			young++
		}
		why[i] = f.Error()
	}
	text := fmt.Sprintf("no majority: %d of %d nodes answered and count, %d are needed", e.Nodes-len(e.Failed), e.Nodes, e.Need)
	if young > 0 {
		text += fmt.Sprintf("; %d of %d nodes started less than %v ago and may have forgotten holds", young, e.Nodes, e.Delay)
	}
	return text + ": " + strings.Join(why, "; ")
}

// Is makes it ErrNoMajority.
func (e *MajorityError) Is(target error) bool { return target == ErrNoMajority }

// Unwrap returns the nodes' errors.
func (e *MajorityError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// Unanswered tells whether some node may have done what it was asked to.
func (e *MajorityError) Unanswered() bool { return !e.nothing }

// Passing tells whether it may go away by itself: so many nodes could still form a majority.
func (e *MajorityError) Passing() bool {
	good := e.Nodes
	for _, f := range e.Failed {
		if !passing(f.Err) {
			good--
		}
	}
	return good >= e.Need
}

func passing(err error) bool {
	return errors.Is(err, errSilent) || errors.Is(err, ErrRestarted) || scripts.Passing(err) && !errors.Is(err, errNoUptime)
}

// sameServer is ErrSameServer with the two.
func sameServer(a, b *node) error {
	return &wrongNodes{fmt.Errorf("%w: %s and %s", ErrSameServer, a.name, b.name)}
}

// wrongNodes is an error that stays until somebody mends it.
type wrongNodes struct{ error }

func (e *wrongNodes) Unwrap() error    { return e.error }
func (e *wrongNodes) Unanswered() bool { return true } // some may have done what they were asked to
func (e *wrongNodes) Passing() bool    { return false }

// before adds to the error of a round the nodes that it did not ask, because the round before had missed them already.
func (s *store) before(e *MajorityError, first, next *round, counts func(*ask) bool) error {
	first.mu.Lock()
	defer first.mu.Unlock()
	rest := &round{asks: slices.Clone(first.asks)}
	for i, a := range next.asks {
		if a != nil {
			rest.asks[i] = nil
		}
	}
	e.Failed = append(e.Failed, s.missing(rest, counts).Failed...)
	return e
}

// missing returns the error of a round whose nodes do not make a majority.
func (s *store) missing(r *round, counts func(*ask) bool) *MajorityError {
	e := &MajorityError{Nodes: len(s.nodes), Need: s.most, Delay: s.delay}
	for _, a := range r.asks {
		if a == nil || a.state == pending || a.state == answered && counts(a) {
			continue
		}
		n := a.node
		var err error
		switch {
		case a.state == answered && a.report.Run == "":
			err = errNoUptime
		case a.state == answered && !n.counts(a.report):
			err = n.tooYoung(a.report)
		case a.state == answered:
			err = errors.New("it refused")
		case a.state == failed:
			err = a.err
		default:
			if err = n.lastTrouble(); err == nil {
				err = a.err
			}
		}
		e.Failed = append(e.Failed, &NodeError{n.name, err})
	}
	return e
}
