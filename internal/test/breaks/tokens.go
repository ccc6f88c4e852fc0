package breaks

// Tokens of one server.
var ofTokens = []Break{
	{
		Name:  "Inv2: a floor forgets the counter",
		Edits: []Edit{{"scripts/token.lua take", "math.max(last, now - 1)", "now - 1"}},
		Pkg:   "./fenced", Run: "FloorClockSetBack",
	},
	{
		Name:  "P9: a stable token changes",
		Edits: []Edit{{"internal/engine plain.reenter", "token, tokens := w.options.Fenced && !(h.stable && h.Token() != 0), 1", "token, tokens := w.options.Fenced, 1"}},
		Pkg:   "./fenced", Run: "Stable",
	},
	{
		Name: "Inv2: a token is read, not taken", Short: "token-read",
		Edits: []Edit{{"scripts/token.lua take", "token = redis.pcall('INCRBY', counter, tokens)", "token = tonumber(redis.call('GET', counter) or 0) + 1"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name: "Inv2: tokens with a floor have none", Short: "no-floor",
		Edits: []Edit{{"scripts/token.lua take", "token = math.max(last,", "token = math.max(last, 0 *"}},
		Pkg:   "./fenced", Run: "FloorSurvivesALoss",
	},
}
