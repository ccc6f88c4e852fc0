package breaks

// Guards.
var ofGuards = []Break{
	{
		Name:  "Inv4: a write to Redis that fails half way moves the mark back",
		Edits: []Edit{{"guard/redisguard/guard.lua guarded", "if failed(reply) then return reply", "if failed(reply) then redis.call(seen and 'SET' or 'DEL', marker, seen or nil) return reply"}},
		Pkg:   "./guard/redisguard", Run: "Half|AFailureCounts",
	},
	{
		Name:  "P16: the server is asked for the keys of each use",
		Edits: []Edit{{"guard/redisguard Guard.keysOf", "if p.movable {", "if p.movable || p.first < 1 {"}},
		Pkg:   "./guard/redisguard", Run: "QuestionsForKeys",
	},
	{
		Name:  "Inv4: the token of who found nothing does not count",
		Edits: []Edit{{"guard Memory.do", "case errors.Is(err, ErrAbsent): found = k.found", "case errors.Is(err, ErrAbsent):\nseen, found = before, k.found"}},
		Pkg:   "./guard", Run: "MemoryAbsent",
	},
	{
		Name:  "guard.Memory: a write in a write waits for itself",
		Edits: []Edit{{"guard mark.isHeldBy", "if h == k.holder.Load() {", "if false {"}},
		Pkg:   "./guard", Run: "Memory_Nested",
	},
	{
		Name:  "Inv4: a placeholder without an argument takes the guard's own",
		Edits: []Edit{{"guard/sqlguard Dialect.checkSet", "case largest != args:", "case false:"}},
		Pkg:   "./guard/sqlguard", Run: "ColumnSet",
	},
	{
		Name:  "Inv4: a transaction that was ended in PostgreSQL is not noticed",
		Edits: []Edit{{"guard/sqlguard marker.same", "if now != number {", "if false {"}},
		Pkg:   "./guard/sqlguard", Run: "TestDo",
	},
	{
		Name:  "sqlguard: what fn has committed itself is taken for rolled back",
		Edits: []Edit{{"guard/sqlguard Guard.Do", "if rollback() == sql.ErrTxDone { return", "if false {\nreturn"}},
		Pkg:   "./guard/sqlguard", Run: "TestDo",
	},
	{
		Name: "Inv4: the guard accepts older tokens", Short: "guard-open",
		Edits: []Edit{{"guard/redisguard/guard.lua guarded", "if seen and larger(seen, token) then", "if false then"}},
	},
}
