package scripts

import (
	"context"
	_ "embed"
	"time"
)

var (
	//go:embed report.lua
	reportText string
	//go:embed vote.lua
	voteText string
	//go:embed extend.lua
	extendText string
	//go:embed recount.lua
	recountText string
	//go:embed raise.lua
	raiseText string
	//go:embed withdraw.lua
	withdrawText string
	//go:embed look.lua
	lookText string
	//go:embed mark.lua
	markText string

	vote     = alone("vote", holderText+reportText+voteText)
	extend   = alone("extend", holderText+reportText+extendText)
	recount  = alone("recount", levelText+holderText+reportText+recountText)
	raise    = alone("raise", holderText+reportText+raiseText)
	withdraw = alone("withdraw", holderText+reportText+withdrawText)
	look     = alone("look", holderText+reportText+lookText)
	mark     = newScript(markText)
	ballots  = newBatch(holderText+reportText+voteText+extendText+levelText+recountText+raiseText+withdrawText+lookText,
		branches(&votes, &extends, &recounts, &raises, &withdraws, &looks))
)

var (
	votes     = newBallot("vote", &vote)
	extends   = newBallot("extend", &extend)
	recounts  = newBallot("recount", &recount)
	raises    = newBallot("raise", &raise)
	withdraws = newBallot("withdraw", &withdraw)
	looks     = newBallot("look", &look)
)

// newBallot is newKind for one server of a quorum.
func newBallot(name string, sc *script) kind {
	k := newKind(name, sc)
	k.ballot = true
	return k
}

// The operations from Vote to Look are for one server of a quorum. The Answer to each has a Report. These operations share
// commands with each other, and not with those of op.go.

// Vote takes the lock on this server for the hold of this field, or confirms that the hold has the lock here. Held tells
// whether it has. Vote takes no token. The lease is cut to whole milliseconds, as in all operations.
func Vote(keys *Keys, field string, lease time.Duration) Op {
	return Op{kind: &votes, keys: keys, fenced: true, request: request{lease: lease, field: field}}
}

// Extend extends the lease of the hold of this field, if the server has the hold. With lease 0 it only asks whether the
// server has the hold. A longer expiry stays.
func Extend(keys *Keys, field string, lease time.Duration) Op {
	return Op{kind: &extends, keys: keys, fenced: true, request: request{lease: lease, field: field}}
}

// Recount sets the count of the hold of this field, as Level does, and takes no token.
func Recount(keys *Keys, field string, lease time.Duration, count int, change int64) Op {
	return Op{kind: &recounts, keys: keys, fenced: true, request: request{lease: lease, field: field, count: count, change: change}}
}

// Raise proposes a token for the hold of this field. Held is true if the server accepted the token. The counter expires so
// long after it was used last, or never with expiry 0.
func Raise(keys *Keys, field string, token int64, expiry time.Duration) Op {
	return Op{kind: &raises, keys: keys, fenced: true, floored: true, request: request{field: field, token: token, expiry: expiry}}
}

// Groups is how many groups the waiters for a lock of a quorum are in. Each group listens on a channel of its own.
const Groups = 8

// Withdraw is the operation that releases the hold of this field on one server of a quorum, as Unlock does for one Redis. It
// tells the waiters only with tell: this group of them, or the next group that has somebody in it; with group -1 all groups.
func Withdraw(keys *Keys, field string, tell bool, group int) Op {
	return Op{kind: &withdraws, keys: keys, request: request{field: field, tell: tell, group: group}}
}

// Look asks which hold has the lock on this server, and for the count of the hold of this field. It changes nothing.
func Look(keys *Keys, field string) Op {
	return Op{kind: &looks, keys: keys, fenced: true, request: request{field: field}}
}

// Mark writes the key on the server if stay is true, and deletes the key otherwise, but only in the server's run with this
// id. done is false where the server is in another run, and after an error, which is go-redis's own.
func (s *Scripts) Mark(ctx context.Context, key, run string, stay bool) (done bool, err error) {
	reply, err := s.run(ctx, &mark, []string{key}, run, stay)
	return err == nil && reply == int64(1), err
}

// A Report is what a server of a quorum says with its answer.
type Report struct {
	Holder    string        // the field of the hold that has the lock now, "" for none
	TTL       time.Duration // of Vote, Extend and Look: when the lock's key expires, or NoExpiry, NoKey
	Counter   int64         // the fencing counter on this server
	Time      int64         // the server's time, in microseconds since 1970
	Run       string        // the server's run id, "" where the server does not tell that or its uptime
	Uptime    time.Duration // the server's uptime by its wall clock, cut to seconds
	Gone      bool          // the hold is not on this server
	Receivers int           // of Withdraw: how many connections were told, -1 where the server refused to tell anybody
	Count     int           // of Look: the asked hold's count,
	Change    int64         // and the number of its latest change
}

// parseReport reads the reply to an operation on one server of a quorum.
func (op *Op) parseReport(verdict int64, second any) (Answer, error) {
	list, ok := second.([]any)
	want := 7
	if op.kind == &looks {
		want = 9
	}
	if !ok || len(list) != want || verdict < -2 || verdict > 1 {
		return Answer{}, unexpected([]any{verdict, second})
	}
	holder, isText := list[1].(string)
	run, isText2 := list[5].(string)
	if !isText || !isText2 {
		return Answer{}, unexpected(second)
	}
	n := make([]int64, len(list))
	for i, v := range list {
		if i == 1 || i == 5 {
			continue
		}
		var err error
		if n[i], err = integer(v); err != nil {
			return Answer{}, err
		}
	}
	r := &Report{Holder: holder, Counter: n[2], Time: n[3]*1e6 + n[4], Run: run, Uptime: time.Duration(n[6]) * time.Second, Gone: verdict == -2}
	switch op.kind {
	case &withdraws:
		r.Receivers = int(n[0])
	case &votes, &extends, &looks:
		r.TTL = TTL(n[0])
	}
	if op.kind == &looks {
		r.Count, r.Change = int(n[7]), n[8]
	}
	return Answer{Held: verdict == 1, Report: r}, nil
}

// An Order says what an op asks for. A store of several servers reads it, and asks its servers for the same.
type Order struct {
	Verb   Verb
	Keys   *Keys
	Field  string
	Fenced bool          // the op takes a token
	Expiry time.Duration // how long after its last use the counter expires; 0: never
	Lease  time.Duration // of Acquire and Level
	Count  int           // of Level: the new count,
	Change int64         // and the number of the change
}

// Verb is what an op does. A store of several servers goes by it.
type Verb int

const (
	Other     Verb = iota // an op that only one server can do
	ToAcquire             // take the lock: Acquire
	ToLevel               // set the hold count: Level
	ToUnlock              // release the hold: Unlock
)

// Order returns what the op asks for.
func (op *Op) Order() Order {
	o := Order{
		Keys: op.keys, Field: op.field, Fenced: op.fenced, Expiry: op.expiry,
		Lease: op.lease.Truncate(time.Millisecond), Count: op.count, Change: op.change,
	}
	switch {
	case op.kind == &acquires:
		o.Verb = ToAcquire
	case op.kind == &levels:
		o.Verb = ToLevel
	case op.kind == &unlocks:
		o.Verb = ToUnlock
	}
	return o
}
