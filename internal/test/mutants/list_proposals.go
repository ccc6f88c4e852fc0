package main

// The breaks of a quorum that asks a majority first, and takes its token with the votes.
var ofProposals = []mutant{
	{
		"Inv2: a node takes a proposal that is equal to its counter",
		"scripts/proposal.lua", "proposed > counter and", "proposed >= counter and",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a node with a counter takes a proposal that is behind its clock",
		"scripts/proposal.lua", "proposed >= now and ", "",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a node with a counter takes a proposal that is as far ahead as one without may",
		"scripts/proposal.lua", "proposed <= now + slack or", "proposed <= now + slack + ahead or",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: the number after a counter that is ahead of the clock is taken by nobody",
		"scripts/proposal.lua", " or proposed == counter + 1)", ")",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a node without a counter takes a proposal that is not ahead of its clock",
		"scripts/proposal.lua", "beyond >= 0 and ", "",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a node without a counter takes any proposal that is ahead of its clock",
		"scripts/proposal.lua", " and beyond <= tonumber(slack) and", " and",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a second copy of a vote takes a token",
		"scripts/vote.lua", "if not expiry or there then", "if not expiry then",
		"./scripts", "Node_Proposals",
	},
	{
		"Inv2: a node without a counter accepts a token that was made for those with one",
		"scripts/raise.lua", " or said[3] == '0' and anew == '0'", "",
		"./scripts", "Node_RaiseWithoutACounter",
	},
	{
		"Inv2: a node that has forgotten its counter is proposed the same kind of token again",
		"quorum/election.go", "e.anew || anew\n", "e.anew\n",
		"./quorum", "Inv2_ForgottenBetween",
	},
	{
		"Inv2: who took the one proposal and who took the other are one majority",
		"quorum/acquire.go", "	case first >= at.store.majority:\n", "	case token+first >= at.store.majority:\n",
		"./quorum", "Inv2_TwoProposals",
	},
	{
		"Inv2: one clock that is wrong leads a client's proposals",
		"quorum/proposals.go", "times[len(times)/2]", "times[len(times)-1]",
		"./quorum", "Inv2_OneWrongClock",
	},
	{
		"Inv2: a client forgets the counters that it was told",
		"quorum/memory.go", "int64 { return s.seen(lock).counter }\n", "int64 { return 0 }\n",
		"./quorum", "Inv2_TokensInOneRound",
	},
	{
		"Inv2: a client forgets the token that it was given with the votes",
		"quorum/acquire.go", "if answer.Token >= at.offer.Token {", "if answer.Token > at.offer.Token {",
		"./quorum", "Inv2_OneRoundAhead",
	},
	{
		"Redlock: no other node is asked in the place of one that does not accept the token",
		"quorum/election.go", "		if e.more != nil && e.more(true) {\n", "		if false {\n",
		"./quorum", "MajorityFirst_OneNodeFails",
	},
	{
		"Redlock: a node that is slow with the token keeps a client waiting",
		"quorum/election.go", "go e.more(false) }", "_ = e.more }",
		"./quorum", "MajorityFirst_OneNodeFails",
	},
	{
		"Redlock: a home that stands still keeps a client waiting",
		"quorum/acquire.go", "	at.late = true\n", "",
		"./quorum", "MajorityFirst_TheHome",
	},
	{
		"Redlock: Unlock waits for a node that stands still",
		"quorum/release.go", "clear := t.did >= r.majority || r.rec != nil && t.removed == 0 && t.restarted == 0 && free >= r.majority", "clear := t.did >= r.majority || free < 0",
		"./quorum", "MajorityFirst_Unlock",
	},
	{
		"Redlock: a node is as far away as it stood still",
		"quorum/node.go", "	if err == nil && !late {\n", "	if err == nil {\n",
		"./quorum", "MajorityFirst_OrderAfter",
	},
	{
		"Inv10: a hold that was forced open comes to further nodes",
		"quorum/acquire.go", "at.store.extendOn(asked, left, at.order.Keys, at.order.Field, at.order.Lease, func(error) {})", "_ = asked; (&repair{store: at.store, rec: at.rec, keys: at.order.Keys, field: at.order.Field, lease: at.lease, earlier: &at.votes}).start(left)",
		"./quorum", "MajorityFirst_ForcedOpen",
	},
	{
		"P12: a hold comes to further nodes after Close",
		"quorum/acquire.go", " || at.store.closed.Load() {", " {",
		"./quorum", "MajorityFirst_NoSpread",
	},
	{
		"P6: a hold comes to further nodes when its lease is over",
		"quorum/acquire.go", "at.order.Lease > 3*spreadAfter", "true",
		"./quorum", "MajorityFirst_NoSpread",
	},
	{
		"P3: a hold lives on a bare majority for as long as it lasts",
		"quorum/fieldrecord.go", "	if longer && !rec.closed {\n		rec.spread", "	if false {\n		rec.spread",
		"./quorum", "MajorityFirst$",
	},
	{
		"Redlock: a node that is slow keeps a client waiting",
		"quorum/acquire.go", "at.votes.slow, at.votes.hedge = at.hedge, hedge", "at.votes.hedge = hedge",
		"./quorum", "MajorityFirst_OneNode",
	},
	{
		"Redlock: no other node is asked in the place of one that fails",
		"quorum/acquire.go", "missing > 0 && owner == nil", "missing > s.majority && owner == nil",
		"./quorum", "MajorityFirst_OneNode",
	},
	{
		"Redlock: a node that is passed over is asked no more",
		"quorum/acquire.go", "	s.probe(order[ask:], o.Keys)\n", "",
		"./quorum", "MajorityFirst_OneNode",
	},
}
