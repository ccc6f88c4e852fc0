package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/observe/inspect"
)

// Leader is what is known of the process that leads.
type Leader struct {
	Client string        // the id of its client
	Name   string        // of rlock.WithPresence; "" for a client without presence
	Host   string        // of its process; "" for a client without presence
	PID    int           // of its process; 0 for a client without presence
	For    time.Duration // since its term began, as it said last; 0 for a client without presence, and for the first seconds of a term
	Token  int64         // of the term, by the last token that was given; 0 for none
}

// Who returns the process that leads the election of this name, for those who do not lead: to show it, or to send a request there. leads is
// false where nobody leads. The answer may be old when it comes: it decides nothing. Watch tells of each change. Name, Host, PID and For are those of a leader whose
// client has rlock.WithPresence.
//
// The error is ctx's own, what Redis said, or that too few servers of a quorum (inspect.NewQuorum) tell who leads.
func Who(ctx context.Context, in *inspect.Inspector, name string) (leader Leader, leads bool, err error) {
	leader, _, err = who(ctx, in, name)
	if err != nil {
		return Leader{}, false, fmt.Errorf("leader: Who %q: %w", name, err)
	}
	return leader, leader.Client != "", nil
}

// who is Who, and tells how long the lease is still.
func who(ctx context.Context, in *inspect.Inspector, name string) (leader Leader, ttl time.Duration, err error) {
	locks, err := in.Look(ctx, name)
	if err != nil {
		return Leader{}, 0, err
	}
	l := &locks[0]
	switch {
	case l.Unknown != "":
		return Leader{}, 0, errors.New(l.Unknown)
	case l.Holder == nil:
		return Leader{}, 0, nil
	}
	leader = Leader{Client: l.Holder.Client, For: l.Holder.For, Token: l.Token}
	if by := l.Holder.By; by != nil {
		leader.Name, leader.Host, leader.PID = by.Name, by.Host, by.PID
	}
	return leader, l.TTL, nil
}
