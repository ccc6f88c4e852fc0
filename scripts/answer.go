package scripts

import (
	"time"
)

// An Answer is what an operation says.
type Answer struct {
	Held      bool          // the hold has the lock; of an Unlock: the hold had the lock, and is released
	Token     int64         // the last token that was taken, 0 without a counter
	Tokens    int           // of several servers: how many were taken, which may be fewer than were asked for; 0: as many
	TTL       time.Duration // where another holder has the lock: how long at most, or NoExpiry; NoKey where it is another client's turn
	Receivers int           // of an Unlock: how many connections were told, as far as the server knows
	Untold    bool          // of an Unlock: the server refused to tell anybody
	Why       error         // why the lock was not taken, where no other holder is the reason
	Own       string        // of an op that another hold kept from taking, or from finding, the lock: that one's field, where it is of the same client
	Owed      bool          // of several servers: a release is owed, because some may have the hold still, or take it late
	Unheard   bool          // of a release on several servers: some that it was for have not answered
	Report    *Report       // of a server of a quorum
	Copies    time.Duration // for how long other copies of the op, which have no answer, may be executed still; 0: there are none

	Before  int     // of an Acquire in turn that did not take the lock: how many clients are before this one, at most 2, or NotInLine; of Waiting: how many clients are in the line
	Score   int64   // of the same, and of an Unlock that entered the line again: that of the client in the line; 0 for none
	Head    string  // of the same Acquire, where the lock is free: the ticket of the first client in the line. Where others read, and the client that asks to read is the second: that of the first, which was asked for a sign of life (P55)
	More    bool    // of an Unlock, and of Leave: there may be more clients to call, by Leave with no ticket
	Stays   bool    // of Leave: the user may not take the ticket out of the line
	Outside Refusal // why the op was done without the line; 0 where it was not
	Slot    int     // of an Acquire of a permit: the slot that was taken
}

// A Refusal is why an op was done without the line.
type Refusal uint8

const (
	Forbidden Refusal = iota + 1 // the user lacks a right to it (P30)
	Renamed                      // the server has seen another name of the line than the one that was sent (P30)
	Uncounted                    // the server does not count this client among those who listen (P33)
)

// NotInLine is Answer.Before of a client that is not in the line.
const NotInLine = -1

// parse reads the reply to an op that went alone.
func (op *Op) parse(reply any, err error) (Answer, error) {
	if err != nil {
		return Answer{}, explain(op.keys, err)
	}
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return Answer{}, unexpected(reply)
	}
	return op.parsePair(pair[0], pair[1])
}
