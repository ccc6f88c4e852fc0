package main

// The breaks of what wakes a call, and ends it.
var ofWakeups = []mutant{
	{
		"Inv7, P12: an alarm that comes too late is left as it is",
		"internal/engine/wakeup.go", "set != 0 && set <= at {", "set != 0 {",
		"./rlock", "Inv7_|Inv8_|P12_|Inv6_",
	},
	{
		"Inv8: nobody sets the alarm again after it rang too early",
		"internal/engine/wait.go", "\tif !w.due.IsZero() {\n\t\tw.wakeup.notifyAt(w.due)\n\t}\n", "\tif !w.due.IsZero() && w.wakeup.alarmAt.Load() == 0 && w.wakeup.alarm == nil {\n\t\tw.wakeup.notifyAt(w.due)\n\t}\n",
		"./rlock", "Inv8_|Wait|P10_|Handoff",
	},
	{
		"Inv6: a call waits for Redis, not for its context",
		"internal/engine/wakeup.go", "	case <-end:\n", "	case <-(chan struct{})(nil):\n",
		"./rlock", "Inv6_",
	},
	{
		"Inv8, P10: a confirmation wakes nobody",
		"pubsub/link.go", "	for _, s := range ch.subs {\n		s.wake(!confirmed, text)\n	}", "	for _, s := range ch.subs {\n		if !confirmed {\n			s.wake(true, text)\n		}\n	}",
		"./pubsub", "Wake|Broken|Resubscribe",
	},
	{
		"Inv8, P10: a silent connection is trusted for ever",
		"pubsub/link.go", "case quiet >= 2*silence && pinged:", "case false:",
		"./pubsub", "Silent",
	},
	{
		"Inv9: the channel is never given up",
		"pubsub/link.go", "time.Since(ch.idle) >= linger", "false",
		"./pubsub", "GivenUp",
	},
	{
		"Inv12: a call with wait 0 asks once more when its context has ended",
		"internal/engine/acquire.go", "\t\tcase !sleep(w.ctx, pause):\n", "\t\tcase !sleep(w.ctx, pause) && false:\n",
		"./rlock", "Inv12_ContextEndsBetween",
	},
	{
		"Inv12: whoever asks late has asked since the call began",
		"internal/engine/lockstate.go", "ls.startsAskingLocked(w, time.Now())", "ls.startsAskingLocked(w, w.began)",
		"./rlock", "Inv12_WaitEndsAfter",
	},
}
