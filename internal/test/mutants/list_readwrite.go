package main

// The breaks of read-write locks.
var ofReadWriteLocks = []mutant{
	{
		"P43: an attempt for a read-write lock without an answer is repeated with its field",
		"internal/engine/share.go", "return l.client.limits.Several || !l.isPlain()", "return l.client.limits.Several || l.isSemaphore()",
		"./fenced", "P43_LostReplyOfAReadWriteLock",
	},
	{
		"P46: a read lock has no key of its own",
		"scripts/readwrite.lua", "redis.pcall('SET', ownKey(lock, field), '1', 'PX', lease)", "{ok = 'OK'}",
		"./fenced", "P46_TheLongestLease",
	},
	{
		"P46: the hash lasts as long as the last lease taken",
		"scripts/readwrite.lua", "tonumber(lease) > left and redis.pcall('PEXPIRE', lock, lease)", "redis.pcall('PEXPIRE', lock, lease)",
		"./fenced", "P46_TheLongestLease",
	},
	{
		"P47: the phase is a number",
		"scripts/readwrite.lua", "phase = 't' .. string.format('%.0f', token)", "phase = string.format('%.0f', token)",
		"./fenced", "P47_WhatIsInTheHash",
	},
	{
		"P48: each that reads takes a token of its own",
		"scripts/readwrite.lua", "if not token then -- the first", "if true then -- the first",
		"./fenced", "P48_TokensOfPhases",
	},
	{
		"P48: who reads takes no token",
		"scripts/readwrite.lua", "      token, why = take(counter, expiry)\n", "      token = tonumber(redis.pcall('GET', counter) or 0)\n",
		"./fenced", "P48_TokensOfPhases",
	},
	{
		"P49: who reads does not call the next one",
		"scripts/readwrite_wait.lua", "local called, any = forward('read', line, publish)", "local called, any = 0, false",
		"./fenced", "P50_AWriterIsNotPassed",
	},
	{
		"P49: who leaves calls only where the lock is free",
		"scripts/readwrite_leave.lua", "local called, any = forward(mode, line, publish)", "local called, any = 0, true",
		"./fenced", "P49_AWriterThatGivesUp",
	},
	{
		"P49: a client has one ticket to read and to write",
		"scripts/readwrite.go", "return client + string(rune(k.side))", "return client",
		"./scripts", "ReadWriteOf",
	},
	{
		"P50: who reads passes a writer that waits",
		"scripts/readwrite_wait.lua", "if mine and (not head or head == ticket) then", "if mine and (not head or head == ticket or reads(field)) then",
		"./fenced", "P50_AWriterIsNotPassed",
	},
	{
		"P50: the first attempt to read passes who waits",
		"internal/engine/acquire.go", "!w.isPlain() && w.client.usesLine()", "w.isSemaphore() && w.client.usesLine()",
		"./fenced", "P50_AWriterIsNotPassed",
	},
	{
		"P51: the release of a reader deletes the hash",
		"scripts/readwrite_unlock.lua", "local more, why = sweep(lock, enough)", "redis.pcall('PEXPIRE', lock, '0')\n  local more, why = false, nil",
		"./fenced", "P51_TheDead",
	},
	{
		"P51: the release of a reader does not look at the others",
		"scripts/readwrite_unlock.lua", "if enough and type(left) == 'number' and left < enough then", "if true then",
		"./fenced", "P51_TheDead|P46_TheLongestLease",
	},
	{
		"P51: the release of a reader is content with any lease",
		"scripts/readwrite_unlock.lua", "left >= enough then", "left > 0 then",
		"./fenced", "P51_TheDead|P46_TheLongestLease",
	},
	{
		"P49: calls of one client that wait to read ask one after the other",
		"internal/engine/queue.go", "\t\tls.joinAll()\n", "",
		"./fenced", "P49_AllCallsOfAClientReadAtOnce",
	},
	{
		"Inv6: a call that is to read waits longer than it may",
		"internal/engine/acquire.go", "\t\tcase <-w.bound.end:\n\t\tcase <-w.client.closed:\n\t\t}\n\t\tbreak\n", "\t\tcase <-w.ctx.Done():\n\t\tcase <-w.client.closed:\n\t\t}\n\t\tbreak\n",
		"./fenced", "Inv6_AWaitToRead",
	},
	{
		"P52: calls of one holder that read beside each other end each other's holds",
		"internal/engine/readwrite.go", "return own.reads() || own.ReentryCount(w.under) > 0", "return own.ReentryCount(w.under) > 0",
		"./fenced", "P52_CallsOfOneHolder",
	},
	{
		"P52: the read lock unlocks a level that writes",
		"internal/engine/unlock.go", " && !lv.OtherSide {", " && false {",
		"./fenced", "P52_ReadWithinAWrite",
	},
	{
		"P52: a level asks Redis",
		"internal/engine/reenter.go", "if w.isSide() {", "if false {",
		"./fenced", "P52_Levels",
	},
	{
		"P52: to write within one's own read lock waits",
		"internal/engine/readwrite.go", "if l.keys.Side() != scripts.Writes || who.Find(&l.id) != nil {", "if true {",
		"./fenced", "P52_Levels",
	},
	{
		"P52: a level with a longer lease does not extend",
		"internal/engine/readwrite.go", "h.remaining(time.Now()) >= w.lease", "true",
		"./fenced", "P52_ALevelWithALongerLease",
	},
	{
		"P52: a renewed level within a longer lease is not renewed",
		"internal/engine/readwrite.go", "\t\tw.client.dog.Extend(&h.Lease, watchdog.Now(), 0)", "\t\t_ = watchdog.Now()",
		"./fenced", "P52_ARenewedLevel",
	},
	{
		"P53: a renewal does not look for the key of the reader",
		"scripts/readwrite_renew.lua", "if there == 0 or left == -2 then", "if there == 0 then",
		"./fenced", "P53_RenewalFindsBoth",
	},
	{
		"P53: a renewal does not look for the field of the reader",
		"scripts/readwrite_renew.lua", "if there == 0 or left == -2 then", "if left == -2 then",
		"./fenced", "P53_RenewalFindsBoth",
	},
	{
		"P55: a writer that is gone keeps readers out",
		"scripts/readwrite_wait.lua", "    lined('ZREM', line, head)\n  end\n  return head", "    return head\n  end\n  return head",
		"./scripts", "P55_",
	},
	{
		"P55: who came behind a writer that is gone is not called",
		"scripts/readwrite_wait.lua", "    elseif open(mode, waitsToRead(now)) then\n      return call(", "    elseif false then\n      return call(",
		"./scripts", "P55_",
	},
	{
		"P55: a frozen writer is asked for no sign of life",
		"scripts/readwrite_wait.lua", "local asks = look == '1' and heads[2] == ticket", "local asks = false",
		"./fenced", "P55_TheWriterIsFrozen",
	},
	{
		"P55: an attempt for another reason forgets that the writer was asked",
		"internal/line/refused.go", "case !free && a.Before == 1 && p.calledTicket != \"\" && p.calledTicket != p.stale && p.waitsToRead():", "case false:",
		"./fenced", "P55_TheWriterIsFrozen",
	},
	{
		"P55: a reader asks for ever whether a lock is open that somebody writes",
		"internal/line/refused.go", "p.calledTicket != p.stale && p.waitsToRead():", "p.waitsToRead():",
		"./fenced", "P55_TheWriterIsFrozenAndAnotherWrites",
	},
	{
		"P55: a writer that is alive is asked all the time",
		"internal/line/refused.go", "case asked && p.aliveAt.After(now.Add(-5*poll)):", "case false:",
		"./fenced", "P55_TheWriterIsAlive",
	},
	{
		"P54: a script for a read-write lock runs with a part of its keys",
		"scripts/keys.go", "return k.LeaseOf(\"\", 1)", "return k.Lock",
		"./scripts", "P54_NoWriter",
	},
	{
		"P54: a renewal of a reader runs with one of its keys",
		"scripts/scripts.go", "keys > 0 && holds[0].reads()", "false",
		"./scripts", "P54_NoWriter",
	},
	{
		"Inv9: a call that has asked to read without the queue is still linked in it",
		"internal/engine/queue.go", "\tw.prev, w.next = nil, nil\n", "",
		"./fenced", "ReadWriteExcludes",
	},
}
