package breaks

// Quorums.
var ofQuorum = []Break{
	{
		Name:  "Inv12: a node that refuses INFO is told of without its words",
		Edits: []Edit{{"scripts/report.lua tells", "words = info.err", ""}},
		Pkg:   "./quorum", Run: "NoRun",
	},
	{
		Name:  "Inv12: after an attempt without a majority the home's word alone is a split vote",
		Edits: []Edit{{"quorum attempt.failed", "l.splits = max(l.splits, 1)", "l.splits += 0"}},
		Pkg:   "./quorum", Run: "Inv12_ATryAfterOne",
	},
	{
		Name:  "Inv12: who was forced open before it had its token is told that somebody has the lock",
		Edits: []Edit{{"quorum attempt.forcedOpen", "if !at.until.IsZero() {", "if false {"}, {"quorum attempt.forcedOpen", ", Why: ErrSplitVote", ""}},
		Pkg:   "./quorum", Run: "Inv12_ATryThatIsForcedOpen",
	},
	{
		Name:  "Inv12: a call that does not wait hears nothing of a quorum whose nodes have more time than the call",
		Edits: []Edit{{"quorum store.acquire", "if o.Within > 0 {", "if false {"}},
		Pkg:   "./quorum", Run: "Inv12_ATryNames",
	},
	{
		Name:  "Inv12: a call that does not wait asks other nodes later than it waits",
		Edits: []Edit{{"quorum store.acquire", "hedge = min(hedge, o.Within/3)", ""}},
		Pkg:   "./quorum", Run: "Inv12_ATryNames",
	},
	{
		Name:  "Inv12: the engine does not say how long a call that does not wait waits",
		Edits: []Edit{{"internal/engine waiter.askOnce", "within(f, rest)", ""}},
		Pkg:   "./quorum", Run: "Inv12_ATryNames",
	},
	{
		Name:  "Inv12: what this client's earlier attempts have left is a split vote",
		Edits: []Edit{{"quorum attempt.alone", "if a.state == answered && !a.yes && !at.store.givenUp(a.report.Holder) {", "if a.state == answered {"}},
		Pkg:   "./quorum", Run: "Inv12_NobodyHasALock",
	},
	{
		Name:  "Inv9: a hold that a majority has lost is left to the other nodes",
		Edits: []Edit{{"internal/engine hold.leaveAttempts", "&& !h.lockState.client.limits.several()", ""}},
		Pkg:   "./quorum", Run: "Inv9_ALostHold",
	},
	{
		Name: "Redlock: half of the nodes are a majority", Short: "quorum-minority",
		Edits: []Edit{
			{"quorum members.majority", "m.size()/2 + 1", "m.size() / 2"},
			{"internal/quorums Members.Majority", "return m.Size/2 + 1", "return m.Size / 2"},
		},
		Pkg: "./quorum", Run: "Inv12_NoMajority",
	},
	{
		Name: "Redlock: a node that has just restarted counts", Short: "quorum-young",
		Edits: []Edit{{"quorum node.countsLocked", "(!n.young(r) || n.lossless == r.Run) && n.isMember()", "n.isMember()"}},
		Pkg:   "./quorum", Run: "TestDelayedRestart",
	},
	{
		Name:  "Redlock: the uptime of a node is believed that is older than the end of the run before",
		Edits: []Edit{{"quorum node.noteRun", "n.run, n.first, n.before, n.began, n.stepped = r.Run, now, n.heard, n.heard, false", "n.run, n.first, n.before, n.began, n.stepped = r.Run, now, n.heard, time.Time{}, false"}},
		Pkg:   "./quorum", Run: "RestartAndClockSetForward/.*longest_lease",
	},
	{
		Name:  "Redlock: the uptime of a node is believed that grows faster than time",
		Edits: []Edit{{"quorum node.noteRun", "r.Uptime < n.delay && began.After(n.began)", "false"}},
		Pkg:   "./quorum", Run: "RestartAndClockSetForward/.*not_before",
	},
	{
		Name:  "Redlock: the uptime of a node whose clock runs fast is not believed",
		Edits: []Edit{{"quorum node.noteRun", "up+time.Second+up/100", "up"}},
		Pkg:   "./quorum", Run: "RestartWhileAClientIsIdle",
	},
	{
		Name:  "Redlock: a node that has just restarted counts for a re-entry",
		Edits: []Edit{{"quorum recount.tally", "a.yes && (r.order.Lease == 0 || counts(a))", "a.yes"}},
		Pkg:   "./quorum", Run: "TestDelayedRestartForExtensions",
	},
	{
		Name:  "Redlock: the marker of a run proves that this run has lost nothing",
		Edits: []Edit{{"quorum node.learn", "&& mark.Val() != run", ""}},
		Pkg:   "./quorum", Run: "TestMarkerOfARun",
	},
	{
		Name:  "Redlock: a node that was not asked may be the same server as another",
		Edits: []Edit{{"quorum store.checkDistinct", "case a == nil || a.state == pending", "case a == nil:\ncase a.state == pending"}},
		Pkg:   "./quorum", Run: "TestSameServer",
	},
	{
		Name:  "Redlock: a node that is no member counts",
		Edits: []Edit{{"quorum node.isMember", "r.Has(n.name)", "true"}},
		Pkg:   "./quorum", Run: "TestMembers",
	},
	{
		Name:  "Redlock: a client goes by the first record of the members that it hears of",
		Edits: []Edit{{"quorum members.hear", "before.Compare(told) >= 0", "true"}},
		Pkg:   "./quorum", Run: "TestMembers",
	},
	{
		Name:  "Redlock: a node that has lost the record of the members does not get it again",
		Edits: []Edit{{"quorum node.noteRecord", "text == newest.text || !n.isMember()", "newest.text != \"\""}},
		Pkg:   "./quorum", Run: "TestMembers",
	},
	{
		Name:  "Redlock: generations of members follow each other at once",
		Edits: []Edit{{"internal/quorums Change.Run", "time.After(Delay(c.Longest))", "time.After(0)"}},
		Pkg:   "./quorum", Run: "TestMembers",
	},
	{
		Name: "Redlock: a node that has restarted counts after a tenth of the longest lease", Short: "node-soon",
		Edits: []Edit{{"internal/quorums Delay", "time.Second - 1).Truncate(time.Second) + time.Second", "time.Second - 1).Truncate(time.Second) / 10"}},
	},
	{
		Name:  "Redlock: a node of which much is asked has no more time than others",
		Edits: []Edit{{"quorum round.dueOf", "max(r.each, 4*trip)", "max(r.each, 0*trip)"}},
		Pkg:   "./quorum", Run: "TestRound_Many",
	},
	{
		Name:  "Redlock: the renewal of many holds has no more time than one vote",
		Edits: []Edit{{"quorum store.Renew", "time.NewTimer(time.Until(deadline) * 3 / 4)", "time.NewTimer(min(time.Until(deadline), s.within(0).each))"}},
		Pkg:   "./quorum", Run: "TestRenewal_ManyHolds",
	},
	{
		Name:  "Redlock: a renewal leaves out the nodes that have forgotten a hold",
		Edits: []Edit{{"quorum renewal.conclude", "len(r.tallies[i].without) > 0", "false"}, {"quorum renewal.heard", "r.repairLate(n, holds)", "_ = r.repairLate"}},
		Pkg:   "./quorum", Run: "TestRenewal_EachHold",
	},
	{
		Name:  "Redlock: a node on which a lease has run out counts as one where somebody has released the hold",
		Edits: []Edit{{"quorum extension.tally", "e.rec.forcedOff(a)", "e.rec.removed(a)"}},
		Pkg:   "./quorum", Run: "TestRenewal_NodesThatWere",
	},
	{
		Name:  "Redlock: a renewal counts nodes that do not count",
		Edits: []Edit{{"quorum renewal.note", "if counts {", "if true {"}},
		Pkg:   "./quorum", Run: "TestRenewal_YoungNodes",
	},
	{
		Name:  "Redlock: a client that has heard of no node asks all of them",
		Edits: []Edit{{"quorum store.acquire", "at.strangers && !s.asksAll", "false"}, {"quorum store.acquire", "case home == nil || s.asksAll:", "case home == nil || s.asksAll || at.strangers:"}},
		Pkg:   "./quorum", Run: "TestNewClients_AtOnce",
	},
	{
		Name:  "Redlock: a new client does not believe the home",
		Edits: []Edit{{"quorum attempt.homeRefused", "a.first || ", ""}},
		Pkg:   "./quorum", Run: "TestNewClients_Refused",
	},
	{
		Name:  "Redlock: the home's no ends a call that does not wait",
		Edits: []Edit{{"quorum attempt.homeDecides", "case t.Quiet, !at.order.Lined && holder != at.before.owner:", "case t.Quiet:"}},
		Pkg:   "./quorum", Run: "TestRemnantOfAHold",
	},
	{
		Name:  "Redlock: a vote that came behind its release is left to the next try of the release",
		Edits: []Edit{{"quorum attempt.voted", "at.rec.voted(a, at.lease)", "at.rec.voted(a, at.lease) && false"}, {"quorum release.heard", "r.rec.heardEarly(a.node, a.yes)", "r.rec.heardEarly(a.node, a.yes) && false"}},
		Pkg:   "./quorum", Run: "TestP3_AVoteBehind",
	},
	{
		Name:  "Redlock: who has the lock without the home stays in its line",
		Edits: []Edit{{"quorum attempt.leaveHome", `at.order.Turn.Ticket != ""`, "false"}},
		Pkg:   "./quorum", Run: "TestRemnantOfAHold",
	},
	{
		Name:  "Redlock: what a client has given up itself keeps it out",
		Edits: []Edit{{"quorum attempt.owner", " && !at.store.givenUp(all[0].field)", ""}},
		Pkg:   "./quorum", Run: "TestOnce_",
	},
	{
		Name:  "Inv2: one clock that is wrong decides a token",
		Edits: []Edit{{"quorum election.floor", "times[len(times)/2]", "times[len(times)-1]"}},
		Pkg:   "./quorum", Run: "Inv2_ANodeThatForgets",
	},
	{
		Name: "Inv2: tokens of a quorum forget the clock", Short: "quorum-counters",
		Edits: []Edit{
			{"quorum store.proposal", "if !known {", "if known || !known {"},
			{"quorum election.floor", "floor := times[len(times)/2] - 1", "floor := int64(0)"},
		},
		Pkg: "./quorum", Run: "TokensAfterLoss",
	},
	{
		Name:  "Inv2: a node without a counter takes a proposal that is not ahead of its clock",
		Edits: []Edit{{"scripts/proposal.lua accepts", "beyond >= more and", ""}},
		Pkg:   "./scripts", Run: "Node_Proposals",
	},
	{
		Name:  "Inv2: a node that took the number for nodes without a counter is seen as one that had a counter",
		Edits: []Edit{{"quorum election.hadNoCounter", "|| a.report.Took && a.report.Counter == e.first", ""}},
		Pkg:   "./quorum", Run: "Inv2_TwoProposals",
	},
	{
		Name:  "Inv2: a node that has restarted since its vote counts for the token",
		Edits: []Edit{{"quorum election.tally", "case !counts(a):", ""}},
		Pkg:   "./quorum", Run: "Inv2_RestartBetweenVoteAndToken",
	},
	{
		Name:  "T8, Inv2: a node looks at the last of several tokens alone",
		Edits: []Edit{{"scripts/proposal.lua accepts", "least > counter and least >= now", "proposed > counter and proposed >= now"}},
		Pkg:   "./scripts", Run: "Node_Proposals",
	},
	{
		Name:  "T8: a node takes any number of tokens that are ahead of its time",
		Edits: []Edit{{"scripts/proposal.lua accepts", "and more <= 32", ""}},
		Pkg:   "./scripts", Run: "Node_Proposals",
	},
	{
		Name:  "T8, Inv2: a second round gives as many tokens as were asked for",
		Edits: []Edit{{"quorum election.tally", "Tokens: 1", ""}},
		Pkg:   "./quorum", Run: "T8_Fewer",
	},
	{
		Name:  "T8, Inv2: a hold has as many tokens as it asked for, where it proposed fewer",
		Edits: []Edit{{"quorum attempt.judge", "Tokens: at.offers", ""}},
		Pkg:   "./quorum", Run: "T8_Fewer",
	},
	{
		Name:  "P56: a quorum's hold is passed on to nobody",
		Edits: []Edit{{"internal/engine NewOn", "set.Handoffs = 0", "set.Handoffs, set.LocalHandoffs = 0, 0"}},
		Pkg:   "./quorum", Run: "P56_LocalHandoffsAskNoNode",
	},
	{
		Name:  "T8: a client proposes more tokens than nodes accept",
		Edits: []Edit{{"quorum store.proposal", "n = min(n, mostAhead)", ""}},
		Pkg:   "./quorum", Run: "T8_Fewer",
	},
	{
		Name:  "Inv2: who took the one proposal and who took the other are one majority",
		Edits: []Edit{{"quorum attempt.accepted", "case first >= at.store.majority():", "case token+first >= at.store.majority():"}},
		Pkg:   "./quorum", Run: "Inv2_TwoProposals",
	},
	{
		Name:  "P6: the deadline of a quorum's hold counts from its last answer",
		Edits: []Edit{{"quorum store.Send", "caller.Sending(nil) s.do(order, caller.Answered)", "s.do(order, func(a scripts.Answer, err error) { caller.Sending(nil); caller.Answered(a, err) })"}},
		Pkg:   "./quorum", Run: "P6_Deadline",
	},
	{
		Name:  "P1: each attempt at a quorum has the same field",
		Edits: []Edit{{"internal/room Room.claimAnew", "r.kind.Once && c.doubt", "false && c.doubt"}},
		Pkg:   "./quorum", Run: "P1_EachAttempt",
	},
	{
		Name:  "P3: a node's vote without an answer is forgotten",
		Edits: []Edit{{"quorum fieldRecord.voted", "m.unheard, m.lateLease, m.lateUntil = true, lease, time.Now().Add(lease)", ""}},
		Pkg:   "./quorum", Run: "P3_LateVote",
	},
	{
		Name:  "P3, P40: a field that is given up is asked for on further nodes",
		Edits: []Edit{{"quorum fieldRecord.voting", "if rec.closed {", "if false {"}},
		Pkg:   "./quorum", Run: "P3_NoVoteAfter",
	},
	{
		Name:  "P3: a node's vote matters for a lease, whether the node is heard of or not",
		Edits: []Edit{{"quorum nodeRecord.isOwed", "now.Before(until) || m.unheard || now", "now.Before(until) || now"}},
		Pkg:   "./quorum", Run: "P3_NodesThatStoodStill",
	},
	{
		Name:  "Inv10: a renewal takes the lock on a node, and nobody knows",
		Edits: []Edit{{"quorum repair.start", "r.asks = round{op: r.vote, heard: r.heard, judge: r.judge}", "r.asks = round{op: r.vote, judge: r.judge}\nr.rec.mu.Lock()\nfor _, n := range nodes {\nr.rec.nodes[n.index].votesInFlight--\n}\nr.rec.mu.Unlock()"}},
		Pkg:   "./quorum", Run: "Inv10_LateRepair",
	},
	{
		Name:  "Inv10: a renewal brings back a lock that was forced open",
		Edits: []Edit{{"quorum store.forcedOpen", "return removed > max(here-s.majority(), 0) || removed > 0 && without >= s.majority()", "return here < 0"}},
		Pkg:   "./quorum", Run: "ForceUnlockIsNotUndone",
	},
	{
		Name:  "P12: an Unlock beside nodes that are silent trusts them",
		Edits: []Edit{{"quorum release.succeeded", "if t.removed > 0 {", "if false {"}},
		Pkg:   "./quorum", Run: "P12_UnlockOfAForced",
	},
	{
		Name:  "Redlock: the nodes keep a hold for a percent and 1 ms longer than it is trusted",
		Edits: []Edit{{"quorum store.acquire", "o.Lease+extraLease", "o.Lease"}},
		Pkg:   "./quorum", Run: "P6_Drift",
	},
	{
		Name:  "Redlock: a client asks all nodes at once, where a majority is enough",
		Edits: []Edit{{"quorum store.acquire", "ask := s.majority()", "ask := len(order)"}},
		Pkg:   "./quorum", Run: "MajorityFirst$",
	},
	{
		Name:  "P40: a client in the line asks a majority at once",
		Edits: []Edit{{"quorum store.acquire", "ask = 1", ""}},
		Pkg:   "./quorum", Run: "P40_WhoWaitsAsks",
	},
	{
		Name:  "P40, P12: a hold that was dropped is lost",
		Edits: []Edit{{"scripts/withdraw_in_line.lua", "lined('DEL', line .. ':' .. field) == 1", "lined('DEL', line .. ':' .. field) == 2"}},
		Pkg:   "./quorum", Run: "P40_ADroppedHold",
	},
	{
		Name:  "P40: a client names its hold that it has forced open as one that it has given up",
		Edits: []Edit{{"quorum release.succeeded", "r.order.Known >= 0 &&", ""}},
		Pkg:   "./quorum", Run: "P40_TheNextAcquireNames",
	},
	{
		Name:  "P40: the releases of failed attempts call one client after the other",
		Edits: []Edit{{"quorum attempt.failed", "at.rec.silence()", ""}},
		Pkg:   "./quorum", Run: "P40_FailedAttemptsCall",
	},
	{
		Name:  "P40: the ticket stays on the old home",
		Edits: []Edit{{"quorum store.acquire", "before != nil {", "before != nil && false {"}},
		Pkg:   "./quorum", Run: "P40_TheHomeMoves$",
	},
	{
		Name:  "Redlock: a home that stands still keeps a client waiting",
		Edits: []Edit{{"quorum attempt.hedge", "at.late = true", ""}},
		Pkg:   "./quorum", Run: "MajorityFirst_TheHome",
	},
	{
		Name:  "Redlock: Unlock waits for a node that stands still",
		Edits: []Edit{{"quorum release.judge", "clear := t.did >= r.majority() || r.rec != nil && t.removed == 0 && t.restarted == 0 && free >= r.majority()", "clear := t.did >= r.majority() || free < 0"}},
		Pkg:   "./quorum", Run: "MajorityFirst_Unlock",
	},
	{
		Name:  "Inv12: what a failed attempt leaves on nodes that do not count has an owner",
		Edits: []Edit{{"quorum attempt.owner", "at.counting() < at.store.majority()", "false"}},
		Pkg:   "./quorum", Run: "Inv12_PatienceOfSeveral",
	},
	{
		Name:  "Inv12: a home is believed that may have restarted",
		Edits: []Edit{{"quorum attempt.homeRefused", `return a.report.Run != "" || at.order.Turn.Ticket != "" || a.first || a.node.toldLately() || at.counting() >= at.store.majority()`, "return true"}},
		Pkg:   "./quorum", Run: "Inv12_PatienceOfSeveral",
	},
	{
		Name:  "P12: Close waits for a node that died long ago",
		Edits: []Edit{{"quorum fieldRecord.awaited", "away[n.index] = n.isAway()", "away[n.index] = false"}},
		Pkg:   "./quorum", Run: "P12_CloseLongAfter",
	},
	{
		Name:  "P12: Close does not wait for the nodes that are slow to release a hold",
		Edits: []Edit{{"internal/releases Releaser.owes", "free && (r.reason != quorumDone || !r.oweUntil.IsZero())", "free"}},
		Pkg:   "./quorum", Run: "P12_CloseWaitsForSlow",
	},
	{
		Name:  "P10: a release tells those who listen on the home alone",
		Edits: []Edit{{"scripts/withdraw_in_line.lua withdrawInLine", "release(lock, line, nil, field, channel, publish,", "release(lock, line, nil, field, channel, again and publish or '',"}},
		Pkg:   "./quorum", Run: "P10_WaiterWithout",
	},
	{
		Name:  "P3: what all nodes have confirmed is released again",
		Edits: []Edit{{"internal/releases release.isOwed", "return owed", "return owed || true"}},
		Pkg:   "./internal/releases", Run: "P3_WhatAllServers",
	},
	{
		Name:  "P12: Close leaves what a majority has that has ceased to answer a moment ago",
		Edits: []Edit{{"quorum fieldRecord.awaited", "majority > 0", "majority > len(nodes)"}},
		Pkg:   "./quorum", Run: "P12_CloseJustAfter",
	},
	{
		Name:  "P12: a hold comes to further nodes while Shutdown closes the client",
		Edits: []Edit{{"quorum attempt.spread", " || at.store.isClosed()", ""}},
		Pkg:   "./quorum", Run: "NoSpreadAfterTheEnd",
	},
}
