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
	//go:embed vote_in_turn.lua
	voteInTurnText string
	//go:embed vote_outside.lua
	voteOutsideText string
	//go:embed proposal.lua
	proposalText string
	//go:embed extend.lua
	extendText string
	//go:embed recount.lua
	recountText string
	//go:embed raise.lua
	raiseText string
	//go:embed withdraw.lua
	withdrawText string
	//go:embed withdraw_in_line.lua
	withdrawInLineText string
	//go:embed look.lua
	lookText string
	//go:embed mark.lua
	markText string
	//go:embed set_members.lua
	setMembersText string
	//go:embed renew_node.lua
	renewNodeText string

	votesText    = holderText + reportText + proposalText + voteText
	turnsText    = tokenText + lineText + acquireText + turnText + voteInTurnText
	releasesText = lineText + unlockText + releaseText

	vote           = alone("vote", votesText)
	voteInTurn     = alone("voteInTurn", votesText+turnsText)
	voteOutside    = alone("voteOutside", votesText+turnsText+voteOutsideText)
	extend         = alone("extend", holderText+reportText+extendText)
	recount        = alone("recount", levelText+holderText+reportText+recountText)
	raise          = alone("raise", holderText+reportText+proposalText+raiseText)
	withdraw       = alone("withdraw", holderText+reportText+unlockText+withdrawText)
	withdrawInLine = alone("withdrawInLine", holderText+reportText+releasesText+withdrawText+withdrawInLineText)
	look           = alone("look", holderText+reportText+lookText)
	mark           = newScript(markText)
	setMembers     = newScript(setMembersText)
	renewNode      = newScript(holderText + reportText + renewText + renewEachText + renewNodeText)
	ballots        = newBatch(votesText+turnsText+voteOutsideText+extendText+levelText+recountText+raiseText+unlockText+releaseText+oneText+leaveText+waitingText+withdrawText+withdrawInLineText+lookText,
		branches(&votesOutside, &withdrawsForNewcomers, &votesInTurn, &withdrawsInLine, &votes, &extends, &recounts, &raises, &withdraws, &looks, &leavesNode, &waitingsNode))
)

var (
	votes                 = newBallot("vote", &vote)
	votesInTurn           = newBallot("turn", &voteInTurn).or(&votes)
	votesOutside          = newBallot("outside", &voteOutside).or(&votes)
	extends               = newBallot("extend", &extend)
	recounts              = newBallot("recount", &recount)
	raises                = newBallot("raise", &raise)
	withdraws             = newBallot("withdraw", &withdraw)
	withdrawsInLine       = newBallot("calling", &withdrawInLine).or(&withdraws)
	withdrawsForNewcomers = newBallot("newcomers", &withdrawInLine, "again", "known").or(&withdraws)
	looks                 = newBallot("look", &look)
	leavesNode            = newBallot("leave", &leave).does(ToLeave)
	waitingsNode          = newBallot("waiting", &lineLen).does(ToCount)
)

// newBallot is newKind for one server of a quorum.
func newBallot(name string, sc *script, left ...string) kind {
	k := newKind(Other, name, sc, left...)
	k.ballot = true
	return k
}

// does returns the kind, which does what this verb says on one server as well.
func (k kind) does(verb Verb) kind {
	k.verb = verb
	return k
}

// The operations from Vote to Look are for one server of a quorum. The Answer to each has a Report. These operations share
// commands with each other, and not with those of op.go.

// Vote takes the lock on this server for the hold of this field, or confirms that the hold has the lock here. Held tells
// whether it has. Vote takes no token, unless it is Proposing one. The lease is cut to whole milliseconds, as in all operations.
func Vote(keys *Keys, field string, lease time.Duration) Op {
	return Op{kind: &votes, keys: keys, fenced: true, request: request{lease: lease, field: field}}
}

// A Proposal is what a server of a quorum may take as the token of a hold, in the step in which it takes the lock for the hold. With
// TakingTokens it is the last of these.
type Proposal struct {
	Token  int64         // for a server that has a counter
	First  int64         // for a server that has none
	Ahead  time.Duration // the least that First is ahead of that server's time
	Slack  time.Duration // the most that either is ahead beyond that
	Expiry time.Duration // of the counter, as in Raise
}

