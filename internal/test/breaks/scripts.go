package breaks

// What the model of the scripts notices, in random sequences of operations.
var ofScripts = []Break{
	{
		Name: "Inv1: acquire takes a held lock", Short: "acquire-held",
		Edits: []Edit{{"scripts/acquire.lua acquire", "redis.pcall('EXISTS', lock)", "redis.pcall('HEXISTS', lock, field)"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 1:",
	},
	{
		Name: "Inv5: acquire counts a repeat", Short: "repeat-counts",
		Edits: []Edit{{"scripts/acquire.lua confirm", "local extended = redis", "redis.call('HINCRBY', lock, field, 1) local extended = redis"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 5: a copy changed the hash",
	},
	{
		Name:  "P9: acquire gives a repeat a new token",
		Edits: []Edit{{"scripts/acquire.lua confirm", "again(counter, expiry, tokens)", "take(counter, expiry)"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 5: a copy moved the counter",
	},
	{
		Name:  "P6: a repeat of acquire shortens the expiry",
		Edits: []Edit{{"scripts/acquire.lua confirm", "math.max(left, lease)", "lease"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "time that is left",
	},
	{
		Name:  "P2: level counts the same change again",
		Edits: []Edit{{"scripts/level.lua", ">= tonumber", "> tonumber"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 5: a copy moved the counter",
	},
	{
		Name:  "P12: unlock asks for no field",
		Edits: []Edit{{"scripts/unlock.lua remove", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 5: a copy changed the hash",
	},
	{
		Name: "Inv10: renew asks for no field", Short: "renew-any",
		Edits: []Edit{{"scripts/renew.lua", "redis.pcall('HEXISTS', lock, field)", "redis.call('EXISTS', lock)"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name: "Inv10: renew brings a lock back", Short: "renew-revives",
		Edits: []Edit{{
			"scripts/renew.lua", "if type(there) == 'table' then return there.err end",
			"if there == 0 then redis.call('HSET', lock, field, 1) redis.call('PEXPIRE', lock, lease) return nil end",
		}},
		Pkg: "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 1",
	},
	{
		Name:  "P6: renew shortens the expiry",
		Edits: []Edit{{"scripts/renew.lua", "math.max(left, lease)", "lease"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "time that is left",
	},
	{
		Name:  "P14: renew names the wrong lock",
		Edits: []Edit{{"scripts/renew_each.lua", "{i, why}", "{#failed + 1, why}"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the reply",
	},
	{
		Name:  "Inv10: inspect removes what it looks at",
		Edits: []Edit{{"scripts/inspect.lua", "redis.call('HDEL', KEYS[1], '#')", "redis.call('HDEL', KEYS[1], ARGV[1])"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 10",
	},
	{
		Name:  "P38: every hold is the asker's own",
		Edits: []Edit{{"scripts/holder.lua own", "string.match(holder, '^[^:]*:') == string.match(field, '^[^:]*:') and holder or nil", "holder ~= '' and holder or nil"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the reply",
	},
	{
		Name:  "P15: transfer asks for no old hold",
		Edits: []Edit{{"scripts/transfer.lua", "not counts[2]", "redis.call('EXISTS', lock) == 0"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant",
	},
	{
		Name:  "P15: transfer gives a repeat a new token",
		Edits: []Edit{{"scripts/transfer.lua", "again(counter, expiry, tokens)", "take(counter, expiry)"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "invariant 5: a copy moved the counter",
	},
	{
		Name:  "P21: a newcomer goes before the first",
		Edits: []Edit{{"scripts/turn.lua mayTake", "return not head or head == ticket, head", "return true, head"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "line: it took the lock out of turn",
	},
	{
		Name:  "P18: who has the lock stays in the line",
		Edits: []Edit{{"scripts/turn.lua taken", "lined('ZREM', line, ticket) if look", "redis.pcall('EXISTS', line) if look"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "has the lock and is in the line",
	},
	{
		Name:  "P24: a stale first stays",
		Edits: []Edit{{"scripts/turn.lua headOf", "not (late or head == stale)", "not late"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name:  "P24: a held lock's first is dropped",
		Edits: []Edit{{"scripts/wait.lua inTurn", "left, calls, owned = value, second, of", "left, calls, owned = value, second, of redis.pcall('ZREM', line, stale)"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name:  "P24: the first does not tell the second that it is alive",
		Edits: []Edit{{"scripts/turn.lua stand", "if there and before == 0 and held then", "if false then"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the clients hear",
	},
	{
		Name: "P21: newcomers are first", Short: "newest-first",
		Edits: []Edit{{"scripts/line.lua enter", "score = #last > 0 and last[#last] + 1 or -1", "score = #last > 0 and last[2] - 1 or -1"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name:  "P32: the line never expires",
		Edits: []Edit{{"scripts/line.lua enter", "if #last == 0 or added == 0", "if added == 0"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "line: it has no expiry",
	},
	{
		Name:  "P23: the second is called",
		Edits: []Edit{{"scripts/line.lua call", "first, second, batch, from = {}, nil, nil, 2, 0", "first, second, batch, from = {}, nil, nil, 2, 1"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "line: ",
	},
	{
		Name:  "P23: the second is not told",
		Edits: []Edit{{"scripts/line.lua call", "until second or", "until first or second or"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the clients hear",
	},
	{
		Name:  "P19: a release calls nobody",
		Edits: []Edit{{"scripts/release.lua", "called or call(line, publish, math.max(told, 0), field, math.max(known, 0), named)", "called or 0"}},
		Pkg:   "./scripts", Run: "^TestSequences_TheInvariants", Says: "were called of",
	},
	{
		Name:  "P32: who takes the lock by a look tells nobody",
		Edits: []Edit{{"scripts/turn.lua taken", "if look == '1' then", "if false then"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the clients hear",
	},
	{
		Name:  "P40: a release's call counts as a look's",
		Edits: []Edit{{"scripts/line.lua call", "field ~= '' and ' 1' or ''", "''"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the clients hear",
	},
	{
		Name:  "P18: leave calls nobody",
		Edits: []Edit{{"scripts/leave.lua", "if held == 0 then", "if false then"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the clients hear",
	},
	{
		Name:  "P14: batch keeps errors to itself",
		Edits: []Edit{{"scripts/batch.lua", "verdict, value = -1, value.err", "verdict, value = -2, 0"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts", Says: "the reply",
	},
	{
		Name:  "P43: any slot is taken for free",
		Edits: []Edit{{"scripts/slots.lua freeSlot", "local taken = takenOf(base, from, to)", "local taken = 0"}},
		Pkg:   "./scripts", Run: "^TestPermitSequences",
	},
	{
		Name: "P43: one slot more than there are", Short: "permit-more",
		Edits: []Edit{{"scripts/slots.lua slotsOf", "return base, tonumber(number) + 1", "return base, tonumber(number) + 2"}},
		Pkg:   "./scripts", Run: "^TestPermitSequences", Says: "Inv13",
	},
	{
		Name: "P43: vacate removes from one slot", Short: "permit-kept",
		Edits: []Edit{{"scripts/vacate.lua removeAny", "for i = 0, n - 1 do", "for i = 0, 0 do"}},
		Pkg:   "./scripts", Run: "^TestPermitSequences", Says: "Inv9",
	},
	{
		Name:  "P48: each reader takes a number",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "if not token then local why", "if true then local why"}},
		Pkg:   "./scripts", Run: "^TestReadWriteSequences$", Says: "Inv2",
	},
	{
		Name:  "Inv4: only who opens a phase takes a number, as the storage sees it",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "token, why = take(counter, expiry) if not token then return nil, why end phase =", "if mode == '' then token, why = take(counter, expiry) else token = tonumber(redis.call('GET', counter) or 0) end phase ="}},
		Pkg:   "./scripts", Run: "^TestReadWriteSequences_ByTheStorage", Says: "Inv4",
	},
	{
		Name:  "P46: a renewal extends no hash",
		Edits: []Edit{{"scripts/readwrite_renew.lua", "lasting(lock, whole, lease)", "nil"}},
		Pkg:   "./scripts", Run: "^TestReadWriteSequences$", Says: "Inv1",
	},
	{
		Name: "P51: a reader's release frees the lock", Short: "read-released",
		Edits: []Edit{{"scripts/readwrite_unlock.lua remove", "local more, why = sweep(lock, enough)", "redis.pcall('PEXPIRE', lock, '0') local more, why = false, nil"}},
		Pkg:   "./scripts", Run: "^TestReadWriteSequences$", Says: "Inv1",
	},
	{
		Name:  "P49: a writer takes what others read",
		Edits: []Edit{{"scripts/readwrite.lua open", "return mode == '' or (mode == 'read' and toRead)", "return mode == '' or mode == 'read'"}},
		Pkg:   "./scripts", Run: "^TestReadWriteSequences$",
	},
}
