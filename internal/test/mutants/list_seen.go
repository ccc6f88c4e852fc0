package main

// Breaks of what people see from outside: presence, metrics, the log.
var ofSeen = []mutant{
	{
		"presence is gone before the lease that it names",
		"internal/engine/presence.go", "max(c.set.Lease, longestLease(holds))+presence.Every", "c.set.Lease+presence.Every",
		"./observe/inspect", "PresenceLasts|PresenceOfALease",
	},
	{
		"presence is gone before a renewal's lease is over",
		"internal/engine/presence.go", "max(c.set.Lease, longestLease(holds))+presence.Every", "longestLease(holds)",
		"./observe/inspect", "PresenceLasts",
	},
	{
		"a lease that outlasts what was written is not written soon",
		"internal/engine/acquire.go", "\tw.client.presenter.takes(w.lease)\n", "",
		"./observe/inspect", "PresenceOfALease",
	},
	{
		"each lease that outlasts what was written is written, held or not",
		"internal/engine/presence.go", "} else if p.outlasted() {", "} else {",
		"./observe/inspect", "PresenceOfALease",
	},
	{
		"a client with short leases lets the index of clients expire",
		"internal/presence/index.lua", "if redis.call('PTTL', KEYS[1]) < 2 * ARGV[2] then", "if true then",
		"./observe/inspect", "PresenceExpiresWithTheLease",
	},
	{
		"what a client forged is read, however long",
		"internal/presence/read.go", "		if n <= limit {\n", "		if limit > 0 {\n",
		"./internal/presence", "ForgedLengths",
	},
	{
		"the lists of all clients together have no bound",
		"internal/presence/read.go", "total > maxRead", "total < 0",
		"./internal/presence", "ForgedLists",
	},
	{
		"the long lists are read first",
		"internal/presence/read.go", "cmp.Compare(a.lists(), b.lists())", "cmp.Compare(b.lists(), a.lists())",
		"./internal/presence", "ForgedLists",
	},
	{
		"a forged time is after the year 9999",
		"internal/presence/read.go", `time.UnixMilli(number("since", lastTime))`, `time.UnixMilli(number("since", math.MaxInt64))`,
		"./internal/presence", "ForgedNumbers",
	},
	{
		"a client writes lists that nobody reads",
		"internal/presence/presence.go", "len(text)+len(one) >= MaxBytes", "len(text)+len(one) < 0",
		"./internal/presence", "LongNames",
	},
	{
		"a hash that is no lock shows its fields",
		"observe/inspect/answers.go", `l.Other = "a hash that is no lock"`, `l.Other = "a hash that is no lock, " + field`,
		"./observe/lockui", "NoLock",
	},
	{
		"the line of a lock shows what is no ticket",
		"observe/inspect/answers.go", "return !ticketForm.MatchString(ticket)", "return false",
		"./observe/lockui", "NoLock",
	},
	{
		"of two waits that began at one time the end of one ends both",
		"observe/lockmetrics/open.go", "if b.n += n; b.n == 0 {", "if b.n += n; b.n == 0 || n < 0 {",
		"./observe/lockmetrics", "Open",
	},
	{
		"a hold that ended before it began is open for ever",
		"observe/lockmetrics/open.go", "if b.n += n; b.n == 0 {", "if b.n = max(b.n+n, 0); b.n == 0 {",
		"./observe/lockmetrics", "Open",
	},
	{
		"a late error of a command beside answers is an outage",
		"internal/engine/outage.go", "heard.After(sent)", "false",
		"./internal/engine", "Outages",
	},
	{
		"a connection that broke is an outage",
		"internal/engine/outage.go", "away >= shortOutage && ", "",
		"./internal/engine", "Outages",
	},
	{
		"an answer of one node of a cluster ends the outage of another",
		"internal/engine/outage.go", "c.cluster && slot != o.slot", "false",
		"./internal/engine", "Outages",
	},
	{
		"the log does not say that an outage goes on",
		"internal/engine/outage.go", "!now.Before(o.next)", "o.next.IsZero()",
		"./internal/engine", "Outage",
	},
	{
		"an outage that the log did not tell of is over in the log",
		"internal/engine/outage.go", "o.on.Load() && !o.next.IsZero()", "o.on.Load()",
		"./internal/engine", "Outages",
	},
}
