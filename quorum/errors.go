package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

var (
	// ErrNoMajority says that too few nodes answered and count, so that nobody can say who has the lock. The error that is
	// returned is a *MajorityError, which has each node's error. Every method that asks the nodes may return it.
	ErrNoMajority = errors.New("no majority of the nodes")
	// ErrRestarted says that a node started less than the longest lease ago, and may have forgotten holds. It is the error of a
	// node in a *MajorityError.
	ErrRestarted = errors.New("the node has started a moment ago and may have forgotten holds")
	// ErrSameServer says that two of the nodes are one server, whose vote must not count twice. New returns it, and every method
	// that asks the nodes may.
	ErrSameServer = errors.New("two nodes are the same server: give each node an address of its own")
)

// ErrSplitVote says that several clients asked for the lock at the same moment, that each had the votes of a part of the nodes, and
// that this did not change within the call's wait, or within a second where the call does not wait. It is rlock.ErrNotAcquired too, by errors.Is: ask for the lock again, or with a
// longer wait. Acquiring calls return it.
var ErrSplitVote error = splitVote{}

type splitVote struct{}

func (splitVote) Error() string {
	return "not acquired: the votes were split among several clients that asked at once, and none has a majority of the nodes (a longer wait helps)"
}

func (splitVote) Is(target error) bool { return target == rlock.ErrNotAcquired }

// errSilent is the error of a node that has not answered in time.
var errSilent = fmt.Errorf("%w (see WithNodeTimeout)", plain.ErrSilent)

// errNotYet is the error of a node whose answer was not waited for any longer.
var errNotYet = errors.New("it had not answered yet when the others had")

// errLeft is the error of a node that has an earlier attempt of this client.
var errLeft = errors.New("it had not released an earlier attempt of this client yet")

// errForcedOpen is the error of an attempt whose call does not wait: it asks again, and nobody is known to have the lock.
var errForcedOpen = errors.New("a node had released the hold before it had its token")

// errUnasked is the error of a node that was not asked.
var errUnasked = errors.New("it was not asked")

// A noRun is the error of a node that does not tell its run, and so never counts: the words in which it refuses INFO in a script, "" where it answers.
type noRun string

func (said noRun) Error() string {
	why := "it refuses INFO in a script (%s): such an engine cannot be a node"
	switch words := strings.ToLower(string(said)); {
	case said == "":
		why = "INFO server has no run_id, or no uptime_in_seconds, in its answer%s: such an engine cannot be a node"
	case scripts.Denied(errors.New(string(said))):
		why = "the Redis user needs INFO (%s)"
	case strings.Contains(words, "unknown"):
		why = "it does not know INFO (%s): end its rename-command, or connect to the server itself where a proxy takes INFO away"
	}
	return "the node does not tell since when it runs, and cannot count: " + fmt.Sprintf(why, string(said))
}

// A noMember is the error of a node that is none of the quorum's: the names of those that are.
type noMember string

func (nodes noMember) Error() string {
	return "it is none of the quorum's nodes, which are " + string(nodes) + ": `fencelock quorum` changes them"
}

// NodeError is the error of one node: the one that Redis or the network returned, or why the node does not count.
type NodeError struct {
	Node string // the node's address
	Err  error  // what is wrong with the node

	unasked bool // the node was not asked, and its answer was not needed
}

// Error returns the address and the error.
func (e *NodeError) Error() string { return e.Node + ": " + e.Err.Error() }

// Unwrap returns e.Err, so that errors.Is and errors.As find what the node said.
func (e *NodeError) Unwrap() error { return e.Err }

// MajorityError is ErrNoMajority, by errors.Is, with the error of each node that did not count.
type MajorityError struct {
	Nodes, Need int           // how many nodes there are, and how many are a majority
	Failed      []*NodeError  // the nodes that did not answer, refused, or do not count
	Delay       time.Duration // how long after its start a node does not count

	nothing bool // no node can have done, or do late, what it was asked to
}

// Error returns how many nodes answered and count, and each other node's error.
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

