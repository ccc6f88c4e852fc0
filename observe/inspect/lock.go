package inspect

import (
	"slices"
	"time"
)

// Lock is what is known of one lock.
type Lock struct {
	Name    string
	Holder  *Holder       // nil: the lock is free, or Unknown says why nobody can tell
	TTL     time.Duration // until the lease ends, if it is not renewed, 100 years at most; NoExpiry for a lock that stays for ever, 0 for a free one
	Token   int64         // the last fencing token that was given, or reserved for local handoffs; 0 for none
	Waiting int           // clients in the line. Redisson's clients, and those without a right to the line, are in none
	Line    []Waiter      // the first MaxLine of them, the next one first
	Other   string        // why what stands at the lock's key is no lock, or may not be read, in words; "" for a lock. It has nothing of what stands there. "a semaphore": the locks of its slots are those of the name with a number in place of the *, and Line is who waits for any of them
	Counter string        // why the lock's counter gives no token, so that nobody can take the fenced lock, in words; "" where it does

	// Mode is "read" or "write" of a read-write lock that somebody has, and "" otherwise. In mode read, Holder is the reader whose lease ends last, and
	// TTL that lease.
	Mode    string
	Readers []Holder // those that read, MaxLine at most, whose lease ends last first. Redisson's writer may read within its own lock
	Reading int      // how many there are

	// Semaphore is the name of the semaphore, as fenced.NewSemaphore takes it, of a lock that is held as the permit of a slot, and of the name that
	// stands for all slots; "" otherwise. Slots sets it for free slots too.
	Semaphore string

	// Quorum is of how many servers the quorum is that the hold, or who waits, is of, as the ids of their clients tell; 0 for a lock of one Redis, and for one that nobody
	// has or waits for. Servers is what each server says, of an Inspector of NewQuorum. Unknown is why nobody can say who has the lock, in words; "" where the answers tell.
	Quorum  int
	Servers []ServerPart
	Unknown string
}

// IsPart tells that the lock is of a quorum that has more servers than were asked: what is shown is a part, and may be left of a hold that is over, or be
// missing here of one that others have.
func (l *Lock) IsPart() bool { return l.Quorum > max(len(l.Servers), 1) }

const (
	// NoExpiry is the TTL of a lock without an expiry.
	NoExpiry time.Duration = -1
	// MaxLine bounds Lock.Line.
	MaxLine = 100
)

// Holder is who has a lock.
type Holder struct {
	Field  string        // in Redis: <client>:<number>, of Redisson's holders <client>:<thread>
	Client string        // the client's id
	Count  int           // how often the holder has acquired the lock without unlocking it
	By     *Client       // what the client says of itself; nil for one without presence, and for Redisson's
	For    time.Duration // since the lock was acquired, as the client said last; 0 where it did not
	Token  int64         // of the hold, as the client said last; 0 where it did not
	TTL    time.Duration // of a hold that reads, as that of a Lock; 0 of another

	Lasting string // as that of a Hold: such a hold is meant to last, and is stuck only where By.Quiet
}

// Waiter is a client in the line of a lock.
type Waiter struct {
	Client string        // the client's id
	Mode   string        // "read" or "write" in the line of a read-write lock, in which a client may wait for both; otherwise ""
	By     *Client       // what the client says of itself; nil for one without presence
	Calls  int           // so many of its calls wait, as the client said last; 0 where it did not
	For    time.Duration // since the first of them waits, as the client said last; 0 where it did not

	Lasting string // as that of a Wait: such a client stands by, and its wait may be long
}

// Lasts tells that the lock is held, and that its hold is meant to last, or all those of Readers are (rlock.Lasting): others may wait for long.
func (l *Lock) Lasts() bool {
	return l.Holder != nil && l.Holder.Lasting != "" && !slices.ContainsFunc(l.Readers, func(h Holder) bool { return h.Lasting == "" })
}
