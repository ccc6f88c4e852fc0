package main

// The breaks of ForceUnlock, and of what is told of a lock by its hash.
var ofForce = []mutant{
	{
		"P12: a hold that was forced open before its answer came is not told of it",
		"internal/engine/lockstate.go", "\tover = ls.wasForced(h.attempts.Field, o.sentAt)\n", "",
		"./rlock", "ForceUnlockOfAHoldThatIsUnderWay",
	},
	{
		"P12: a hold that was taken anew after ForceUnlock is lost",
		"internal/engine/force.go", "f.field == field && !sent.Time().After(f.at)", "f.field == field",
		"./rlock", "ForceUnlockSparesWhatIsTakenAnew",
	},
	{
		"Inv9: what was forced open is kept for ever",
		"internal/engine/force.go", "return one.at.After(f.until)", "return false",
		"./internal/engine", "NothingIsKeptOfForcedHolds",
	},
	{
		"Inv9: what was forced open is kept for the next lock of a lock state",
		"internal/engine/lockstate.go", "\tls.contact, ls.run, ls.past, ls.contention = nil, handoffRun{}, nil, nil\n", "\tls.contact, ls.run, ls.contention = nil, handoffRun{}, nil\n",
		"./internal/engine", "NothingIsKeptOfForcedHolds",
	},
	{
		"Inv9: others' holds that were forced open are kept",
		"internal/engine/force.go", "freed && strings.HasPrefix(seen.Field, ls.client.id+\":\")", "freed && strings.Contains(seen.Field, \":\")",
		"./internal/engine", "NothingIsKeptOfForcedHolds",
	},
	{
		"P12: ForceUnlock looks once",
		"internal/engine/force.go", "	return freed, !freed, nil\n", "	return freed, false, nil\n",
		"./rlock", "ForceUnlockOfALockThatIsHandedOn",
	},
	{
		"P12: ForceUnlock goes on after a release that got no answer",
		"internal/engine/force.go", "	freed = answer.Held || maybeExecuted || answer.Copies > 0\n", "	freed = answer.Held || maybeExecuted && false || answer.Copies > 0\n",
		"./rlock", "ForceUnlockStopsAfterARelease|P12_",
	},
	{
		"P12: ForceUnlock has no bound",
		"internal/engine/force.go", "bound, cancel := context.WithTimeout(ctx, l.client.set.Patience)", "bound, cancel := context.WithCancel(ctx)",
		"./rlock", "ForceUnlockIsBounded/WithPatience",
	},
	{
		"P12: ForceUnlock does not say why it freed nothing",
		"internal/engine/force.go", "		if missed > 0 {", "		if missed < 0 {",
		"./rlock", "ForceUnlockIsBounded",
	},
	{
		"P10: who is renewed every two seconds listens to no message",
		"watchdog/run.go", "length/3 > SettleAfter", "renewal-now > SettleAfter.Milliseconds()",
		"./rlock", "ForcedOpenByAnotherClient",
	},
	{
		"Inv12: any field is a holder's",
		"scripts/holder.lua", "    if string.match(field, '^[^:]+:%-?%d+$') then", "    if string.sub(field, -1) ~= '#' then",
		"./rlock", "BehaviourAnotherObject",
	},
	{
		"Inv12: an acquire waits for another kind of lock",
		"scripts/acquire.lua", "    if other == 'mode' then\n", "    if false then\n",
		"./rlock", "BehaviourAnotherObject",
	},
	{
		"Inv12: ForceUnlock in a quorum takes any field for a holder",
		"scripts/look.lua", "  if not holder or other then", "  if not holder then",
		"./quorum", "AnotherObjectOfTheName",
	},
	{
		"Inv12: an acquire in a quorum waits for another kind of lock",
		"scripts/vote.lua", "redis.pcall('HEXISTS', lock, 'mode') == 1", "false",
		"./quorum", "AnotherObjectOfTheName",
	},
}
