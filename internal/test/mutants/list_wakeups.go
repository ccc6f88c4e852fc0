package main

// The breaks of what wakes a call, and ends it.
var ofWakeups = []mutant{
	{
		"Inv8: an alarm that comes too late is left as it is",
		"internal/command/wakeup.go", "set != 0 && set <= at {", "set != 0 {",
		"./internal/command", "WakeupRings",
	},
	{
		"Inv8: nobody sets the alarm again after it rang too early",
		"internal/command/wakeup.go", "\t\twake.alarm.Reset(d)\n", "",
		"./internal/command", "WakeupRings",
	},
	{
		"Inv6: a call waits for Redis, not for its context",
		"internal/command/wakeup.go", "	case <-end:\n", "	case <-(chan struct{})(nil):\n",
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
		"internal/engine/acquire.go", "\t\tcase !command.Sleep(w.ctx, pause):\n", "\t\tcase !command.Sleep(w.ctx, pause) && false:\n",
		"./rlock", "Inv12_ContextEndsBetween",
	},
	{
		"Inv12: whoever asks late has asked since the call began",
		"internal/engine/asker.go", "ls.silent = ls.sentAt", "ls.silent = w.began",
		"./rlock", "Inv12_WaitEndsAfter",
	},
}