// Is tells that the error is ErrNoMajority, and context.DeadlineExceeded where so many nodes were silent that the others are no majority, as the error of a
// call is to which one Redis gives no answer.
func (e *MajorityError) Is(target error) bool {
	if target != context.DeadlineExceeded {
		return target == ErrNoMajority
	}
	heard := e.Nodes
	for _, f := range e.Failed {
		if errors.Is(f, errSilent) {
			heard--
		}
	}
	return heard < e.Need
}

// Unwrap returns the nodes' errors.
func (e *MajorityError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// Unanswered tells whether some node may have done what it was asked to, or may do so late.
func (e *MajorityError) Unanswered() bool { return !e.nothing }

// Passing tells whether the error may go away by itself: without the nodes whose errors stay until somebody mends them, a majority
// is left.
func (e *MajorityError) Passing() bool {
	good := e.Nodes
	for _, f := range e.Failed {
		if !f.unasked && !mayPass(f.Err) {
			good--
		}
	}
	return good >= e.Need
}

// mayPass tells whether a node's error may go away by itself.
func mayPass(err error) bool {
	var never noRun
	var stranger noMember
	return errors.Is(err, errSilent) || errors.Is(err, errNotYet) || errors.Is(err, ErrRestarted) || scripts.Passing(err) && !errors.As(err, &never) && !errors.As(err, &stranger)
}

// sameServer returns ErrSameServer with the names of the two nodes.
func sameServer(a, b *node) error {
	return &wrongNodes{fmt.Errorf("%w: %s and %s", ErrSameServer, a.name, b.name)}
}

// wrongNodes is an error of the nodes that stays until somebody mends it.
type wrongNodes struct{ error }

func (e *wrongNodes) Unwrap() error    { return e.error }
func (e *wrongNodes) Unanswered() bool { return true } // some node may have done what it was asked to
func (e *wrongNodes) Passing() bool    { return false }

// withEarlierRound adds to e, the error of the round next, the errors of nodes that next did not ask because they did not count in
// the round first.
func (s *store) withEarlierRound(e *MajorityError, first, next *round, counts func(*ask) bool) error {
	first.mu.Lock()
	defer first.mu.Unlock()
	rest := &round{asks: slices.Clone(first.asks)}
	for i, a := range next.asks {
		if a != nil {
			rest.asks[i] = nil
		}
	}
	e.Failed = append(e.Failed, s.majorityError(rest, counts).Failed...)
	return e
}

// addUnasked adds the nodes that the round did not ask, and why, where that is known.
func (e *MajorityError) addUnasked(nodes []*node, r *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range nodes {
		if r.asks[i] == nil {
			e.Failed = append(e.Failed, &NodeError{Node: n.name, Err: cmp.Or(n.lastTrouble(), errUnasked), unasked: true})
		}
	}
}

// majorityError returns the error of a round without a majority. Its nodes are those that have not answered, and those whose answer
// is none with counts. With r.mu held: an answer that comes late changes what the round has.
func (s *store) majorityError(r *round, counts func(*ask) bool) *MajorityError {
	e := &MajorityError{Nodes: len(s.nodes), Need: s.majority(), Delay: s.delay}
	for _, a := range r.asks {
		if a == nil || a.state == answered && counts(a) {
			continue
		}
		n := a.node
		var err error
		switch stranded := n.stranded(); {
		case stranded != nil:
			err = stranded
		case a.state == answered && a.report.Run == "":
			err = noRun(a.report.NoRun)
		case a.state == answered && !n.counts(a.report):
			err = n.tooYoung(a.report)
		case a.state == answered && s.givenUp(a.report.Holder):
			err = errLeft
		case a.state == answered:
			err = errors.New("it refused")
		case a.state == failed:
			err = a.err
		default:
			if err = n.lastTrouble(); err == nil && a.state == pending {
				err = errNotYet
			} else if err == nil {
				err = errSilent
			}
		}
		e.Failed = append(e.Failed, &NodeError{Node: n.name, Err: err})
	}
	return e
}
