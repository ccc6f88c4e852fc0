package scripts

import (
	"context"
	_ "embed"
	"strings"
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
	//go:embed ballots.lua
	ballotsText string
	//go:embed mark.lua
	markText string

	vote     = newScript(holderText + reportText + voteText)
	extend   = newScript(holderText + reportText + extendText)
	recount  = newScript(function(levelText) + holderText + reportText + recountText)
	raise    = newScript(holderText + reportText + raiseText)
	withdraw = newScript(holderText + reportText + withdrawText)
	look     = newScript(holderText + reportText + lookText)
	mark     = newScript(markText)
	ballots  = newScript(holderText + reportText + function(voteText) + function(extendText) + function(levelText) + function(recountText) +
		function(raiseText) + function(withdrawText) + function(lookText) + ballotsText + batchText[strings.Index(batchText, "local replies"):])
)

var (
	votes     = kind{"", "vote+", "", 2, &vote, &ballots, false}
	extends   = kind{"", "extend+", "", 2, &extend, &ballots, false}
	recounts  = kind{"", "recount+", "", 4, &recount, &ballots, false}
	raises    = kind{"", "raise+", "", 3, &raise, &ballots, false}
	withdraws = kind{"withdraw", "", "", 4, &withdraw, &ballots, false}
	looks     = kind{"", "look+", "", 1, &look, &ballots, false}
)

// The operations on one server of a quorum. Each is answered with a Report. They travel with each other, not with the
// others.

// Vote takes the lock on this server for the hold of this field, or confirms that it has it here.
func Vote(keys *Keys, field string, lease time.Duration) Op {
	return Op{kind: &votes, keys: keys, fenced: true, args: [8]any{lease.Milliseconds(), field}}
}

// Extend extends the lease of the hold of this field, where it is there, or only asks with lease 0.
func Extend(keys *Keys, field string, lease time.Duration) Op {
	return Op{kind: &extends, keys: keys, fenced: true, args: [8]any{lease.Milliseconds(), field}}
}

// Recount is Level, which takes no token.
func Recount(keys *Keys, field string, lease time.Duration, count int, op int64) Op {
	return Op{kind: &recounts, keys: keys, fenced: true, args: [8]any{lease.Milliseconds(), field, count, op}}
}

// Raise proposes a token for the hold of this field: Held is true if it was accepted. The counter expires so long after
// it was used last, or never for 0.
func Raise(keys *Keys, field string, token int64, expiry time.Duration) Op {
	return Op{kind: &raises, keys: keys, fenced: true, args: [8]any{field, token, expiry.Milliseconds()}}
}

// Groups is how many groups the waiters for a lock of a quorum listen in, each on a channel of its own.
const Groups = 8

// Withdraw is Unlock, which tells the waiters only with tell: this group of them, or the next one that somebody is in; all
// of them with group -1.
func Withdraw(keys *Keys, field string, tell bool, group int) Op {
	publish := ""
	if tell {
		publish = "PUBLISH"
	}
	return Op{kind: &withdraws, keys: keys, args: [8]any{field, keys.told(), publish, group}}
}

// Look asks who has the lock, and for the count of the hold of this field.
func Look(keys *Keys, field string) Op {
	return Op{kind: &looks, keys: keys, fenced: true, args: [8]any{field}}
}

// Mark leaves the key in the server's run of this id, or takes it away where it is not to stay. done is false where the
// server is in another run.
func (s *Scripts) Mark(ctx context.Context, key, run string, stay bool) (done bool, err error) {
	reply, err := s.run(ctx, &mark, []string{key}, run, stay)
	return err == nil && reply == int64(1), err
}

// A Report is what a server of a quorum says with its answer.
type Report struct {
	Holder    string        // the field of the hold that has the lock now, "" for none
	TTL       time.Duration // of vote, extend and look: the key's expiry, or NoExpiry, NoKey
	Counter   int64
	Time      int64         // the server's, in microseconds since 1970
	Run       string        // the run id, "" where it does not tell that or its uptime
	Uptime    time.Duration // by its wall clock, cut to seconds
	Gone      bool          // the hold is not there
	Receivers int           // of withdraw: how many connections were told, -1 where the server refused to tell anybody
	Count     int           // of look: the asked hold's count,
	Change    int64         // and the number of its latest change
}

// parseReport reads what an operation on a server of a quorum returns.
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
		r.TTL = ttl(n[0])
	}
	if op.kind == &looks {
		r.Count, r.Change = int(n[7]), n[8]
	}
	return Answer{Held: verdict == 1, Report: r}, nil
}

// An Order is what an op asks for, for a store that has several servers do it.
type Order struct {
	Verb   Verb
	Keys   *Keys
	Field  string
	Fenced bool          // it takes a token
	Floor  bool          // that is at least the server's time,
	Expiry time.Duration // from a counter that expires; 0: never
	Lease  time.Duration // of Acquire and Level
	Count  int           // of Level,
	Change int64         // and its number
}

// Verb is what an op does.
type Verb int

const (
	Other Verb = iota // what needs one server
	ToAcquire
	ToLevel
	ToUnlock
)

// Order returns what the op asks for.
func (op *Op) Order() Order {
	o := Order{Keys: op.keys, Fenced: op.fenced}
	if ms, floor := op.floor.(int64); floor {
		o.Floor, o.Expiry = true, time.Duration(ms)*time.Millisecond
	}
	switch op.kind {
	case &acquires:
		o.Verb, o.Field, o.Lease = ToAcquire, op.args[1].(string), milliseconds(op.args[0])
		if op.args[2] != 1 {
			o.Verb = Other
		}
	case &levels:
		o.Verb, o.Field, o.Lease = ToLevel, op.args[1].(string), milliseconds(op.args[0])
		o.Count, o.Change = op.args[2].(int), op.args[3].(int64)
	case &unlocks:
		o.Verb, o.Field = ToUnlock, op.args[0].(string)
	}
	return o
}

func milliseconds(arg any) time.Duration { return time.Duration(arg.(int64)) * time.Millisecond }
