package leader

import (
	"context"
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
// false where nobody leads. The answer may be old when it comes: it decides nothing. Name, Host, PID and For are those of a leader whose client
// has rlock.WithPresence. Of a quorum Who tells what the server of the inspector has.
//
// The error is ctx's own, or what Redis said.
func Who(ctx context.Context, in *inspect.Inspector, name string) (leader Leader, leads bool, err error) {
	locks, err := in.Look(ctx, name)
	if err != nil {
		return Leader{}, false, fmt.Errorf("leader: Who %q: %w", name, err)
	}
	h := locks[0].Holder
	if h == nil {
		return Leader{}, false, nil
	}
	leader = Leader{Client: h.Client, For: h.For, Token: locks[0].Token}
	if by := h.By; by != nil {
		leader.Name, leader.Host, leader.PID = by.Name, by.Host, by.PID
	}
	return leader, true, nil
}
