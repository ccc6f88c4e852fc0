package breaks

// What may be taken without anybody knowing, and holds that are over.
var ofReleases = []Break{
	{
		Name: "P3: what got no answer is forgotten", Short: "ghost-kept",
		Edits: []Edit{
			{"internal/engine Client.abandon", "c.releaser.Abandon(&h.attempts)", ""},
			{"internal/engine Client.owns", `return strings.HasPrefix(field, c.id+":")`, `return field == "" && strings.HasPrefix(field, c.id)`},
		},
	},
	{
		Name: "P3: one release is enough", Short: "release-once",
		Edits: []Edit{{"internal/releases sentRelease.Answered", "rl.reschedule(r, after)", "rl.remove(r)"}},
		Pkg:   "./rlock", Run: "P3_",
	},
	{
		Name: "P3: what got no answer matters for a lease, whether Redis is heard of or not", Short: "freeze-forgotten",
		Edits: []Edit{{"internal/releases Attempts.mattersLocked", "!d.heard && !crowded || a.inFlight > 0", "a.inFlight > 0"}},
		Pkg:   "./rlock", Run: "P3_AFreeze|P15_AHandoffToAServer",
	},
	{
		Name: "P3: that Redis gives no answer is one", Short: "no-answer-heard",
		Edits: []Edit{{"internal/releases sentRelease.Answered", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "s.afterAllAttempts && r.attempts.hear()"}},
		Pkg:   "./rlock", Run: "P3_AFreeze",
	},
	{
		Name: "P3: the pauses do not begin anew with the first answer after a freeze", Short: "thaw-slow",
		Edits: []Edit{{"internal/releases sentRelease.Answered", "r.attempts.hear() { r.answers = 0", "r.attempts.hear() {"}},
	},
	{
		Name:  "P3: a release of a hold that Redis refuses waits ever longer",
		Edits: []Edit{{"internal/releases sentRelease.Answered", "if err != nil && r.reason == unlockFailed {", "if false {"}},
		Pkg:   "./rlock", Run: "P3_RefusedRelease",
	},
	{
		Name:  "P3: what a given-up attempt has taken is not released as soon as it is answered",
		Edits: []Edit{{"internal/releases release.attempted", "if r.index >= 0 && r.underWay == nil {", "if false {"}},
		Pkg:   "./rlock", Run: "P3_GivenUpAcquireIsReleasedWhenAnswered",
	},
	{
		Name:  "P3: a copy without an answer is forgotten with the answer to another one",
		Edits: []Edit{{"internal/releases Attempts.noteAnswer", "if a.Copies > 0 ||", "if"}},
		Pkg:   "./rlock", Run: "P3_FirstCopyOfAcquireAfterItsUnlock",
	},
	{
		Name:  "P12: Close does not wait for what is under way",
		Edits: []Edit{{"internal/engine Client.Close", "c.awaitReleases(ctx)", "_ = ctx"}},
		Pkg:   "./rlock", Run: "P12_Close",
	},
	{
		Name: "P12: ForceUnlock deletes whatever is there", Short: "unlock-any",
		Edits: []Edit{{"scripts/unlock.lua remove", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)"}},
		Pkg:   "./rlock", Run: "P12_|P1_",
	},
	{
		Name:  "P12: ForceUnlock looks once",
		Edits: []Edit{{"internal/engine plain.force", "return freed, !freed, nil", "return freed, false, nil"}},
		Pkg:   "./rlock", Run: "ForceUnlockOfALockThatIsHandedOn",
	},
	{
		Name:  "P12: a handoff that is answered by its copy has passed nothing on",
		Edits: []Edit{{"internal/room Room.passAnswered", "lost || ev.Answer != nil && ev.Answer.Copies > 0", "lost"}},
		Pkg:   "./rlock", Run: "P12_HandoffAnsweredByItsCopy",
	},
	{
		Name: "P12: a handoff without an answer has passed nothing on", Short: "handoff-lost",
		Edits: []Edit{
			{"internal/room Room.gaveUpPass", "r.passOver(Release, true)", "r.passOver(Release, false)"},
			{"internal/room Room.passAnswered", "lost := scripts.Unanswered(ev.Err) && ev.Err != command.ErrNotSent", "lost := scripts.Unanswered(ev.Err) && ev.Err == command.ErrNotSent"},
		},
	},
	{
		Name: "P12: an Unlock that Redis refuses is not sent again", Short: "unlock-left",
		Edits: []Edit{{"internal/engine hold.releaseForAll", "c.releaser.UnlockFailed(&h.attempts)", "if !scripts.Refused(err) {\nc.releaser.UnlockFailed(&h.attempts)\n}"}},
	},
	{
		Name: "P38: a hold that is over keeps its own client from the lock", Short: "over-kept",
		Edits: []Edit{
			{"internal/room Room.isOver", `return field != "" && r.ends == ends && !r.Has(field)`, "return false"},
			{"internal/engine Client.releaseAnswered", `if a.Own != "" { c.releaseOver(keys, a.Own) }`, ""},
		},
		Pkg: "./rlock", Run: "P38_AHoldThatIsOver",
	},
	{
		Name: "P38: the hold that is there is released", Short: "over-taken",
		Edits: []Edit{{"internal/room Room.Has", "field == r.own.field ||", ""}},
		Pkg:   "./rlock", Run: "P38_AHoldThatIsThere",
	},
	{
		Name: "P38: locks are not noted when they are released", Short: "lately-empty",
		Edits: []Edit{{"internal/engine Client.unregisterHold", "c.lately.note(h.lock.keys)", ""}},
		Pkg:   "./rlock", Run: "P38_Others",
	},
}
