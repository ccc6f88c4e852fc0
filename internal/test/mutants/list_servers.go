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
		"P10: a subscription that was refused is not tried again while its connection lives",
		"pubsub/link.go", "\t\t\tl.tryRefused(now)\n", "",
		"./pubsub", "ARefusedChannel",
	},
	{
		"P10: a subscription that is refused is tried again as rarely as the one of long ago",
		"pubsub/link.go", "\t\tl.pause = 0\n", "",
		"./pubsub", "ARefusedChannel",
	},
	{
		"P10: newer subscriptions that are refused put off that the older ones are tried again",
		"pubsub/link.go", "l.refusal = now; l.tryAt.IsZero() {", "l.refusal = now; true {",
		"./pubsub", "ARefusedChannel",
	},
	{
		"P10: a release that nobody may be told of is one that nobody waits for",
		"scripts/unlock.lua", "'table' and -1 or told", "'table' and 0 or told",
		"./rlock", "MayNotPublishUnlocks",
	},
	{
		"P8: renewals on a replica have no error as their reply",
		"scripts/renew_each.lua", "if why and string.find(why, 'READONLY', 1, true) then", "if false then",
		"./scripts", "P8_AReplica",
	},
	{
		"P8: renewals try one idle connection that has ended, or leads to a replica, at a time",
		"scripts/stale.go", "	if !allStale(holds) {\n", "	if true {\n",
		"./rlock", "P8_EndedConnections",
	},
	{
		"P8: each connection that has ended doubles the pause before the next one is tried",
		"internal/command/repeat.go", "if scripts.Ended(err) && b.ended < maxEnded {", "if false {",
		"./rlock", "P8_CallsPastDead",
	},
	{
		"P8: a leave whose connection has ended is lost",
		"internal/engine/line.go", "l.pauses.Next(err, lastLeavePause)", "lastLeavePause",
		"./rlock", "P8_CallsPastDead",
	},
	{
		"P8: a command in a batch waits for the one connection that it was sent over",
		"scripts/batcher.go", "			b.watch(f)\n", "",
		"./rlock", "P8_CallsPastDead",
	},
	{
		"P8: a question waits for the one connection that it was sent over",
		"scripts/hedge.go", "	defer look.Stop()\n", "	look.Stop()\n",
		"./rlock", "P8_CallsPastDead|P8_DeadConnections",
	},
	{
		"P8: a search for a connection that answers sends one PING at a time",
		"scripts/alive.go", "n = min(2*n, maxProbes)", "n = 1",
		"./rlock", "P8_CallsPastDead",
	},
	{
		"P8: a PING over a dead connection takes as long as any command",
		"scripts/alive.go", "		on = one.WithTimeout(probeFor)\n", "		on = one\n",
		"./rlock", "P8_DeadConnections",
	},
	{
		"P8: a server that answers no PING gets copies",
		"scripts/hedge.go", "		if s.alive(ctx, key, step) {\n", "		if s.alive(ctx, key, step); true {\n",
		"./scripts", "P8_ASilentServer",
	},
	{
		"P8: a server that answers no PING is asked again at once",
		"scripts/alive.go", "	stands := quietFor\n", "	stands := time.Duration(0)\n",
		"./scripts", "P8_ASilentServer",
	},
	{
		"P8: a copy of a renewal that fails ends the renewal, which has no answer yet",
		"scripts/hedge.go", "if o := send(ctx); final(o) {", "if o := send(ctx); true {",
		"./scripts", "P8_CopiesThatFail",
	},
	{
		"P8: the copies of all commands are not bounded",
		"scripts/hedge.go", "			default:\n			}\n		}\n		select", "			default:\n				go send(ctx)\n			}\n		}\n		select",
		"./scripts", "P8_CopiesAreFew",
	},
	{
		"P8: a renewal that waits for its confirmation is sent again meanwhile",
		"scripts/hedge.go", "s.confirmTime(), ", "0, ",
		"./scripts", "P8_CopiesAreFew",
	},
	{
		"P12: a handoff that is answered by its copy has passed nothing on",
		"internal/engine/unlock.go", "return false, f.Answer.Copies > 0 || f.", "return false, f.",
		"./rlock", "P12_HandoffAnsweredByItsCopy",
	},
	{
		"P12: a release that is answered by its copy is a loss",
		"internal/engine/unlock.go", " && answer.Copies == 0 {", " {",
		"./rlock", "P12_UnlockAnsweredByItsCopy",
	},
	{
		"P12: a forced release that is answered by its copy has freed nothing",
		"internal/engine/force.go", " || answer.Copies > 0", "",
		"./rlock", "P12_ForceUnlockAnsweredByItsCopy",
	},
	{
		"P3: a copy without an answer is forgotten with the answer to another one",
		"internal/releases/attempts.go", "if a.Copies > 0 || ", "if ",
		"./rlock", "P3_FirstCopyOfAcquireAfterItsUnlock",
	},
	{
		"Inv12: a batch that is given up ends before its callers have their answers",
		"scripts/batcher.go", "	b.scripts.astray(err)\n	for _, f := range over {\n		group(f.ops).answered(nil, err)\n		close(f.end)\n",
		"	b.scripts.astray(err)\n	for _, f := range over {\n		close(f.end)\n	}\n	for _, f := range over {\n		group(f.ops).answered(nil, err)\n",
		"./scripts", "Inv12_CallersHear",
	},
	{
		"P8: renewals do not look at the idle connections for pipelines",
		"scripts/alive.go", " + idleForPipelines(pool)\n", " + 0*idleForPipelines(pool)\n",
		"./scripts", "P8_EndedConnections",
	},
	{
		"P8: renewals on a quorum's nodes try one idle connection that has ended at a time",
		"quorum/extend.go", " repeat: true,", "",
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
		"Inv12: a lost hold does not say what the last renewal heard",
		"internal/engine/hold.go", "h.End(ErrLost, how, why)", "h.End(ErrLost, how, nil)",
		"./rlock", "LostSaysWhatTheLastRenewalHeard|AnotherType",
	},
	{
		"Inv12: a lost hold tells of a renewal before the last",
		"internal/engine/hold.go", "t != nil && time.Since(t.at) < h.Lease.Deadline().Age()", "t != nil",
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
	{
		"P16: names whose keys are in two slots are taken in a cluster",
		"internal/engine/lock.go", "	return l.keys.CheckCluster()", "	return nil",
		"./rlock", "ClusterNames",
	},
}
