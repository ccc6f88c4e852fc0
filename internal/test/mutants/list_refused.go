package main

// The breaks of the line where a server refuses a part of it, or has something else in its place.
var ofRefused = []mutant{
	{
		"P14: who waits for a lock in a slot that moves is told nothing, and the lock is not released",
		"scripts/kind.go", "(forbidden(err) || split(err)) && op.kind.lined", "forbidden(err) && op.kind.lined",
		"./scripts", "P14_ASlotThatMovesAndTheLine",
	},
	{
		"P30: a refused line refuses the op",
		"scripts/op.go", "	if op.lineRefused(err) {\n", "	if false {\n",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: a refused line refuses the op in company",
		"scripts/deliver.go", "case len(g) == 1 && g[0].lineRefused(err):", "case false:",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: a refused line refuses the op that is to be confirmed",
		"scripts/confirm.go", "case len(g) == 1 && g[0].lineRefused(err):", "case false:",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: nobody hears that the line was refused",
		"scripts/kind.go", "	o.outside = forbidden(err)\n", "",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: who may not call is refused the release",
		"scripts/line.lua", "return lined(publish, line", "return redis.call(publish, line",
		"./scripts", "P30_WithoutTheRightToTheCalls",
	},
	{
		"P30, P14: a line that cannot be read keeps the lock",
		"scripts/line.lua", "heads = {} ", "do return nil, heads end ",
		"./scripts", "P30_WithoutTheRightToTheCalls|P14_AnotherTypeInPlace",
	},
	{
		"P30: a refused command of the line is not noticed",
		"scripts/line.lua", "    refused = 10\n", "",
		"./scripts", "P30_OneCommand|P30_ReleaseWithOne",
	},
	{
		"P30: a client enters a line that it cannot leave",
		"scripts/line.lua", "if unproven ~= '' then", "if false then",
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: a client that no message reaches is in the line",
		"scripts/line.lua", "if name ~= line then", "if false then",
		"./rlock", "P30_KeysWithAPrefix",
	},
	{
		"P30: a hook changes the keys twice, where a server has not got the script",
		"scripts/run.go", "func (s *Scripts) send(ctx context.Context, sc *script, args func() []any) (any, error) {\n", "func (s *Scripts) send(ctx context.Context, sc *script, make func() []any) (any, error) {\n\tall := make()\n\targs := func() []any { return all }\n",
		"./rlock", "P30_KeysWithAPrefix",
	},
	{
		"P30: no client tries what the line takes before it enters",
		"internal/engine/line.go", "\tt.Unproven = t.Ticket != \"\" && !ls.client.lineProven.Load()\n", "",
		"./rlock", "P30_",
	},
	{
		"P30: a neighbour's refusal is everybody's",
		"scripts/kind.go", `keys[:2], "refused = false\n    ",`, `keys[:2], "",`,
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: who is refused on the way to a free lock waits for its turn",
		"scripts/wait.lua", "if refused and verdict == 0 then", "if false then",
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: a release without the line leaves its client's ticket there",
		"scripts/release.lua", "if refused and place ~= 0 then", "if false then",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: who may not leave the line calls the first there, itself",
		"scripts/leave.lua", "  if refused then\n    return -2, 0", "  if refused then\n    return -2, call(line, publish, 0, '', 0)",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: tickets that may not be taken out are passed again and again",
		"scripts/line.lua", "(#dead >= 682 and not refused) and", "#dead >= 682 and",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: a handoff is refused each time, and nobody says so",
		"internal/engine/unlock.go", "if scripts.Denied(f.Err) && ", "if false && ",
		"./internal/docs", "P30_OneRightLess/server/.hmget",
	},
	{
		"P30: who may not enter the line is refused",
		"scripts/line.lua", "lined('ZADD'", "redis.call('ZADD'",
		"./scripts", "P30_WithoutTheRightToTheCalls",
	},
	{
		"P7: a user who may not make it expire begins a line",
		"scripts/line.lua", "    lined('PEXPIRE', line, 600000) -- who", "    redis.pcall('PEXPIRE', line, 600000) -- who",
		"./scripts", "P7_NoLine",
	},
	{
		"P8: a replica says that it is another's turn",
		"scripts/wait.lua", "local written = writable(lock, field)",
		"local written = 0",
		"./scripts", "P8_AReplicaGivesNoAnswerAboutTheLine",
	},
	{
		"P14: somebody else's data in place of the line ends a release",
		"scripts/line.lua", "local heads = lined('ZRANGE', line, from", "local heads = redis.call('ZRANGE', line, from",
		"./scripts", "P14_AnotherTypeInPlace",
	},
}
