package main

// The breaks of what depends on the kind and the version of the servers, and of what is said when they refuse.
var ofServers = []mutant{
	{
		"P10: a cluster client makes its servers a cluster",
		"pubsub/bus.go", "	if b.guessed() {\n		answer = b.clustered(ctx)", "	if false {\n		answer = b.clustered(ctx)",
		"./pubsub", "AClusterClientIsNotACluster",
	},
	{
		"P10: only INFO tells whether a server is one of a cluster",
		"pubsub/bus.go", "	case err != nil && !strings.HasPrefix(err.Error(), \"NOPERM\"):\n", "	case false:\n",
		"./pubsub", "AClusterClientIsNotACluster",
	},
	{
		"P10: no answer is taken for no cluster",
		"pubsub/bus.go", "	node, err := b.cluster.MasterForKey(ctx, \"fencelock\")\n	if err != nil {\n		return Auto\n	}\n	info, err := node.Info(ctx, \"cluster\").Result()\n",
		"	node, err := b.cluster.MasterForKey(ctx, \"fencelock\")\n	if err != nil {\n		return Auto\n	}\n	info, err := node.Info(ctx, \"cluster\").Result()\n	if err != nil {\n		return Off\n	}\n",
		"./pubsub", "IsAskedAgain|ToldTheSlots",
	},
	{
		"P10: a release that nobody may be told of is one that nobody waits for",
		"scripts/unlock.lua", "'table' and -1 or told", "'table' and 0 or told",
		"./rlock", "MayNotPublishUnlocks",
	},
	{
		"P8: renewals on a replica have no error as their reply",
		"scripts/renew.lua", "if why and string.find(why, 'READONLY', 1, true) then", "if false then",
		"./scripts", "P8_AReplica",
	},
	{
		"P8: renewals try one idle connection that has ended, or leads to a replica, at a time",
		"scripts/stale.go", "	if !allStale(holds) {\n", "	if true {\n",
		"./rlock", "P8_EndedConnections",
	},
	{
		"P8: a renewal waits for the one connection that it was sent over",
		"scripts/hedge.go", "			if next == 1<<hedges ||", "			if next > 0 ||",
		"./rlock", "P8_DeadConnections",
	},
	{
		"P8: renewals are sent again beside those without an answer, but not twice as many each time",
		"scripts/hedge.go", "			next *= 2\n", "",
		"./rlock", "P8_DeadConnections",
	},
	{
		"P8: a copy of a renewal that fails ends the renewal, which has no answer yet",
		"scripts/hedge.go", "underWay == 0 || ", "underWay >= 0 || ",
		"./scripts", "P8_CopiesThatFail",
	},
	{
		"P8: a renewal sends copies although no connection is idle",
		"scripts/hedge.go", "min(next, s.mayBeStale())", "next",
		"./scripts", "P8_CopiesAreFew",
	},
	{
		"P8: the copies of all renewals are not bounded",
		"scripts/hedge.go", "				default:\n				}\n", "				default:\n					send(func() {})\n				}\n",
		"./scripts", "P8_CopiesAreFew",
	},
	{
		"P8: a renewal that waits for its confirmation is sent again meanwhile",
		"scripts/hedge.go", "s.confirmTime(), ", "",
		"./scripts", "P8_CopiesAreFew",
	},
	{
		"P8: renewals do not look at the idle connections for pipelines",
		"scripts/stale.go", "		idle += pool.PipelineStats.IdleConns\n", "",
		"./scripts", "P8_EndedConnections",
	},
	{
		"P8: renewals on a quorum's nodes try one idle connection that has ended at a time",
		"quorum/extend.go", ", repeat: true}", "}",
		"./quorum", "P8_EndedConnections",
	},
	{
		"P8: a batch on a replica has no error as its reply",
		"scripts/batch.lua", "if string.find(value.err, 'READONLY', 1, true) then", "if false then",
		"./scripts", "P8_AReplica",
	},
	{
		"P8: a renewal that extends nothing writes nothing",
		"scripts/renew.lua", "redis.pcall('PEXPIRE', lock, math.max(left, lease))", "left < tonumber(lease) and redis.pcall('PEXPIRE', lock, lease) or 1",
		"./scripts", "P8_|Confirm",
	},
	{
		"P11: a reservation shortens the expiry",
		"scripts/reserve.lua", "math.max(left, lease)", "lease",
		"./scripts", "Reserve",
	},
	{
		"Inv12: a lost hold does not say what the last renewal heard",
		"internal/engine/hold.go", "\t\th.end.renewalErr = h.lastRenewalError()\n", "",
		"./rlock", "LostSaysWhatTheLastRenewalHeard|AnotherType",
	},
	{
		"Inv12: a lost hold tells of a renewal before the last",
		"internal/engine/hold.go", "t != nil && time.Since(t.at) < h.lease.Deadline().Age()", "t != nil",
		"./rlock", "LostSaysWhatTheLastRenewalHeard",
	},
	{
		"Inv12: a key of another type is renewed until the lease is over",
		"scripts/reply.go", "strings.Contains(why, \"WRONGTYPE\")", "strings.Contains(why, \"no such reply\")",
		"./rlock", "AnotherType",
	},
	{
		"Inv12: MOVED to a single server's client is ridden out",
		"scripts/run.go", "moved || ask {", "false && (moved || ask) {",
		"./rlock", "MOVEDToASingle",
	},
	{
		"Inv12: MOVED to a single server's client is ridden out in company",
		"scripts/deliver.go", "		err = s.astray(err)\n", "		_ = s.astray(err)\n",
		"./rlock", "MOVEDToASingle",
	},
	{
		"Inv12: MOVED to a single server's client is ridden out with replicas",
		"scripts/confirm.go", "		err = s.astray(err)\n", "		_ = s.astray(err)\n",
		"./rlock", "MOVEDToASingle",
	},
	{
		"Inv12: a server without WAITAOF may have it later",
		"scripts/confirm.go", "return fmt.Errorf(\"%w: %w (%s)\", ErrUnconfirmed, err, h.hint)", "return fmt.Errorf(\"%w: %v (%s)\", ErrUnconfirmed, err, h.hint)",
		"./rlock", "AServerWithoutWAITAOF",
	},
	{
		"Inv12: whose client asks the replicas alone is not told the option",
		"scripts/errors.go", "{\"READONLY\", \"the server is", "{\"READWRITE\", \"the server is",
		"./rlock", "Inv12_AFailoverClient",
	},
}
