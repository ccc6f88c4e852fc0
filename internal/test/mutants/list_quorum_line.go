package main

// The breaks of the line of those who wait for a lock of a quorum, which is on the lock's home. A test that is to notice a broken script may
// not go by locktest.Ops for the commands of that script: they are known by the text that is not broken.
var ofQuorumLines = []mutant{
	{
		"P40: the home's no does not end an attempt",
		"quorum/acquire.go", "case a.state == answered && !a.yes && !at", "case false && !at",
		"./quorum", "P40_WhoWaitsAsks",
	},
	{
		"P40: a client in the line asks a majority at once",
		"quorum/acquire.go", "		ask = 1\n", "",
		"./quorum", "P40_WhoWaitsAsks",
	},
	{
		"P40: a client that is called asks the home alone",
		"quorum/acquire.go", " && !o.Turn.Called:", ":",
		"./quorum", "P40_WhoWaitsAsks",
	},
	{
		"P40: a call says nothing of the hold that was released",
		"scripts/withdraw_in_line.lua", "mine and ' ' .. field .. ' ' .. token or nil", "nil",
		"./quorum", "P40_ACallNames",
	},
	{
		"P40: a client does not read which hold was released",
		"internal/line/message.go", "			p.notice.released.field = words[3]\n", "",
		"./quorum", "P40_WhoIsCalledDrops",
	},
	{
		"P40: a vote does not say which hold was given up",
		"quorum/acquire.go", "	return vote.Dropping(at.gone)\n", "	return vote\n",
		"./quorum", "P40_WhoIsCalledDrops",
	},
	{
		"P40: a client does not bring the release of its own last hold",
		"quorum/acquire.go", "		at.gone = s.seen(lock).gone\n", "",
		"./quorum", "P40_TheNextAcquireBrings",
	},
	{
		"P40: a node keeps the hold that was given up",
		"scripts/vote.lua", "local given = there == 0 and", "local given = false and",
		"./quorum", "P40_WhoIsCalledDrops",
	},
	{
		"P40, P12: a node does not note that it dropped a hold",
		"scripts/vote.lua", " and not redis.pcall('SET', gone, '1', 'PX', 10000).err", "",
		"./quorum", "P40_WhoIsCalledDrops",
	},
	{
		"P40, P12: a hold that was dropped is lost",
		"scripts/withdraw_in_line.lua", "lined('DEL', line .. ':' .. field) == 1", "lined('DEL', line .. ':' .. field) == 2",
		"./quorum", "P40_ADroppedHold",
	},
	{
		"P40: the script of a ForceUnlock names the hold",
		"scripts/withdraw_in_line.lua", "local mine = (tonumber(known) or 0) >= 0", "local mine = true",
		"./quorum", "P40_ACallNames",
	},
	{
		"P40: a client that forces a lock open names the hold",
		"quorum/release.go", "op.CallingInLine(\"\", scripts.NotTheHolder, 0)", "op.CallingInLine(\"\", 0, 0)",
		"./quorum", "P40_AForceUnlockNames",
	},
	{
		"P40: the releases of failed attempts call one client after the other",
		"quorum/acquire.go", "	at.rec.silence()\n", "",
		"./quorum", "P40_FailedAttemptsCall",
	},
	{
		"P40: the home is not told of the release of a hold that it has not got",
		"quorum/fieldrecord.go", "if len(to) > 0 && calls && !rec.silent", "if false && !rec.silent",
		"./quorum", "P40_TheHomeHears",
	},
	{
		"P1: a claim made anew has forgotten its ticket",
		"internal/engine/claim.go", "	c.ticket = ticket\n", "	_ = ticket\n",
		"./quorum", "P1_ALookThatFails",
	},
	{
		"P40: the ticket stays on the old home",
		"quorum/acquire.go", "before != nil {", "before != nil && false {",
		"./quorum", "P40_TheHomeMoves$",
	},
	{
		"P40: a leave goes to the home of now",
		"quorum/release.go", "	if n == nil {\n", "	if n = nil; n == nil {\n",
		"./quorum", "P40_TheHomeMoves$",
	},
	{
		"P40: a client listens where the home was",
		"quorum/bus.go", "home != nil && home != s.node && !s.closed", "home != nil && home != s.node && s.closed",
		"./quorum", "P40_TheHomeMoves$",
	},
	{
		"Redlock: a release waits for a home that stands still",
		"quorum/release.go", "func() { r.late = true }", "func() {}",
		"./quorum", "MajorityFirst_Unlock",
	},
}
