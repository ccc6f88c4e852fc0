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
		"quorum/store.go", "			return sameServer(n, a.node)\n", "			return nil\n",
		"./quorum", "SameServer",
	},
	{
		"Redlock: failed attempts follow each other without a pause",
		"quorum/rivals.go", "	return between(least, min(max(least, most/8)<<n, 16*most))\n", "	return 0 * between(least, most<<n)\n",
		"./quorum", "P1_EachAttempt|WaitersAreWoken|Contenders",
	},
	{
		"Redlock: all clients ask all nodes at once, and split the votes",
		"quorum/acquire.go", "	first := s.contended(o.Keys.Channel())\n", "	var first *node\n",
		"./quorum", "ManyClientsOfOneLock",
	},
	{
		"P10: the owner's own node is not asked for, and neither is the next one",
		"quorum/rivals.go", "believed = time.Since(r.since) < doubtAfter/2 || r.owner == field && time.Since(r.ownerSeen) < trustOwner", "believed = true",
		"./quorum", "P10_FirstNodeWithoutAnOwner",
	},
	{
		"P10: a release after a long hold tells a few of those who sleep until it tells them",
		"quorum/fieldrecord.go", "{ return time.Since(rec.began) < doubtAfter/2 }", "{ return true }",
		"./quorum", "P10_ALongHoldTellsAll",
	},
	{
		"Inv12: a split vote is somebody who holds the lock",
		"quorum/acquire.go", ", Why: ErrSplitVote}", "}",
		"./quorum", "SplitVoteHasItsOwnError",
	},
	{
		"Inv2: one clock that is wrong decides a token",
		"quorum/acquire.go", "times[len(times)/2]", "times[len(times)-1]",
		"./quorum", "Inv2_ANodeThatForgets",
	},
	{
		"Inv2: of two clocks nobody knows which is right",
		"quorum/acquire.go", "	if len(times) == 2 {\n", "	if false {\n",
		"./quorum", "Inv2_ANodeThatForgets",
	},
	{
		"Inv2: a counter that is gone a moment ago is one that never was",
		"quorum/acquire.go", "e.store.delay.Microseconds() / 4", "0",
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
		"./quorum", "WaitersAreWoken",
	},
	{
		"Inv2: a node accepts a token that is not larger than its counter",
		"scripts/raise.lua", "if tonumber(said[3]) >= tonumber(token) then", "if false then",
		"./quorum", "ProposalsAreRaised",
	},
	{
		"Inv2: tokens of a quorum forget the clock",
		"quorum/acquire.go", "	return max(counter, times[len(times)/2]+ahead-1)\n", "	return max(counter, ahead)\n",
		"./quorum", "TokensAfterLoss",
	},
	{
		"Inv2: a token that no majority accepted counts",
		"quorum/acquire.go", "	case accepted >= s.majority:\n", "	case accepted >= 1:\n",
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
		"internal/engine/asker.go", "ls.client.limits.Several && c.hold.attempts.Uncertain()", "false",
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
		"quorum/extend.go", "	r.heard = func(a *ask) { rec.voted(a, lease) }\n",
		"	rec.mu.Lock()\n	for _, n := range nodes {\n		rec.nodes[n.index].votesInFlight--\n	}\n	rec.mu.Unlock()\n",
		"./quorum", "Inv10_LateRepair",
	},
	{
		"Inv10: a renewal brings back a lock that was forced open",
		"quorum/extend.go", "	return removed > len(s.nodes)-s.majority || removed > 0 && without >= s.majority\n", "	return false\n",
		"./quorum", "ForceUnlockIsNotUndone",
	},
	{
		"Redlock: a node that lost a hold is not told of it again",
		"quorum/extend.go", "		case lease > 0 && removed == 0 && len(without) > 0:", "		case false:",
		"./quorum", "RepairKeepsAHold",
	},
	{
		"P10: nobody is told of an attempt that looked like a hold",
		"quorum/fieldrecord.go", "rec.lookedHeld || len(to) > len(nodes)/2", "rec.lookedHeld",
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
		"quorum/store.go", "until: now.Add(lease), ", "",
		"./quorum", "P3_AttemptThatBeginsIsKept",
	},
	{
		"P3: an attempt whose release has begun asks more nodes",
		"quorum/acquire.go", "if !rec.voting(more, lease) {", "if rec.voting(more, lease); false {",
		"./quorum", "P3_NoVoteAfterTheRelease",
	},
	{
		"P12: an Unlock beside nodes that are silent trusts them",
		"quorum/release.go", "		if removed > 0 {\n", "		if false {\n",
		"./quorum", "P12_UnlockOfAForced",
	},
	{
		"Redlock: a node is marked in a run that nobody asked",
		"scripts/mark.lua", "~= ARGV[1] then", "== nil then",
		"./quorum", "Real_MarkerOfARun",
	},
	{
		"P10: an owner is not looked for where it is not",
		"quorum/rivals.go", "	return r != nil && r.lacksFirst\n", "	return r != nil && false\n",
		"./quorum", "P10_OwnerWithoutTheFirstNode",
	},
	{
		"P10: who did not have the lock and told nobody has met nobody",
		"quorum/release.go", "rec != nil && rec.hadIt() && first != nil", "first != nil",
		"./quorum", "P10_OwnerWithoutTheFirstNode",
	},
	{
		"P12: who takes the last part of a hold says that it was forced open",
		"quorum/release.go", "others < s.majority && (rec != nil || released > 0)", "others < s.majority || rec == nil && released > 0",
		"./quorum", "ForceUnlockByTwo",
	},
	{
		"Redlock: a node that does not count is asked first",
		"quorum/node.go", " && !n.tooNew", "",
		"./quorum", "NoMajorityIsSaid",
	},
	{
		"P10: who has the first node and who has a majority are taken for one",
		"quorum/rivals.go", "		r.ownerSeen, r.lacksFirst, r.splits = time.Now(), lacksFirst, 0\n", "		r.ownerSeen, r.lacksFirst, r.splits, r.field = time.Now(), lacksFirst, 0, field\n",
		"./quorum", "P10_OwnerWithoutTheFirstNode",
	},
	{
		"P10: a first node that has not answered yet has the owner",
		"quorum/rivals.go", "		if r.owner == field && !known {\n", "		if false {\n",
		"./quorum", "P10_OwnerWithoutTheFirstNodeForLong",
	},
	{
		"P12: a node that forgot a hold counts as one where somebody else released it",
		"quorum/release.go", ", rec == nil && !counts(a):", ":",
		"./quorum", "ForceUnlockWhileANodeRestarts",
	},
}