// Proposing is the vote, with this proposal. Report.Took tells whether the server took it.
func (op Op) Proposing(p Proposal) Op {
	op.floored, op.token, op.expiry, op.offer = true, p.Token, p.Expiry, p
	return op
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

// Raise proposes a token for the hold of this field. Held is true if the server accepted the token. A server without a counter
// accepts none but with anew: the token is so far ahead of the time that it is larger than a counter that was forgotten. The counter expires so
// long after it was used last, or never with expiry 0.
func Raise(keys *Keys, field string, token int64, anew bool, expiry time.Duration) Op {
	return Op{kind: &raises, keys: keys, fenced: true, floored: true, request: request{field: field, token: token, anew: anew, expiry: expiry}}
}

// InLine returns the vote as one on the home of the lock: this server has the line, and takes the lock for the hold only if no other client is
// before this one in the line. If it does not take the lock, the client enters the line with its ticket. Answer.Before, Score and
// Head are as of an Acquire in turn.
func (op Op) InLine(t Turn) Op {
	op.kind, op.turn = &votesInTurn, t
	if t.outside() {
		op.kind = &votesOutside
	}
	return op
}

// Dropping returns the vote as one that may drop the hold of this field, which its holder has given up, where its release has not arrived
// yet. The field "" is of none.
func (op Op) Dropping(gone string) Op {
	op.turn.Gone = gone
	return op
}

// Withdraw is the operation that releases the hold of this field on one server of a quorum, as Unlock does for one Redis. With tell those
// who listen on the lock's channel are told.
func Withdraw(keys *Keys, field string, tell bool) Op {
	return Op{kind: &withdraws, keys: keys, request: request{field: field, tell: tell}}
}

// CallingInLine returns the op, a Withdraw, as one that calls the first client in this server's line, as Op.Calling says. The client that is
// called is told the hold's field, unless known is [NotTheHolder], and the latest token that this client knows.
func (op Op) CallingInLine(again string, known int, token int64) Op {
	op.kind, op.turn.Ticket, op.known, op.token = &withdrawsInLine, again, known, token
	return op
}

// CallingNewcomersInLine returns the op, a Withdraw, as one that calls the first client in this server's line if any has entered since the
// hold took the lock here. The token is as in CallingInLine.
func (op Op) CallingNewcomersInLine(token int64) Op {
	op.kind, op.token = &withdrawsForNewcomers, token
	return op
}

// LeaveNode is Leave on one server of a quorum. Its Answer has no Report.
func LeaveNode(keys *Keys, ticket string) Op {
	return Op{kind: &leavesNode, keys: keys, request: request{turn: Turn{Ticket: ticket}}}
}

// WaitingOnNode is Waiting on one server of a quorum. Its Answer has no Report.
func WaitingOnNode(keys *Keys) Op { return Op{kind: &waitingsNode, keys: keys} }

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

// SetMembers writes a record of the quorum's members on the server, at key, in place of the record before it, "" for none. done is false where
// the server has another record than that, and after an error, which is go-redis's own.
func (s *Scripts) SetMembers(ctx context.Context, key, before, record string) (done bool, err error) {
	reply, err := s.run(ctx, &setMembers, []string{key}, before, record)
	return err == nil && reply == int64(1), err
}

// A Report is what a server of a quorum says with its answer.
type Report struct {
	Holder    string        // the field of the hold that has the lock now, "" for none
	TTL       time.Duration // of Vote, Extend and Look: when the lock's key expires, or NoExpiry, NoKey
	Counter   int64         // the fencing counter on this server
	Took      bool          // of Vote: with the lock the hold has got its token here, which is the counter
	Time      int64         // the server's time, in microseconds since 1970
	Run       string        // the server's run id, "" where the server does not tell that or its uptime
	NoRun     string        // where Run is "": the words in which the server refuses to tell it, "" where it has answered
	Uptime    time.Duration // the server's uptime by its wall clock, cut to seconds
	Members   string        // the server's record of the quorum's members, "" where it has none, or tells none
	Gone      bool          // the hold is not on this server
	Receivers int           // of Withdraw: how many connections were told, -1 where the server refused to tell anybody
	Count     int           // of Look: the asked hold's count,
	Change    int64         // and the number of its latest change
}

// parseReport reads the reply to an operation on one server of a quorum.
func (op *Op) parseReport(verdict int64, second any) (Answer, error) {
	list, ok := second.([]any)
	want, head := reportLen, ""
	switch {
	case op.kind == &looks, op.kind.script == &withdraw, op.kind.script == &withdrawInLine:
		want = 10
	case verdict == 0 && len(list) == 11 && (op.kind == &votesInTurn || op.kind == &votesOutside):
		head, ok = list[10].(string)
		list, want = list[:10], 10
	}
	if !ok || len(list) != want || verdict < -2 || verdict > 2 {
		return Answer{}, unexpected([]any{verdict, second})
	}
	r, n, err := readReport(list)
	if err != nil {
		return Answer{}, err
	}
	if n[0], err = integer(list[0]); err != nil {
		return Answer{}, err
	}
	r.Took, r.Gone = verdict == 2, verdict == -2
	a := Answer{Held: verdict > 0, Report: r, Before: NotInLine}
	switch op.kind {
	case &withdraws, &withdrawsInLine, &withdrawsForNewcomers:
		r.Receivers, a.More, a.Score = int(n[0]), n[8] == boundReached, n[9]
	case &votesInTurn, &votesOutside:
		if want == 10 {
			a.Before, a.Score, a.Head = int(n[8]), n[9], head
		}
		fallthrough
	case &votes, &extends:
		r.TTL = TTL(n[0])
	case &looks:
		r.TTL, r.Count, r.Change = TTL(n[0]), int(n[8]), n[9]
	}
	a.TTL = r.TTL
	return a, nil
}

// reportLen is how many elements a report has, before those of some operations.
const reportLen = 8

// readReport reads a list that begins with a report. n has the numbers in the list, but the first element, which is not read.
func readReport(list []any) (r *Report, n []int64, err error) {
	holder, isText := list[1].(string)
	run, isText2 := list[5].(string)
	members, isText3 := list[7].(string)
	if !isText || !isText2 || !isText3 {
		return nil, nil, unexpected(list)
	}
	words, noRun := list[6].(string)
	noRun = noRun && run == ""
	n = make([]int64, len(list))
	for i, v := range list {
		if i == 0 || i == 1 || i == 5 || i == 6 && noRun || i == 7 {
			continue
		}
		if n[i], err = integer(v); err != nil {
			return nil, nil, err
		}
	}
	r = &Report{Holder: holder, Counter: n[2], Time: n[3]*1e6 + n[4], Run: run, Uptime: time.Duration(n[6]) * time.Second, Members: members}
	if noRun {
		r.NoRun = words
	}
	return r, n, nil
}

// An Order says what an op asks for. A store of several servers reads it, and asks its servers for the same.
type Order struct {
	Verb   Verb
	Keys   *Keys
	Field  string
	Fenced bool          // the op takes a token,
	Tokens int           // or so many in a row; 0 for one
	Expiry time.Duration // how long after its last use the counter expires; 0: never
	Lease  time.Duration // of Acquire and Level
	Count  int           // of Level: the new count,
	Change int64         // and the number of the change

	Lined     bool // the op uses the line
	Newcomers bool // of an Unlock: it calls only who has entered the line since the hold took the lock
	Turn      Turn // of an Acquire in turn; of Leave and of an Unlock: Ticket
	Known     int  // of an Unlock: see Op.Calling

	Within time.Duration // of an Acquire: for how long the answer is waited for; 0 where that is as long as it takes
}

// Verb is what an op does. A store of several servers goes by it.
type Verb int

const (
	Other     Verb = iota // an op that only one server can do
	ToAcquire             // take the lock: Acquire
	ToLevel               // set the hold count: Level
	ToUnlock              // release the hold: Unlock
	ToLeave               // take a ticket out of the line, and call: Leave
	ToCount               // count the clients in the line: Waiting
)

// Order returns what the op asks for.
func (op *Op) Order() Order {
	return Order{
		Verb: op.kind.verb, Keys: op.keys, Field: op.field, Fenced: op.fenced, Tokens: op.tokens, Expiry: op.expiry,
		Lease: op.lease.Truncate(time.Millisecond), Count: op.count, Change: op.change,
		Lined: op.kind.lined, Newcomers: op.kind == &unlocksForNewcomers, Turn: op.turn, Known: op.known, Within: op.within,
	}
}
