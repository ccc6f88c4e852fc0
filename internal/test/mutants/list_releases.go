package main

// The breaks of releases and their repeats, of Unlock, ForceUnlock and Close.
var ofReleases = []mutant{
	{
		"P3: a waiter that re-enters forgets its own attempt",
		"internal/engine/queue.go", "lv == nil || holdOfLevel(lv) != c.hold {", "lv == nil {",
		"./rlock", "P3_GhostOfAWaiterThatReenters",
	},
	{
		"Inv7: Unlock needs a context that lives",
		"internal/engine/unlock.go", "	lost := h.lost(now)\n", "	if ctx.Err() != nil {\n		return ctx.Err()\n	}\n	lost := h.lost(now)\n",
		"./rlock", "UserCancels|DoContextEnds|Inv7_",
	},
	{
		"Inv7, P12: Unlock may take any time",
		"internal/engine/unlock.go", "	bound := max(min(h.lockState.client.set.UnlockTimeout, h.remaining(now)), time.Millisecond)\n	if", "	bound := 20*time.Second\n	if",
		"./rlock", "Inv7_",
	},
	{
		"P3: what got no answer is forgotten",
		"internal/engine/claim.go", "\t\tc.releaser.Abandon(&h.attempts)\n", "",
		"./rlock", "P3_GhostOf",
	},
	{
		"P3: one release is enough",
		"internal/releases/releaser.go", "\trl.reschedule(r, after)\n", "\trl.remove(r)\n",
		"./rlock", "P3_",
	},
	{
		"P3: failures use up the quick repeats of a release",
		"internal/releases/releaser.go", "		after = min(after, max(retryRelease-time.Since(s.sentAt), 0)) //", "		_ = retryRelease //",
		"./rlock", "P3_ReleasesAfterAnOutage",
	},
	{
		"P3: what got no answer matters for a lease, whether Redis is heard of or not",
		"internal/releases/attempts.go", "!d.heard && !crowded || a.inFlight > 0", "a.inFlight > 0",
		"./rlock", "P3_AFreeze|P15_AHandoffToAServer",
	},
	{
		"P3: that Redis gives no answer is one",
		"internal/releases/releaser.go", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "s.afterAllAttempts && r.attempts.hear()",
		"./rlock", "P3_AFreeze",
	},
	{
		"P3: Redis is heard of by the answer to a release that was sent before the attempt had ended",
		"internal/releases/releaser.go", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "!scripts.Passing(err) && r.attempts.hear()",
		"./internal/releases", "P3_HeardOf",
	},
	{
		"P3: when Redis is heard of again its releases go on being rare",
		"internal/releases/releaser.go", "		r.answers = 0 // what", "		_ = r.answers // what",
		"./internal/releases", "P3_QuickRepeats",
	},
	{
		"P3: releases that wait for Redis have no bound",
		"internal/releases/releaser.go", "r.attempts.matters(len(r.releaser.releases) > r.releaser.unheard)", "r.attempts.matters(false)",
		"./internal/releases", "P3_ReleasesThatWait",
	},
	{
		"P3: a release of a hold that Redis refuses waits ever longer",
		"internal/releases/releaser.go", "	if err != nil && r.reason == unlockFailed {\n", "	if false {\n",
		"./rlock", "P3_RefusedRelease",
	},
	{
		"P12: Close sends a release that failed no second time",
		"internal/engine/client.go", "			next = now.Add(hurryAgain)\n", "			next = now.Add(time.Hour + hurryAgain)\n",
		"./rlock", "P3_ReleasesAfterAnOutage",
	},
	{
		"P3: what a given-up attempt has taken is not released as soon as it is answered",
		"internal/releases/releaser.go", "\tif r.index >= 0 && r.underWay == nil {\n", "\tif false {\n",
		"./rlock", "P3_GivenUpAcquireIsReleasedWhenAnswered",
	},
	{
		"P12: a Close that meets another one does not wait for it",
		"internal/engine/client.go", "		case <-c.closeEnded:\n", "		default:\n",
		"./rlock", "P12_CloseWhile",
	},
	{
		"P12: Close does not wait for what is under way",
		"internal/engine/client.go", "\tc.awaitReleases(ctx)\n", "\t_ = ctx\n",
		"./rlock", "P12_Close",
	},
	{
		"P12: Close waits for calls, and not for what they have taken",
		"internal/engine/client.go", "\t\tif c.underWay.Load() == 0 && !c.releaser.OwesAny() ||", "\t\tif c.underWay.Load() == 0 ||",
		"./rlock", "P12_Close",
	},
	{
		"P12: ForceUnlock deletes whatever is there",
		"scripts/unlock.lua", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)",
		"./rlock", "P12_|P1_",
	},
	{
		"P12: an Unlock that finds nothing says nil",
		"internal/engine/unlock.go", "	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 {", "	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 && c == nil {",
		"./rlock", "P12_",
	},
	{
		"P3: an attempt that came after its release waits for the next one",
		"internal/releases/releaser.go", "r.attempts.allAnswered() && r.attempts.mayBeTaken() {", "r.attempts.allAnswered() && false {",
		"./rlock", "P3_AttemptAfterItsRelease",
	},
}
