package main

// The breaks of package quorum, and of what it brought to the scripts.
var ofQuorum = []mutant{
	{
		"Redlock: half of the nodes are a majority",
		"quorum/client.go", "majority := len(nodes)/2 + 1", "majority := max(len(nodes)/2, 1)",
		"./quorum", "Inv12_NoMajority",
	},
	{
		"Redlock: a node that has just restarted counts",
		"quorum/node.go", "return !n.young(r) || n.lossless == r.Run", "return true",
		"./quorum", "TestDelayedRestart",
	},
	{
		"Redlock: a node is as old as its uptime says, to the second",
		"quorum/client.go", ".Truncate(time.Second) + time.Second", ".Truncate(time.Second)",
		"./quorum", "TestDelayedRestart$",
	},
	{
		"Redlock: the nodes keep a hold for a percent and 1 ms longer than it is trusted",
		"quorum/store.go", "const extraLease = time.Millisecond", "const extraLease = time.Duration(0)",
		"./quorum", "P6_Drift",
	},
	{
		"Redlock: two names of one server have two votes",
		"quorum/store.go", "			return sameServer(s.nodes[j], n)\n", "			return nil\n",
		"./quorum", "SameServer",
	},
	{
		"Redlock: failed attempts follow each other without a pause",
		"quorum/memory.go", "	return between(least, min(max(least, most/8)<<n, 16*most))\n", "	return 0 * between(least, most<<n)\n",
		"./quorum", "SplitVotesPause",
	},
	{
		"Redlock: a client asks all nodes at once, where a majority is enough",
		"quorum/acquire.go", "	ask := s.majority\n", "	ask := len(order)\n",
		"./quorum", "MajorityFirst$",
	},
	{
		"P10: a client that looks believes the home, whatever the others have",
		"quorum/acquire.go", " && !at.order.Turn.Quiet", "",
		"./quorum", "P10_FirstNodeWithoutAnOwner",
	},
	{
		"Inv12: a split vote is somebody who holds the lock",
		"quorum/acquire.go", ", Why: ErrSplitVote}", "}",
		"./quorum", "SplitVoteHasItsOwnError",
	},
	{
		"Inv2: one clock that is wrong decides a token",
		"quorum/election.go", "times[len(times)/2]", "times[len(times)-1]",
		"./quorum", "Inv2_ANodeThatForgets",
	},
	{
		"Inv2: of two clocks nobody knows which is right",
		"quorum/election.go", "	if len(times) == 2 {\n", "	if false {\n",
		"./quorum", "Inv2_ANodeThatForgets",
	},
	{
		"Inv2: a counter that is gone a moment ago is one that never was",
		"quorum/election.go", "e.store.ahead().Microseconds()", "0",
		"./quorum", "Inv2_ANodeThatForgets",
	},
	{
		"Redlock: a clock that is set forward makes a node old",
		"quorum/node.go", "time.Since(n.before) < n.delay:\n			return true\n", "time.Since(n.before) < n.delay:\n",
		"./quorum", "RestartAndClockSetForward",
	},
	{
		"Redlock: a node whose clock was set back is out for good",
		"quorum/node.go", "		case time.Since(n.first) >= n.delay:\n			return false\n", "",
		"./quorum", "ClockSetBackBehindTheStart",
	},
	{
		"Redlock: an attempt says who has the lock before enough have told",
		"quorum/acquire.go", " || open > 0 && owner == nil", "",
		"./quorum", "OwnerWhoIsHeardOfLast",
	},
	{
		"Inv2: a node accepts a token that is not larger than its counter",
		"scripts/raise.lua", "if tonumber(said[3]) >= tonumber(token) or", "if",
		"./quorum", "ProposalsAreRaised",
	},
	{
		"Inv2: tokens of a quorum forget the clock",
		"quorum/election.go", "	floor := times[len(times)/2] - 1\n", "	floor := int64(0)\n",
		"./quorum", "TokensAfterLoss",
	},
	{
		"Inv2: a token that no majority accepted counts",
		"quorum/election.go", "	case accepted >= s.majority:\n", "	case accepted >= 1:\n",
		"./quorum", "TokensOutbid|ProposalsAreRaised",
	},
	{
		"P6: the deadline of a quorum's hold counts from its last answer",
		"quorum/store.go", "	caller.Sending(nil)\n	s.do(order, caller.Answered)\n",
		"	s.do(order, func(a scripts.Answer, err error) { caller.Sending(nil); caller.Answered(a, err) })\n",
		"./quorum", "P6_Deadline",
	},
	{
		"P1: each attempt at a quorum has the same field",
		"internal/engine/asker.go", "w.asksAnew() && c.hold.attempts.Uncertain()", "false",
		"./quorum", "P1_EachAttempt",
	},
	{
		"P3: a node's vote without an answer is forgotten",
		"quorum/fieldrecord.go", "		m.unheard, m.lateLease, m.lateUntil = true, lease, time.Now().Add(lease)\n", "",
		"./quorum", "P3_LateVote",
	},
	{
		"P3: a node's vote matters for a lease, whether the node is heard of or not",
		"quorum/fieldrecord.go", "now.Before(until) || m.unheard || now", "now.Before(until) || now",
		"./quorum", "P3_NodesThatStoodStill",
	},
	{
		"P3: what is left on a node that stood still waits for a third of the lease",
		"quorum/release.go", "answer.Unheard = r.drop(r.order.Field, r.rec), r.rec.waits()", "answer.Unheard = r.drop(r.order.Field, r.rec), false",
		"./quorum", "P3_NodesThatStoodStill",
	},
	{
		"P3: what the client knows of a vote is swept before its node is heard of",
		"quorum/fieldrecord.go", "m.votesInFlight > 0 || m.unheard && !crowded || now", "m.votesInFlight > 0 || now",
		"./quorum", "P3_NodesThatStoodStill",
	},
	{
		"P3: a release that a majority confirmed is done",
		"internal/engine/unlock.go", "\tif answer.Owed {\n\t\tc.releaser.QuorumDone(&h.attempts, time.Time{})\n", "\tif false {\n",
		"./quorum", "P3_LateVote|Inv10_LateRepair",
	},
	{
		"Inv10: a renewal takes the lock on a node, and nobody knows",
		"quorum/repair.go", "	r.asks = round{op: r.vote, heard: r.heard, judge: r.judge}\n",
		"	r.asks = round{op: r.vote, judge: r.judge}\n	r.rec.mu.Lock()\n	for _, n := range nodes {\n		r.rec.nodes[n.index].votesInFlight--\n	}\n	r.rec.mu.Unlock()\n",
		"./quorum", "Inv10_LateRepair",
	},
	{
		"Inv10: a renewal brings back a lock that was forced open",
		"quorum/extend.go", "	return removed > len(s.nodes)-s.majority || removed > 0 && without >= s.majority\n", "	return false\n",
		"./quorum", "ForceUnlockIsNotUndone",
	},
	{
		"Redlock: a node that lost a hold is not told of it again",
		"quorum/extend.go", "	case e.lease > 0 && t.removed == 0 && len(t.without) > 0:", "	case false:",
		"./quorum", "RepairKeepsAHold",
	},
	{
		"P8: a node that answers a copy of a release says that somebody else has released",
		"quorum/release.go", "r.rec.removed(a) && a.answer.Copies > 0:", "false:",
		"./quorum", "P8_TheAnswerToACopy",
	},
	{
		"P10: nobody is called after an attempt that looked like a hold",
		"quorum/acquire.go", "		answer.Owed = true\n", "		answer.Owed = true\n		at.rec.silence()\n",
		"./quorum", "P10_AttemptThatLooked",
	},
	{
		"P3: a vote that comes after its lease is not released",
		"internal/releases/releaser.go", "	return owed || r.attempts.matters(", "	return owed && false || r.attempts.matters(",
		"./quorum", "P3_VoteLater",
	},
	{
		"P3: the release of another client's hold goes to a node that is away for ever",
		"internal/releases/releaser.go", "owed := r.nodesOwe && (r.oweUntil.IsZero() || time.Now().Before(r.oweUntil))", "owed := r.nodesOwe",
		"./quorum", "P3_ForceUnlockWithANodeAway",
	},
	{
		"P3: what the client knows of an attempt that begins may be swept",
		"quorum/store.go", "until: time.Now().Add(lease), ", "",
		"./quorum", "P3_AttemptThatBeginsIsKept",
	},
	{
		"P3: an attempt whose release has begun asks more nodes",
		"quorum/acquire.go", "if !at.rec.voting(more, at.lease) {", "if at.rec.voting(more, at.lease); false {",
		"./quorum", "P3_NoVoteAfterTheRelease",
	},
	{
		"P12: an Unlock beside nodes that are silent trusts them",
		"quorum/release.go", "	if t.removed > 0 {\n", "	if false {\n",
		"./quorum", "P12_UnlockOfAForced",
	},
	{
		"Redlock: a node is marked in a run that nobody asked",
		"scripts/mark.lua", "~= ARGV[1] then", "== nil then",
		"./quorum", "Real_MarkerOfARun",
	},
	{
		"P10: nobody listens to a node of the owner's that has not got the home",
		"quorum/acquire.go", "		at.followOwner(owner)\n", "",
		"./quorum", "P10_OwnerWithoutTheFirstNode",
	},
	{
		"P12: who takes the last part of a hold says that it was forced open",
		"quorum/release.go", "others < r.majority && (r.rec != nil || t.did > 0)", "others < r.majority || r.rec == nil && t.did > 0",
		"./quorum", "ForceUnlockByTwo",
	},
	{
		"Redlock: a node that does not count is asked first",
		"quorum/node.go", " && !n.tooNew", "",
		"./quorum", "NoMajorityIsSaid",
	},
	{
		"P40: a home that is slow has not got the owner",
		"quorum/acquire.go", "a == nil || a.state != answered || a.report", "a == nil || a.state == answered && a.report",
		"./quorum", "P40_AHomeThatIsSlow",
	},
	{
		"P12: a node that forgot a hold counts as one where somebody else released it",
		"quorum/release.go", ", r.rec == nil && !counts(a):", ":",
		"./quorum", "ForceUnlockWhileANodeRestarts",
	},
}
