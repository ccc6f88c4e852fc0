package main

// The breaks of the batches in which commands are sent, and of the confirmation by replicas.
var ofBatches = []mutant{
	{
		"Inv3: a renewal counts that no replica has",
		"scripts/scripts.go", "			hold.Err = unconfirmed\n", "			_ = unconfirmed\n",
		"./rlock", "Confirm_Renewals",
	},
	{
		"P3: what was not confirmed is not released",
		"internal/releases/attempts.go", "	if a.Held || a.Owed { // also what is not confirmed\n", "	if err == nil && a.Held || a.Owed {\n",
		"./rlock", "Confirm_NoReplicas",
	},
	{
		"Inv1: the confirmation is asked for on another connection than the acquire went over",
		"scripts/confirm.go", "	_ = pipe.Process(ctx, ask)\n	_, failed = pipe.Exec(ctx)\n", "	_, failed = pipe.Exec(ctx)\n	_ = s.rdb.Process(ctx, ask)\n",
		"./scripts", "Confirm_WhatNoReplicaHas",
	},
	{
		"Inv6: a release waits with what is to be confirmed",
		"scripts/batchers.go", "		bs = s.confirmed\n", "		_ = s.confirmed\n",
		"./scripts", "Confirm_ReleasesDoNotWait",
	},
	{
		"P14: a slot that moves ends a whole batch",
		"scripts/deliver.go", "	return forbidden(err) || split(err)\n", "	return forbidden(err)\n",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"P14: a key without rights ends the renewals of all others",
		"scripts/deliver.go", "	return forbidden(err) || split(err)\n", "	return split(err)\n",
		"./scripts", "P14_AForbiddenKeyEnds",
	},
	{
		"P14: more renewals than one script has are not split",
		"scripts/scripts.go", "		case len(part) > 1 && (s.refused(err) || ask): //", "		case len(part) > 1 && (crossSlot(err) || ask): //",
		"./scripts", "P14_",
	},
	{
		"P14: what is to be confirmed does not follow its key",
		"scripts/confirm.go", "	return redis.IsAskError(err)\n", "	return \"\", false\n",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"P14: the node that a key has moved to is not told that it is asked",
		"scripts/confirm.go", "	if to.asking {\n\t\t_ = pipe", "	if to.text && to.asking {\n\t\t_ = pipe",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"a node that hangs keeps the ops of the others",
		"scripts/batchers.go", "return bs.of(on.Options().Addr)", "return bs.of(on.Options().Addr[:1])",
		"./scripts", "BatcherCluster_ANodeThatHangs|BatcherCluster_BatchersFollow",
	},
	{
		"the batchers of nodes that are gone are kept",
		"scripts/batchers.go", "if len(bs.nodes) >= maxBatchers {", "if len(bs.nodes) >= 9*maxBatchers {",
		"./scripts", "BatcherCluster_FewBatchers",
	},
	{
		"P14: a connection that is dead keeps its batch for ever",
		"scripts/batcher.go", "		case took >= b.bound:\n", "		case took >= time.Hour:\n",
		"./scripts", "Batcher_A.*Abandoned",
	},
	{
		"P3: what is abandoned is sent later",
		"scripts/batcher.go", "b.scripts.deliver(f, f.ops)", "b.scripts.deliver(context.Background(), f.ops)",
		"./scripts", "Batcher_WhatIsAbandoned",
	},
	{
		"an abandoned batch works on an op that its caller uses again",
		"scripts/batcher.go", "f.ops = append(f.ops, &f.store[len(f.store)-1])", "f.ops = append(f.ops, op)",
		"./scripts", "Batcher_ABatchThatHangsIsAbandoned",
	},
	{
		"what is answered late is answered twice",
		"scripts/hedge.go", "	case told:\n		return\n", "",
		"./scripts", "Batcher_.*Abandoned",
	},
	{
		"many ops wait for the batches before them",
		"scripts/batcher.go", "		return maxInFlight + maxExtra\n", "		return maxInFlight\n",
		"./scripts", "ManyDoNotWait$",
	},
	{
		"many ops wait for those that the last batch has woken",
		"scripts/batcher.go", "return b.shared && !b.hasMany()", "return b.shared",
		"./scripts", "ManyDoNotWaitForWhoComesBack",
	},
	{
		"a cluster's client is left to find out by itself that a master is down",
		"scripts/run.go", "			rdb.ReloadState(context.Background())\n", "			_ = rdb\n",
		"./scripts", "Cluster_FindsTheNewMaster",
	},
	{
		"P13: go-redis repeats commands by itself",
		"scripts/run.go", "func (command) NoRetry() bool { return true }", "func (command) NoRetry() bool { return false }",
		"./rlock", "P13_",
	},
}
