package main

// The breaks of attempts, of the copies of a command, and of what a call says that has waited in vain.
var ofAttempts = []mutant{
	{
		"Inv1: a re-entry opens a level of a hold that was lost meanwhile",
		"internal/holder/hold.go", "\tcase h.end != nil:\n\t\tlv.end(h.end)\n\t\treturn nil, h.end.Err\n", "",
		"./rlock", "Inv1_ReentryOf",
	},
	{
		"Inv1: a re-entry opens a level of a hold that was unlocked meanwhile",
		"internal/holder/hold.go", "\tcase len(h.levels) == 0:\n\t\tlv.end(&EndError{Lock: h.lock.Name, Err: ErrUnlocked})\n\t\treturn nil, ErrUnlocked\n", "",
		"./rlock", "Inv1_ReentryOf",
	},
	{
		"Inv12: each error begins the patience anew",
		"internal/engine/contact.go", "\tif n.failure == nil {\n\t\tn.failingSince = sent\n\t}\n", "\tn.failingSince = sent\n",
		"./internal/engine", "Inv12_Patience",
	},
	{
		"Inv12: an error of before a call is why it has waited in vain",
		"internal/engine/contact.go", "\tcase n.failure != nil && !n.failedAt.Before(began):\n\t\tif errors.Is", "\tcase n.failure != nil:\n\t\tif errors.Is",
		"./internal/engine", "Inv12_WhyAWait",
	},
	{
		"Inv12: a call that gets the lock does not end what was known of an outage",
		"internal/engine/contact.go", "ls.first != ls.last || ls.contact != nil {", "ls.first != ls.last {",
		"./internal/engine", "Inv12_",
	},
	{
		"Inv12: a waiter that had an answer asks as rarely as before it at the next error",
		"internal/engine/asker.go", "\t\tls.redisAnswered(a.Why)\n\t\tls.pauses = command.Backoff{}\n", "\t\tls.redisAnswered(a.Why)\n",
		"./rlock", "Inv12_PausesOfAWaiter",
	},
	{
		"Inv12: one try rides errors out for as long as a waiter",
		"internal/engine/acquire.go", "min(onceMore, w.client.set.Patience)", "w.client.set.Patience",
		"./rlock", "Inv12_OneTry",
	},
	{
		"P3: an attempt that was taken back counts as under way",
		"internal/command/command.go", "\t\tf.attempts.TakenBack()\n", "",
		"./rlock", "P3_GivenUpBefore",
	},
	{
		"P3: an attempt that has not left is sent when its call has given up",
		"internal/engine/queue.go", "\t\tls.client.commands.TakeBack(underWay)\n", "",
		"./rlock", "P3_GivenUpBefore",
	},
	{
		"P3: what some servers owe is in doubt when it is released",
		"internal/releases/attempts.go", "!a.Owed && scripts.Unanswered(err) {", "scripts.Unanswered(err) {",
		"./internal/releases", "P3_UntilWhen",
	},
	{
		"a repeat of what got no answer waits for the batches that are under way",
		"internal/engine/claim.go", "; c.hold.attempts.Uncertain() {\n\t\tsender.SendAlone", "; false {\n\t\tsender.SendAlone",
		"./rlock", "RepeatGoesAlone",
	},
	{
		"P6: a waiter's attempt is waited for when its lease is over",
		"internal/engine/asker.go", "\tls.awaitAnswer(f, asking)\n", "\tls.awaitAnswer(f, asking)\n\tls.due = time.Now().Add(time.Hour)\n",
		"./rlock", "P6_AttemptThatHangs",
	},
	{
		"P12: a late error of the first copy is taken for an answer",
		"internal/command/command.go", "\t\t\tif f.Err == nil {\n", "\t\t\tif true {\n",
		"./internal/command", "P12_Copies",
	},
	{
		"P12: a command that has not left may have been executed",
		"internal/command/command.go", "f.Err != errNotSent && ", "",
		"./internal/command", "P12_Copies",
	},
	{
		"P12: repeats without an answer were not executed",
		"internal/command/command.go", "maybeExecuted || againExecuted, last", "maybeExecuted || againExecuted && last != nil, last",
		"./internal/command", "P12_Copies",
	},
	{
		"P12: an attempt without an answer is forgotten at the next refusal",
		"internal/command/repeat.go", "maybeExecuted = maybeExecuted || scripts.Unanswered(err)", "maybeExecuted = scripts.Unanswered(err)",
		"./internal/command", "P12_Retry",
	},
	{
		"P27: a yield counts again with each hold that is handed on",
		"internal/line/refused.go", "\tp.asked, p.called, p.released = told, false, released{}\n", "\tp.called, p.released = false, released{}\n",
		"./internal/line", "P27_AYield",
	},
	{
		"P30: without a line a key that never expires is looked at ever more rarely",
		"internal/line/refused.go", " && a.TTL != scripts.NoExpiry:", ":",
		"./internal/engine", "P30_Looks",
	},
	{
		"P30: without a line the end of a lease is found at the next look",
		"internal/line/refused.go", "\tif a.TTL >= 0 && a.TTL < poll {\n\t\treturn a.TTL + time.Millisecond\n\t}\n", "",
		"./internal/engine", "P30_LeaseEnds",
	},
	{
		"P30: without a line a client takes the lock from itself",
		"internal/engine/asker.go", "d > 0 {\n\t\tls.watchFor(d)", "d > time.Hour {\n\t\tls.watchFor(d)",
		"./internal/engine", "P30_Others",
	},
	{
		"Inv8: the alarm of a wake-up's last user keeps that of the next one from being set",
		"internal/command/wakeup.go", "\t\twake.alarm.Stop()\n\t\twake.alarmAt.Store(0)\n", "\t\twake.alarm.Stop()\n",
		"./internal/command", "WakeupRings",
	},
	{
		"P7: an answer that comes after its copy was given up counts for nothing",
		"internal/command/command.go", "\t\t\tif f.Err == nil {\n", "\t\t\tif false {\n",
		"./rlock", "P7_AnswersOfEarlier",
	},
}
