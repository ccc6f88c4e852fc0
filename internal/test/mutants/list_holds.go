package main

// The breaks of holds: their leases and renewals, their levels and contexts.
var ofHolds = []mutant{
	{
		"Inv1: a re-entry looks whether it is admitted before it waits for its turn only",
		"internal/engine/reenter.go", "	if count == 0 {\n		return nil, errOvertaken\n	}\n", "	if count == 0 {\n		count = h.Count() + 1\n	}\n",
		"./rlock", "P2_ReentriesAtOnce|WorkersOnAnOuterHold|WorkersExclude",
	},
	{
		"Inv1: any call of the holder re-enters",
		"internal/holder/level.go", "		if lv == target {\n", "		if true {\n",
		"./rlock", "WorkersExclude",
	},
	{
		"Inv3, P6: the deadline counts from the reply",
		"internal/engine/claim.go", "sentAt: by.SentAt", "sentAt: watchdog.Now()",
		"./rlock", "DeadlineCounts",
	},
	{
		"Inv3, P6: the deadline has no margin",
		"watchdog/deadline.go", "trust := length - margin(length)", "trust := length",
		"./rlock", "ExplicitLease|P5_ErrLooks",
	},
	{
		"Inv9: the client's books keep the lock",
		"internal/engine/client.go", "\tc.removeUserLocked(h.lockState)\n", "",
		"./internal/engine", "Inv9_",
	},
	{
		"P10: a hold that is forced open by another client learns of it at its renewal",
		"internal/engine/hold.go", "\th.lockState.followHold(h)\n", "",
		"./rlock", "ForcedOpenByAnother",
	},
	{
		"Inv10: a renewal brings back what is gone",
		"scripts/renew.lua", "  if type(there) == 'table' then", "  if there == 0 then\n    redis.call('HSET', lock, field, 1)\n    redis.call('PEXPIRE', lock, lease)\n    return nil\n  end\n  if type(there) == 'table' then",
		"./rlock", "Inv10_",
	},
	{
		"Inv11, P4: a dropped holder is renewed for ever",
		"internal/holder/hold.go", "	if h.owner() != nil {\n", "	if h.owner() != nil || true {\n",
		"./rlock", "P4_DroppedHolder",
	},
	{
		"Inv11, P4: the watchdog keeps the holder alive",
		"internal/holder/level.go", "	lv.parent = context.Background()\n", "	lv.parent = ctx\n",
		"./rlock", "DroppedHolder",
	},
	{
		"Inv11: a level is renewed although its context has ended",
		"internal/holder/hold.go", "h.end != nil || !is || why != nil {", "h.end != nil || !is || why != nil && false {",
		"./rlock", "EndedContextIsNotRenewed",
	},
	{
		"P1: the number in the field is used again",
		"internal/engine/client.go", "c.lastField.Add(1)", "c.lastField.Load()",
		"./rlock", "P1_",
	},
	{
		"P2: re-entries all have the same number",
		"internal/engine/reenter.go", "count, h.changes.next())))\n", "count, h.changes.latest+1)))\n",
		"./rlock", "P2_|ManyReentries",
	},
	{
		"P5: only the watchdog sees that the lease is over",
		"internal/holder/context.go", "h.Lease.PassedAt(now) {", "h.Lease.PassedAt(now) && h == nil {",
		"./rlock", "ErrLooksAtTheClock",
	},
	{
		"P5: Err of a nested hold asks the context below it twice",
		"internal/holder/context.go", "	if passed {\n		return c.ended()\n	}\n	return nil\n", "	_ = passed\n	return c.ended()\n",
		"./rlock", "P5_QuestionsDoNotMultiply",
	},
	{
		"P5: a new holder asks twice for a value that is not there",
		"internal/holder/context.go", "	return c.values.Value(key) //", "	if v := c.values.Value(key); v != nil {\n		return v\n	}\n	return c.Context.Value(key) //",
		"./rlock", "P5_QuestionsDoNotMultiply",
	},
	{
		"P6: a repeated re-entry counts from the repeat",
		"internal/engine/reenter.go", "\tswitch {\n\tcase err != nil:\n\t\th.correctCount()", "\tsent = watchdog.Now()\n\tswitch {\n\tcase err != nil:\n\t\th.correctCount()",
		"./rlock", "RepeatedReentry",
	},
	{
		"P11: an Unlock with the outer context releases the newest level",
		"internal/engine/unlock.go", "\tif lv != nil {\n\t\treturn lv, nil\n\t}\n", "",
		"./rlock", "WrongOrder|SecondUnlock",
	},
	{
		"Inv7: an Unlock after a failed acquire releases the hold outside",
		"internal/engine/lock.go", "return holder.Failed(ctx, &l.id), 0, err", "return ctx, 0, err",
		"./rlock", "Inv7_UnlockAfterAFailedAcquire",
	},
	{
		"the context of a failed acquire hides the levels that are taken with it",
		"internal/holder/failed.go", "return lv == nil || c.hold != nil && c.hold.level.reaches(lv)", "return true",
		"./rlock", "FailedAcquireInAChain",
	},
	{
		"P12: a hold uses its lock's state through its call alone",
		"internal/engine/client.go", "\th.lockState.users++\n", "",
		"./rlock", "P12_LostBefore",
	},
	{
		"Inv1: a question without an answer is not asked again",
		"watchdog/flight.go", "\t\tcase r.Length == 0 && err != nil:\n", "\t\tcase false:\n",
		"./rlock", "Inv1_Question",
	},
}
