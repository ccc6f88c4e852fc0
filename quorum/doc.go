// Package quorum is the lock of package fenced on several Redis servers that know nothing of each other. Whoever has a
// majority of the servers has the lock, so that the lock outlasts the loss of a minority. The algorithm is Redlock, of the Redis
// documentation ("Distributed Locks with Redis"), with two things that this leaves to the reader: the delayed restart, and
// fencing tokens. A server is called a node below.
//
//	client, err := quorum.New([]redis.UniversalClient{a, b, c, d, e})
//	lock := fenced.NewLock(client, "account:42")
//	held, token, err := lock.TryLockAndGetToken(ctx, 3*time.Second, 0)
//
// Package rlock says what a holder is, how contexts end, and what Unlock, Do and the errors say; all of that holds here too.
//
// # How the lock is taken
//
// The client asks a majority of the nodes to take the lock for one field, a number that belongs to this attempt alone, and for a token with
// it (see below): these nodes are the first in an order that follows from the lock's name and the nodes' addresses. Give all clients the same
// addresses. Where a node refuses or fails the client asks another one in its place, and where one is slow, all the others: after four times
// what an answer of the majority takes, and 5 ms. Each node has a time that is small against the lease (WithNodeTimeout). When a majority has
// said yes and has the token the lock is held. Where the nodes did not accept the token that came with the vote, a second round proposes
// one to them. The hold's deadline counts from before the first command was sent; the nodes keep the lock for longer than the hold's context
// lives, by a percent of the lease and 2 ms, for clocks that run at different speeds. An attempt that fails is released on every node that
// may have taken it, also on nodes that did not answer, again and again until it cannot matter. The next attempt has another field.
//
// A hold that is 10 ms old is put on the other nodes too, and renewals go to all. So a shorter hold lives on a majority of the nodes
// and no more. A node that dies with it costs nothing: it has to be up for longer than the lease before its vote counts again. But if one
// of them forgets the hold while it runs (FLUSHALL, DEL, an eviction), which the assumptions below exclude, others may take the lock; with all
// five nodes it would take three that forget. WithAllNodes asks all nodes from the start.
//
// A node that does not answer this client, does not count, or is much farther away than most is asked last, and about once a second how it
// is. A client that has not heard of each node yet asks the first one alone, and then the others: of hundreds that begin at the same moment one
// is ahead. All of this is a matter of speed: a majority decides in any case.
//
// Clients that wait for a lock stand in a line, as with one Redis (docs/line.md). The line is on one node, the home of the lock: the first
// in the order above. A client that waits asks the home alone, and sleeps until it is called: a release calls the first in the line, which then
// asks a majority at once. So one client is ahead of all others, the votes are not split, and a lock that many want costs the same whether four
// wait or a hundred. The home's no ends an attempt. But the hold that the home has may be on a minority of the nodes, left by a program that ended before
// its release had come to all: a call that does not wait, and the first in the line after 20 ms, ask the others too, and may get a majority of those.
// The line is a matter of speed, too: it says who comes first, and a majority decides.
//
// The call names the hold that was released. A node to which the release has not come yet drops that hold for the called client, as
// the release would. The hold's own client alone names it, when it has given the hold up on all nodes: after that it asks no node to take or to extend
// the lock for that hold, and a vote that comes late has no effect but to be released. So it is as if the called client had brought
// the release. Such a node says to the release that it has released the hold, and Unlock does not take the hold for lost. The same
// rules are those of a client's own next acquire after its Unlock.
//
// Where clients see different homes, or the home is not there, several callers may have each a part of the nodes. They try again
// after a random time, which doubles from one time to the next (WithRetryDelay); a call whose wait ends meanwhile gets ErrSplitVote. A client that finds the
// owner of the lock on other nodes, and the home free, waits in the line of one of those nodes. A client that has heard nothing for a while looks, and
// the second time it asks other nodes too. The poll interval bounds how long that takes.
//
// A call that does not wait is told that another has the lock where a majority says so. Where nobody has a majority it asks again, for a second
// at most, and then returns ErrSplitVote if another client has some node, and otherwise a *MajorityError, which names the nodes that have not answered, or
// do not count. Between the goroutines of a process there are local handoffs alone
// (rlock.WithLocalHandoffs): each holder of a series relies on what the nodes have confirmed to the first.
//
// A renewal counts when a majority has confirmed it. On a node that has lost the hold, or never had it, the renewal takes
// the lock for it anew, if it is free there; but not where a majority has released it, so that a ForceUnlock stays one. Hundreds of holds are
// renewed by one command to each node, which may take a quarter of the lease where the others are no majority. IsLocked,
// HoldCount and TTL go by who has a majority; TTL is the time until that is lost.
//
// # Why two holds do not overlap
//
// Assumptions: a node that runs keeps what it was told; it keeps a lease for as long as it says, by a clock that runs at
// the holder's speed, give or take a percent; its clock is not set. The first one does not hold for a node that restarts: it may
// come back empty, or with an old snapshot. Therefore a node does not count, neither for a vote nor for a renewal, a
// re-entry or a token, before it has been up for longer than the longest lease (WithMaxLease) and a second more, called the
// delay below: the second is there because uptime is told in whole seconds. The uptime comes from the node itself, in the same
// atomic step as its answer, by INFO in the script. No other way is as good: where a server refuses that, as Redis Software does, what answers
// INFO outside of a script, also beside it in one MULTI, may be a proxy, which goes on when what keeps the lock has failed over and forgotten. One
// without run_id, such as Dragonfly, may have started twice between two answers. So neither can be a node. A node that does not count yet is asked
// and told everything all the same.
//
// Redis counts its uptime by its wall clock, and has no other. A client therefore believes what it has seen more than the
// uptime, by its monotonic clock: a node whose run before it has heard from less than the delay ago is young, and one whose
// run it has heard from for longer than that is not. An uptime is false that is longer than the time since the run before was
// heard from, or that grows faster than time does, by more than a percent and a second: the node's clock has stepped, or
// another server has its address. Then the node counts when the client has heard from it for the delay. Where the client's own
// machine was suspended, so that its monotonic clock stood still, a true uptime may seem false: that costs the delay, and no more.
// What is left is a node that starts with a clock that is behind, and whose clock is set right while it is young: a client
// takes it for old that has not heard from it between the start and the step, nor, before the start, for as long as the step
// is. Start Redis when the clock has been set (systemd: After=time-sync.target). A clock that is set back behind the server's
// start makes its uptime negative: the node does not count for a client before that has heard from it for the delay.
//
// That is enough. Let A's hold rest on its latest confirmation, by a majority Q of nodes that counted, sent at time s with
// the lease L: A trusts it until some time before s+L. Let B get a majority R of nodes that counted. Some node j is in
// both. If B's vote came to j after A's confirmation, and j said yes, then A's field was gone from j: A or a ForceUnlock had
// released it; or its lease was over there, after s+L; or j had restarted since, and as it counted, longer ago than any
// lease, so that s+L was over. If it came before, then B's field was gone from j when A's came: B had given it up, and an attempt
// that is given up never becomes a hold; or its lease was over there, and with it B's own trust, which counts from
// before the vote; or j had restarted in between, and as it counted for A, longer ago than any lease. In no case do both
// trust their holds at the same time. The same holds for A's field that j took anew in a renewal: it is a vote as any other.
//
// A node whose every command is on disk before it is answered (appendonly yes, appendfsync always, no-appendfsync-on-rewrite no)
// loses nothing by a restart and counts at once. The node must prove that it does so: by that configuration, which the Redis user
// must be allowed to read (CONFIG GET), and by a key (fencelock:quorum) that a run before has left there, and that an empty disk
// has not got. The key is written by this package, into the database that the node's client has selected; without the right to it
// (GET, SET, DEL) the node counts after its delay. The proof does not notice a disk that was put back to an older state, nor a file
// that Redis finds again after it ran without that file: delete the key before appendonly or appendfsync are changed, or keep such
// a node away for the longest lease.
//
// # When nodes change
//
// Two majorities share a node only where all clients go by the same nodes. Which these are is said by the nodes, and not by what a client was given: a
// client may be given other nodes than others for a while.
//
//	M1 Each node has a record of the members (fencelock:quorum:members): a generation, a size, and names, which are the nodes' addresses, with the
//	   database where that is not 0. A node tells its record in the step of each answer.
//	M2 A client goes by the newest record that it has heard of, also of votes that came before that. A node whose name the record has is a member, and one that
//	   had this record, where a client has another name for it. Others do not count. A majority is one of the record's size.
//	M3 Whoever changes the members writes generations each of whose majorities share a node with those of the one before, on all members, and waits
//	   for the delay after each but the clients' own first one. The generations of a change have numbers from the time in seconds when it began, so that they
//	   are later than what a change that was interrupted has left on a node that comes back, or with a client that stood still. A change ends where any node tells
//	   a generation that the change does not know. The command "fencelock quorum" does so.
//	M4 Where each of a client's nodes has told that it has no record, the client writes the first generation on them, some seconds later. A member that has an
//	   older record, or none, gets the newest. Before any node has told a record the client takes no lock until each has answered, or has not in time.
//
// That is enough. A majority that a client counts has no node that tells a later generation than the one it is of. When a generation is on all its members,
// each majority of the one before has such a node. So nobody counts one any more, and after the delay no hold rests on one: then the generation after it may
// begin. At any time holds rest on majorities of one generation, or of two that follow each other, and any two of these share a node, which decides as above.
// Two tokens whose majorities share none are apart by the delay, more than clocks may differ.
//
// What breaks it: so many nodes that lose their record at once that a majority of an old generation has none with a newer one, or that a client hears of no
// record, as its other nodes are new or do not answer it; a new node that begins with a copy of a member's data, which passes for that member under another name;
// clients without these rules, of an earlier version. Where the Redis user may not read the key a client goes by its own nodes.
//
// A quorum that was started as a whole takes no lock until its nodes are old enough. The error says so: a
// *MajorityError, ErrRestarted for each such node.
//
// # Tokens
//
// Redlock has no tokens, and its author's answer to that (a random value, checked and set) orders nothing. Here each node has the
// counter of the lock, the largest token that this node has accepted. Below L is the longest lease, D the delay, s is L/16, a is D/4 and s,
// and now is the node's own clock, in microseconds since 1970.
//
// In one round. The vote carries two numbers: p1 for a node that has a counter, and p2 for one that has none.
//
//	T1 A node looks at them only in the step in which it takes the lock for the field. A second copy of the vote takes no token.
//	T2 A node with a counter takes p1 if p1 is larger than the counter, and at least now, and at most now + s, or the counter and 1.
//	T3 A node without a counter takes p2 if that is from now + a to now + a + s. It never takes p1.
//	T4 Taking sets the counter in the same step. A node that takes neither votes all the same, and tells its counter and its clock.
//	T5 A token counts when a majority of nodes that count took the same number. Who took p1 and who took p2 are not added up.
//	T6 The client's number is the middle one of the nodes' clocks, of three at least, of two with the client's own, and s/2: as p1, or the
//	   largest counter that it knows and 1; and with a on top as p2. A client that does not know the clocks proposes nothing.
//
// In a second round, where that gave no token:
//
//	T7 The client proposes one more than the largest counter that a majority told of, and at least the middle one of their clocks; and a more
//	   than that if one of them had no counter, also if that one took p2 with its vote. The proposal goes to all that have voted; to one that
//	   voted too late for the number, and had no counter, only if a is in it. A node accepts a proposal from the hold that has the lock
//	   there, if it is larger than its counter; a node without a counter only if a is in it, as the client says with it.
//
// And where calls wait whose holds may follow within the process (rlock.WithLocalHandoffs):
//
//	T8 A number in the first round may be the last one of several tokens in a row. Of the first of them T2 and T3 ask what a number is to be at
//	   least, of the last what it is to be at most; up to 33 may follow a counter that is ahead. T4 sets the counter to the last. A second
//	   round gives one token.
//
// Each attempt proposes a number to a node once, and an answer that does not come counts as a refusal; where nodes refuse because they know a
// larger number, a larger one is proposed. Tokens are numbers of 16 digits, and fenced.WithClockFloor changes nothing here. A re-entry takes its
// token in the second way.
//
// Tokens of completed acquires, each of several in a row, are unique, and grow strictly: if Y's acquire began after X's was complete, Y's
// token is larger. There are two reasons, of which each is enough.
//
// The counters. Any two majorities share a node. Let that have kept its data. It takes and accepts only what is larger than its counter. So
// X and Y have not the same number. And if Y began after X was complete, that node had X's token in its counter before a number of
// Y came there, so that what it took from Y is larger. No clock is in this, and nothing of how a client came to its numbers.
//
// The clocks. Let every node that is shared have forgotten its counter: one, where a hold has a bare majority. Of the clocks one may be wrong by
// any amount, and the others differ from the true time by d at most. Some node with a right clock took X's token, at a time t: the token is
// no more than t + d + a + s, or one of 33 after a counter, which is such a number taken earlier, and each acquire after it takes longer than 33
// microseconds; in a second round it is no more than the middle clock and a, or a counter and 1. Y's token is at least the time of its votes, less
// d. If the shared node has restarted, then it counts for Y only after the delay, which is more than the longest lease; the rounds of
// an acquire, an eighth of its lease each, take half a lease together; so Y's token is larger if d is less than an eighth of the longest
// lease. If it has forgotten while it ran (FLUSHALL, DEL, an eviction), it has no counter for Y, and takes or accepts only a number that is a
// ahead of the time: larger than X's for the same d, unless X, or one within that quarter before it, was told of no counter either: then the two
// must be more than 2d apart.
//
// With its votes no client can set a counter far ahead. A node with a right clock takes none beyond now + a + s, or the next 33 after its counter,
// whatever a client sends; and a number that a wrong clock leads comes from no client while one clock is wrong, in either round.
//
// The rules are searched through, with every order of steps, lost answers, second copies, restarts, a FLUSHALL and wrong clocks, by
// verify/tokens, where each rule that is left out is refuted. Two FLUSHALL are refuted too.
//
// So nothing is asked of clocks as long as two majorities share a node that keeps its data. Otherwise all but one of the
// clocks of the nodes, and of a client of two or three, have to be right to an eighth of the longest lease: use NTP. Then it
// does not matter how many nodes come back empty, or what one clock does. If two clocks are wrong together, tokens grow by the
// counters alone. A quorum of one node has one clock.
//
// # What the critics say
//
// M. Kleppmann ("How to do distributed locking", 2016) showed that a holder that is paused after it has looked at its lock
// can write when another has it, and that Redlock had no number by which storage could tell: the tokens above are that
// number, and a guard that checks them (package guard) is what makes a write safe. He also showed that the lock itself
// leans on clocks and pauses that are bounded. It does: exclusion stands on the assumptions above. S. Sanfilippo's answer ("Is
// Redlock safe?", 2016) is that clocks need only run at about the same speed, and that a pause before the lock is held is seen,
// because the deadline counts from before the first command. Both are right. Where a lock must hold
// whatever clocks do, use a consensus system (etcd, ZooKeeper), and check tokens there too.
package quorum
