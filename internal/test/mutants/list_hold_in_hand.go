package main

// The breaks of a hold in the hand of its user, which Acquire returns, and of the word that somebody waits for it.
var ofHoldsInHand = []mutant{
	{
		"P42: a hold ends with the context of its Acquire",
		"internal/engine/held.go", "\t\tunder = context.WithoutCancel(ctx)\n", "",
		"./rlock", "P42_AHoldOutlives",
	},
	{
		"P42: an acquire is of the holder of its context",
		"internal/engine/held.go", "who == nil || !r.Reenter {", "who == nil {",
		"./rlock", "P42_AcquireIsOfANewHolder",
	},
	{
		"P42: Reenter is of a new holder",
		"internal/engine/held.go", "who == nil || !r.Reenter {", "true {",
		"./rlock", "P42_AcquireIsOfANewHolder",
	},
	{
		"P42: an acquire waits for the hold whose context it was given",
		"internal/engine/held.go", "	return ErrOwnHold\n", "	return nil\n",
		"./rlock", "P42_AcquireIsOfANewHolder",
	},
	{
		"P42: the wait of an Acquire does not end with its context",
		"internal/engine/held.go", "l.acquire(ctx, under, r)", "l.acquire(under, under, r)",
		"./rlock", "AcquireEndsItsWait",
	},
	{
		"P42: an extension is not noted",
		"internal/engine/held.go", "\t\tc.dog.Extend(&h.Lease, answer.sent, lease)\n", "",
		"./rlock", "P42_Extend$",
	},
	{
		"P6: an extension counts from its answer",
		"internal/engine/held.go", "dog.Extend(&h.Lease, answer.sent, lease)", "dog.Extend(&h.Lease, watchdog.Now(), lease)",
		"./rlock", "P6_AnExtensionCounts",
	},
	{
		"P42: a hold that an extension finds gone is not lost",
		"internal/engine/held.go", "		h.lose(\"an extension found the lock gone\", true)\n", "",
		"./rlock", "AHoldThatIsLost",
	},
	{
		"P41: who enters an empty line says nothing",
		"scripts/line.lua", "    redis.pcall(publish, line .. ':waited', '')", "    local _ = publish",
		"./rlock", "P41_TheHolderHears",
	},
	{
		"P41: a holder does not ask who waits already",
		"internal/engine/waited.go", "		go w.ask()\n", "		_ = 0\n",
		"./rlock", "P41_AQuestionThatFails|P41_TheHolderHears",
	},
	{
		"P41: a holder asks once",
		"internal/engine/waited.go", "		w.timer.Reset(asksWaited)\n", "		_ = 0\n",
		"./rlock", "P41_AMessageThatIsLost",
	},
	{
		"P41: a holder hears nothing of its own client's calls",
		"internal/engine/queue.go", "		ls.hold.waited.tell()\n", "		_ = 0\n",
		"./rlock", "P41_TheHolderHears",
	},
	{
		"P41: a question that fails is not asked again",
		"internal/engine/waited.go", "	case scripts.Passing(err):\n", "	case false:\n",
		"./rlock", "P41_AQuestionThatFails",
	},
	{
		"P41: a hold that is over goes on asking",
		"internal/engine/lockstate.go", "	h.waited.end()\n", "",
		"./rlock", "P41_WhoDoesNotWait",
	},
	{
		"Inv6: several locks are taken in the order in which they are given",
		"internal/engine/all.go", "return strings.Compare(a.id.Name, b.id.Name)", "return 0 * strings.Compare(a.id.Name, b.id.Name)",
		"./rlock", "DoAllGoesByTheNames",
	},
	{
		"Inv6: each of several locks is waited for as long as all of them",
		"internal/engine/all.go", "			if each.Wait -= time.Since(began); each.Wait < minWait {\n", "			if _ = began; each.Wait < minWait {\n",
		"./rlock", "TryDoAllHasOneBudget",
	},
	{
		"Inv1: the loss of one of several locks does not end what all protect",
		"internal/engine/all.go", "		ctx = held\n", "",
		"./rlock", "DoAllLosesOne",
	},
	{
		"Inv6: several locks stay taken where one is not to be had",
		"internal/engine/all.go", "		defer func() { err = errors.Join(err, wrap(l, l.Unlock(held))) }()\n", "		defer func(failed *error) {\n			if err == nil {\n				err = errors.Join(err, wrap(l, l.Unlock(held)))\n			}\n		}(&err)\n",
		"./rlock", "TryDoAllHasOneBudget",
	},
	{
		"P41: a question is begun anew beside the one that gets no answer",
		"internal/engine/waited.go", "	if w.asking.Swap(true) {\n", "	if w.asking.Swap(true) && false {\n",
		"./rlock", "P41_ALongOutage",
	},
	{
		"P4: a holder that wanted to know who waits asks on after Close",
		"internal/engine/waited.go", " || isClosed(w.lockState.client.closed)\n	if !over", "\n	if !over",
		"./rlock", "P4_AClosedClientIsGarbage",
	},
	{
		"P42: the context of a hold that is over says that it would wait for itself",
		"internal/engine/held.go", "	if err := own.Err(); err != nil {\n		return err\n	}\n	return ErrOwnHold", "	return ErrOwnHold",
		"./rlock", "P42_AcquireWithTheContext",
	},
	{
		"P12: Shutdown refuses an Acquire under a hold",
		"internal/engine/acquire.go", "	if caller == nil {\n", "	if caller = nil; caller == nil {\n",
		"./rlock", "P12_AcquireUnderAHold",
	},
}
