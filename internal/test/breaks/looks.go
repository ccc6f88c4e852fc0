package breaks

// What people look at.
var ofLooks = []Break{
	{
		Name:  "presence is gone before the lease that it names",
		Edits: []Edit{{"internal/engine Client.present", "max(c.set.Lease, longestLease(holds))+presence.Every", "c.set.Lease+presence.Every"}},
		Pkg:   "./observe/inspect", Run: "PresenceLasts|PresenceOfALease",
	},
	{
		Name:  "what a client forged is read, however long",
		Edits: []Edit{{"internal/presence reading.choose", "if n <= limit {", "if limit > 0 {"}},
		Pkg:   "./internal/presence", Run: "ForgedLengths",
	},
	{
		Name:  "a hash that is no lock shows its fields",
		Edits: []Edit{{"observe/inspect answers.lock", `l.Other = "a hash that is no lock"`, `l.Other = "a hash that is no lock, " + field`}},
		Pkg:   "./observe/lockui", Run: "NoLock",
	},
	{
		Name:  "of two waits that began at one time the end of one ends both",
		Edits: []Edit{{"observe/lockmetrics Open.count", "if b.n += n; b.n == 0 {", "if b.n += n; b.n == 0 || n < 0 {"}},
		Pkg:   "./observe/lockmetrics", Run: "Open",
	},
}
