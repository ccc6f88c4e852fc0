package main

// The breaks of the guards.
var ofGuards = []mutant{
	{
		"Inv4: a write to Redis that fails half way moves the mark back",
		"guard/redisguard/guard.lua", "  if failed(reply) then\n    return reply\n", "  if failed(reply) then\n    redis.call(seen and 'SET' or 'DEL', marker, seen or nil)\n    return reply\n",
		"./guard/redisguard", "Half|AFailureCounts",
	},
	{
		"Inv4: a marker in Redis may get another life",
		"guard/redisguard/guard.lua", " or after < before - 1000 then", " then",
		"./guard/redisguard", "AnotherLife",
	},
	{
		"Inv4: a marker in Redis keeps the other life that it got",
		"guard/redisguard/guard.lua", "    put(marker, token, life)\n    return redis.error_reply(changed)\n", "    return redis.error_reply(changed)\n",
		"./guard/redisguard", "AnotherLife",
	},
	{
		"Inv4: the name of a command may be of any type",
		"guard/redisguard/keys.go", "	return \"\", fmt.Errorf(\"the command's name is a %T: pass a string\", arg)\n", "	return text(arg), nil\n",
		"./guard/redisguard", "NameOfACommand",
	},
	{
		"P16: the server is asked for the keys of each use",
		"guard/redisguard/keys.go", "	if p.movable {\n", "	if p.movable || p.first < 1 {\n",
		"./guard/redisguard", "QuestionsForKeys",
	},
	{
		"redisguard: a server that insists is not told the keys of a command",
		"guard/redisguard/writer.go", "	if !w.guard.sharded && !w.guard.insists.Load() {\n", "	if !w.guard.sharded {\n",
		"./guard/redisguard", "InsistsOnDeclaredKeys",
	},
	{
		"redisguard: a command in Do is done to another key than the one that the guard has",
		"guard/redisguard/do.lua", "if ARGV[first.args] ~= marker then", "if false then",
		"./guard/redisguard", "KeysWithAPrefix",
	},
	{
		"P16: a subcommand has its keys where the command has them",
		"guard/redisguard/keys.go", "if len(p.sub) > 0 && len(command) > 1 {", "if false {",
		"./guard/redisguard", "P16_Cluster",
	},
	{
		"Inv4: a write to memory that panics does not count",
		"guard/memory.go", "	seen, found = token, true // also if write does not return\n", "	defer func() {\n		if p := recover(); p != nil {\n			seen, found = before, k.found\n			panic(p)\n		}\n	}()\n	seen, found = token, true\n",
		"./guard", "DoesNotReturn",
	},
	{
		"Inv4: the token of who found nothing does not count",
		"guard/memory.go", "	case errors.Is(err, ErrAbsent):\n		found = k.found\n", "	case errors.Is(err, ErrAbsent):\n		seen, found = before, k.found\n",
		"./guard", "MemoryAbsent",
	},
	{
		"Inv4: the mark of what was found once goes when somebody finds nothing",
		"guard/memory.go", "	case errors.Is(err, ErrAbsent):\n		found = k.found\n", "	case errors.Is(err, ErrAbsent):\n		found = false\n",
		"./guard", "MemoryAbsent",
	},
	{
		"guard.Memory: what does not exist fills it for good",
		"guard/memory.go", "	case !k.found:\n		k.link(&m.absent)\n", "	case !k.found:\n",
		"./guard", "MemoryAbsent",
	},
	{
		"guard.Memory: a write in a write waits for itself",
		"guard/memory.go", "		if h == k.holder.Load() {\n", "		if false {\n",
		"./guard", "Memory_Nested",
	},
	{
		"guard.Memory: a context that is kept is still in its write",
		"guard/memory.go", "		if h == k.holder.Load() {\n", "		if true {\n",
		"./guard", "AContextThatIsKept",
	},
	{
		"guard.Memory: who waits does not look at its context",
		"guard/memory.go", "		case <-turn:\n		case <-ctx.Done():\n", "		case <-turn:\n",
		"./guard", "AContextThatEnds",
	},
	{
		"guard.Memory: a turn that comes too late is lost",
		"guard/memory.go", "	if i < 0 { // the turn", "	if false { // the turn",
		"./guard", "TooLate",
	},
	{
		"httpguard: the headers of an answer without a body are not looked at",
		"guard/httpguard/handler.go", "				a.say(http.StatusOK) // as the server does\n", "",
		"./guard/httpguard", "NotForCaches",
	},
	{
		"httpguard: another Vary takes the place of the header's name",
		"guard/httpguard/guarded.go", "	h.Add(\"Vary\", Header)\n", "",
		"./guard/httpguard", "NotForCaches",
	},
	{
		"httpguard: what is in quotes keeps an answer out of caches",
		"guard/httpguard/guarded.go", "			quoted = !quoted\n", "",
		"./guard/httpguard", "NotForCaches",
	},
	{
		"httpguard: a handler may open its answers to shared caches",
		"guard/httpguard/guarded.go", "		h.Set(\"Cache-Control\", \"no-store\")\n", "",
		"./guard/httpguard", "NotForCaches",
	},
	{
		"httpguard: requests for what does not exist fill the Memory",
		"guard/httpguard/handler.go", "					return guard.ErrAbsent\n", "					return nil\n",
		"./guard/httpguard", "Handler_NotFound",
	},
	{
		"httpguard: a Handler in a Handler waits for itself",
		"guard/httpguard/handler.go", "inner := r.WithContext(ctx)", "inner := r.WithContext(r.Context())",
		"./guard/httpguard", "Handler_Nested",
	},
	{
		"httpguard: the answer to HEAD says nothing",
		"guard/httpguard/problem.go", "	if len(head) == 0 {\n", "	if false {\n",
		"./guard/httpguard", "OfHead",
	},
	{
		"httpguard: the files of an upload stay",
		"guard/httpguard/handler.go", "defer func() { r.MultipartForm = inner.MultipartForm }()", "defer func() {}()",
		"./guard/httpguard", "Uploads",
	},
	{
		"Inv4: a placeholder without an argument takes the guard's own",
		"guard/sqlguard/set.go", "	case largest != args:\n", "	case false:\n",
		"./guard/sqlguard", "ColumnSet",
	},
	{
		"Inv4: what is set may have a WHERE",
		"guard/sqlguard/set.go", "strings.EqualFold(rest[:n], \"WHERE\")", "rest[:n] == \"WHERE\"",
		"./guard/sqlguard", "ColumnSet",
	},
	{
		"Inv4: what is set may end the statement by a zero byte",
		"guard/sqlguard/set.go", "case c == 0 || c == ';':", "case c == ';':",
		"./guard/sqlguard", "ColumnSet",
	},
	{
		"Inv4: nobody looks at the engine of a table",
		"guard/sqlguard/engine.go", "	case !innodb:\n", "	case false:\n",
		"./guard/sqlguard", "TestEngine",
	},
	{
		"Inv4: a transaction that was ended in PostgreSQL is not noticed",
		"guard/sqlguard/marker.go", "	if now != number {\n", "	if false {\n",
		"./guard/sqlguard", "TestDo",
	},
	{
		"sqlguard: what fn has committed itself is taken for rolled back",
		"guard/sqlguard/do.go", "		if rollback() == sql.ErrTxDone {\n			return", "		if false {\n			return",
		"./guard/sqlguard", "TestDo",
	},
	{
		"sqlguard: SQLite does not notice another transaction",
		"guard/sqlguard/marker.go", "			return fmt.Errorf(\"%w: %w\", errEnded, err)\n", "			return nil\n",
		"./guard/sqlguard", "TestDo",
	},
	{
		"sqlguard: a wait that another one has ended is not to be done again",
		"guard/sqlguard/retry.go", "\"40001\", \"40P01\", \"55P03\"", "\"40001\", \"40P01\"",
		"./guard/sqlguard", "TestRetryable",
	},
}
