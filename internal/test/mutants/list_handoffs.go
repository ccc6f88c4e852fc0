package main

// The breaks of handoffs, by which a client passes a lock on.
var ofHandoffs = []mutant{
	{
		"P15: a transfer without an answer is taken for one that was not executed",
		"internal/engine/unlock.go", "\treturn false, f.answer.Copies > 0 || f.err != nil && f.err != errNotSent && scripts.Unanswered(f.err)", "\treturn false, false",
		"./rlock", "HandoffFault",
	},
	{
		"P15: a transfer that takes too long is taken for one that was not executed",
		"internal/engine/unlock.go", "\t\th.lockState.cancelHandoff(f)\n\t\treturn false, true", "\t\th.lockState.cancelHandoff(f)\n\t\treturn false, false",
		"./rlock", "HandoffFault",
	},
	{
		"P15, Inv8: the waiter is not told that Redis does not answer its transfer",
		"internal/engine/unlock.go", "\t\th.lockState.cancelHandoff(f)\n", "",
		"./rlock", "HandoffWithoutAnAnswer",
	},
	{
		"Inv1: the former holder's context lives on while the lock is passed on",
		"internal/engine/unlock.go", "\tlv.end(&endError{lock: h.attempts.keys.Lock, err: ErrUnlocked})\n", "\ttime.AfterFunc(time.Millisecond, func() { lv.end(&endError{lock: h.attempts.keys.Lock, err: ErrUnlocked}) })\n",
		"./rlock", "HandoffIsOneCommand",
	},
	{
		"P15: WithHandoffs bounds nothing",
		"internal/engine/handoff.go", "r.handoffs >= most || ", "",
		"./rlock", "HandoffsAreBoundedByCount",
	},
	{
		"P15: a series may last for ever",
		"internal/engine/handoff.go", " || age > maxRun", "",
		"./rlock", "HandoffsAreBoundedByTime",
	},
	{
		"P2: a transfer leaves the number of the former's last change",
		"scripts/transfer.lua", "redis.pcall('HDEL', lock, old, old .. '#')", "redis.pcall('HDEL', lock, old)",
		"./rlock", "HandoffOfAHoldWithReentries",
	},
}
