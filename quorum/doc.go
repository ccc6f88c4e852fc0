// Package quorum is the lock of package fenced on several Redis servers that know nothing of each other. Whoever has a
// majority of the servers has the lock, so that the lock outlasts the loss of a minority. The algorithm is Redlock, of the Redis
// documentation ("Distributed Locks with Redis"), with two things that this leaves to the reader: the delayed restart, and
// fencing tokens. A server is called a node below.
//
//	client, err := quorum.New([]redis.UniversalClient{a, b, c, d, e})
//	lock := quorum.NewLock(client, "account:42")
//	held, token, err := lock.TryLockAndGetToken(ctx, 3*time.Second, 0)
//
// Package rlock says what a holder is, how contexts end, and what Unlock, Do and the errors say; all of that holds here too.
//
// # How the lock is taken
//
// The client asks all nodes at once to take the lock for one field, a number that belongs to this attempt alone. Each node has a
// time that is small against the lease (WithNodeTimeout), and the client does not wait for the slowest node. When a majority has
// said yes, the attempt proposes a token to the nodes (see below), and when a majority has accepted that, the lock is held. The
// hold's deadline counts from before the first command was sent; the nodes keep the lock for longer than the hold's context lives,
// by a percent of the lease and 2 ms, for clocks that run at different speeds. An attempt that fails is released on every node that
// may have taken it, also on nodes that did not answer, again and again until it cannot matter. The next attempt has another field.
//
// Where a client has met others that want the same lock, its attempts ask one node first, and the rest only if that one said
// yes. So one client is ahead of all others, and the votes are not split. Which node is asked first follows from the lock's name
// and the nodes' addresses: give all clients the same addresses, or votes are split more often. A client passes over a node
// that does not answer it, or is much farther away than most. The choice is a matter of speed: a majority decides all the same.
// Where several callers had each a part of the nodes they try again after a random time, which doubles from one time to the
// next (WithRetryDelay); a call whose wait ends meanwhile gets ErrSplitVote.
//
// Waiters sleep until a node tells of a release, the owner's lease is over, or the poll interval has passed. They listen to the
// node that is asked first, in eight groups, at random, and to all nodes while that node is silent to them or the owner has not got
// it. The release of a hold of less than 100 ms tells one group, any other release tells all; a waiter that has not seen the owner
// for that long looks again after 100 to 200 ms. So a lock that is taken again and again costs the same whether four clients want
// it or a hundred. Among clients there is no order; within one it is that of arrival. A call that does not wait asks once: where
// several do so at the same moment, it may be that none gets the lock. Handoffs between the goroutines of a process are off: each
// hold is taken from the nodes.
//
// A renewal counts when a majority has confirmed it. On a node that has lost the hold, or never had it, the renewal takes
// the lock for it anew, if it is free there; but not where a majority has released it, so that a ForceUnlock stays one. IsLocked,
// HoldCount and RemainTTL go by who has a majority; RemainTTL is the time until that is lost.
//
// # Why two holds do not overlap
//
// Assumptions: a node that runs keeps what it was told; it keeps a lease for as long as it says, by a clock that runs at
// the holder's speed, give or take a percent; its clock is not set. The first one does not hold for a node that restarts: it may
// come back empty, or with an old snapshot. Therefore a node does not count, neither for a vote nor for a renewal, a
// re-entry or a token, before it has been up for longer than the longest lease (WithMaxLease) and a second more, called the
// delay below: the second is there because uptime is told in whole seconds. The uptime comes from the node itself, in the same
// atomic step as its answer. A node that does not count yet is asked and told everything all the same.
//
// Redis counts its uptime by its wall clock, and has no other. A client therefore believes what it has seen more than the
// uptime: a node whose run before it has heard from less than the delay ago is young, and one whose run it has heard from
// for longer than that is not, by the client's monotonic clock. What is left is a node that starts with a clock that is
// behind, and whose clock is set right while it is young: a client that has not heard from it before takes it for old. Start
// Redis when the clock has been set (systemd: After=time-sync.target). A clock that is set back behind the server's start
// makes its uptime negative: the node does not count for a client before that has heard from it for the delay.
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
// A quorum that was started as a whole takes no lock until its nodes are old enough. The error says so: a
// *MajorityError, ErrRestarted for each such node.
//
// # Tokens
//
// Redlock has no tokens, and its author's answer to that (a random value, checked and set) orders nothing. Here each node has the
// counter of the lock, the largest token that this node has accepted. With its vote a node tells its counter; the attempt proposes
// one more than the largest that a majority told of; a node accepts a proposal from the hold that has the lock there, and only
// if it is larger than its counter, which then is that. A token counts when a majority accepted it. Each attempt proposes a
// number to a node once, and an answer that does not come counts as a refusal; where nodes refuse because they know a larger
// number, a larger one is proposed.
//
// A proposal is also larger than the time that the nodes tell with their votes, in microseconds since 1970: the one in the
// middle of these times, where the client's own is the third if only two nodes have told theirs. Where a node has no counter,
// which it may have forgotten a moment ago, the proposal is larger than that time and a quarter of the delay. So tokens are
// numbers of 16 digits, and fenced.WithClockFloor changes nothing here.
//
// Tokens of completed acquires are unique, and grow strictly: if Y's acquire began after X's was complete, Y's token is
// larger. There are two reasons, of which each is enough.
//
// The counters. Any two majorities share a node. Let that have kept its data. Had X and Y the same number, that node would
// have accepted it twice, but it accepts only what is larger than before. And if Y began after X was complete, then a majority
// had accepted X's token; the majority that answered Y's vote shares a node with it, whose counter was at least X's token by
// then; so Y proposes more. No clock is in this.
//
// The clocks. Let every node that is shared have forgotten its counter: one, where a hold has a bare majority. Of the clocks
// by which a token is proposed one may be wrong by any amount, and the others differ from the true time by d at most. The
// middle one of three or more is then between two right ones, so that X's token is at most the time of its proposal, and d,
// and a quarter of the delay; a counter is such a proposal too, and each one after it adds 1 and takes longer than a
// microsecond. Y's token is at least the time of its votes, less d. If the shared node has restarted, then it counts for Y
// only after the delay, which is more than the longest lease; the rounds of an acquire, an eighth of its lease each, take half
// a lease together; so Y's token is larger if d is less than an eighth of the longest lease. If it has forgotten while it ran
// (FLUSHALL, DEL, an eviction), Y is told of no counter there, and its token is larger for the same d, unless X, or one within
// that quarter before it, was told of none either: then the two must be more than 2d apart.
//
// So nothing is asked of clocks as long as two majorities share a node that keeps its data. Otherwise all but one of the
// clocks of the nodes, and of a client of two or three, have to be right to an eighth of the longest lease: use NTP. Then it
// does not matter how many nodes come back empty, or what one clock does. If two clocks are wrong together, tokens grow by the
// counters alone. A quorum of one node has one clock. A re-entry takes its token in the same way.
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
