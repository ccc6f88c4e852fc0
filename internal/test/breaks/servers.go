package breaks

// Servers and connections that fail, and batches.
var ofServers = []Break{
	{
		Name: "P8: a command whose connection is dead is sent over no other one", Short: "no-copies",
		Edits: []Edit{{"scripts Scripts.again", "if s.alive(ctx, key, sent, step) {", "if s.alive(ctx, key, sent, step) && false {"}},
	},
	{
		Name:  "P8: each connection that has ended doubles the pause before the next one is tried",
		Edits: []Edit{{"internal/command Backoff.AfterEnded", "if scripts.Ended(err) && b.ended < maxEnded {", "if false {"}},
		Pkg:   "./rlock", Run: "P8_CallsPastDead",
	},
	{
		Name:  "P8: a server that answers no PING gets copies",
		Edits: []Edit{{"scripts Scripts.again", "if s.alive(ctx, key, sent, step) {", "if s.alive(ctx, key, sent, step); true {"}},
		Pkg:   "./scripts", Run: "P8_ASilentServer",
	},
	{
		Name:  "P8: the copies of all commands are not bounded",
		Edits: []Edit{{"scripts Scripts.again", "default: } } select", "default:\ngo send(ctx)\n}\n}\nselect"}},
		Pkg:   "./scripts", Run: "P8_CopiesAreFew",
	},
	{
		Name:  "P8: a batch on a replica has no error as its reply",
		Edits: []Edit{{"scripts/batch.lua", "if string.find(value.err, 'READONLY', 1, true) then", "if false then"}},
		Pkg:   "./scripts", Run: "P8_AReplica",
	},
	{
		Name:  "P10: a hold that is forced open by another client learns of it at its renewal",
		Edits: []Edit{{"internal/engine hold.Settled", "h.lockState.followHold(h)", ""}},
		Pkg:   "./rlock", Run: "ForcedOpenByAnother",
	},
	{
		Name:  "P10: no answer is taken for no cluster",
		Edits: []Edit{{"pubsub Bus.clustered", `node, err := b.cluster.MasterForKey(ctx, "fencelock") if err != nil { return Auto } info, err := node.Info(ctx, "cluster").Result()`, "node, err := b.cluster.MasterForKey(ctx, \"fencelock\")\nif err != nil {\nreturn Auto\n}\ninfo, err := node.Info(ctx, \"cluster\").Result()\nif err != nil {\nreturn Off\n}"}},
		Pkg:   "./pubsub", Run: "IsAskedAgain|ToldTheSlots",
	},
	{
		Name: "P10: a subscription that was refused is not tried again while its connection lives", Short: "deaf-for-good",
		Edits: []Edit{{"pubsub link.write", "l.tryRefused(now)", ""}},
		Pkg:   "./pubsub", Run: "ARefusedChannel",
	},
	{
		Name:  "P10: behind a proxy without subscriptions the bus connects again and again",
		Edits: []Edit{{"pubsub link.refused", "case Lacks(err):", "case false:"}},
		Pkg:   "./pubsub", Run: "P10_AServerWithoutSubscriptions",
	},
	{
		Name:  "P13: go-redis repeats commands by itself",
		Edits: []Edit{{"scripts command.NoRetry", "true", "false"}},
		Pkg:   "./rlock", Run: "P13_",
	},
	{
		Name:  "P14: a key without rights ends the renewals of all others",
		Edits: []Edit{{"scripts Scripts.refused", "return forbidden(err) || split(err)", "return split(err)"}},
		Pkg:   "./scripts", Run: "P14_AForbiddenKeyEnds",
	},
	{
		Name:  "P14: an op that may not ask for the time ends its batch",
		Edits: []Edit{{"scripts/token.lua take", "redis.pcall('TIME')", "redis.call('TIME')"}},
		Pkg:   "./scripts", Run: "Floor_P14",
	},
}
