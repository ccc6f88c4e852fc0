package breaks

// What people look at.
var ofLooks = []Break{
	{
		Name:  "presence is gone before the lease that it names",
		Edits: []Edit{{"internal/engine Client.present", "max(c.set.Lease, longestLease(holds))+presence.Every", "c.set.Lease+presence.Every"}},
		Pkg:   "./observe/inspect", Run: "PresenceLasts|PresenceOfALease",
	},
	{
		Name:  "what a client forged is read, however long",
		Edits: []Edit{{"internal/presence reading.choose", "if n <= limit {", "if limit > 0 {"}},
		Pkg:   "./internal/presence", Run: "ForgedLengths",
	},
	{
		Name:  "a hash that is no lock shows its fields",
		Edits: []Edit{{"observe/inspect answers.lock", `l.Other = "a hash that is no lock"`, `l.Other = "a hash that is no lock, " + field`}},
		Pkg:   "./observe/lockui", Run: "NoLock",
	},
	{
		Name:  "a lock is free where Redis lets nobody in",
		Edits: []Edit{{"observe/inspect pipelined", "return unsent(cmds, err)", "_ = err\n\treturn nil"}},
		Pkg:   "./observe/inspect", Run: "ConnectionThatIsRefused",
	},
	{
		Name:  "a lock is free while Redis loads its data",
		Edits: []Edit{{"observe/inspect pipelined", "!ofOneKey(cmd.Err())", "!isReply(cmd.Err())"}},
		Pkg:   "./observe/inspect", Run: "NotOfOneKey",
	},
	{
		Name:  "of two waits that began at one time the end of one ends both",
		Edits: []Edit{{"observe/lockmetrics Open.count", "if b.n += n; b.n == 0 {", "if b.n += n; b.n == 0 || n < 0 {"}},
		Pkg:   "./observe/lockmetrics", Run: "Open",
	},
	{
		Name:  "what a minority of a quorum's servers has is shown as a hold",
		Edits: []Edit{{"observe/inspect view.lock", "case len(most) >= majority:", "case len(most) > 0:"}},
		Pkg:   "./observe/inspect", Run: "TestMajority",
	},
	{
		Name:  "the rest of a quorum's lease is that of its longest part",
		Edits: []Edit{{"observe/inspect view.held", "v.parts[share[majority-1]]", "v.parts[share[0]]"}},
		Pkg:   "./observe/inspect", Run: "TestMajority",
	},
	{
		Name:  "Free releases a quorum's hold on one of its servers",
		Edits: []Edit{{"observe/inspect Inspector.Free", "if l.IsPart() {", "if false {"}},
		Pkg:   "./observe/inspect", Run: "TestFreeOfAQuorum",
	},
	{
		Name:  "what stands at the name of a slot, and is no permit, is seen as one",
		Edits: []Edit{{"observe/inspect isSeen", "isPermit(l.Holder)", "l.Holder != nil"}},
		Pkg:   "./observe/inspect", Run: "SlotsThatAreSeen",
	},
	{
		Name:  "SlotsWith does not look beyond the first slots",
		Edits: []Edit{{"observe/inspect asked.next", "max(first, 2*a.Seen)", "first"}},
		Pkg:   "./observe/inspect", Run: "SlotsWith",
	},
	{
		Name:  "the page of a semaphore's name says that nobody holds it",
		Edits: []Edit{{"observe/lockui handler.ofName", "if s.servers != nil {", "if true {"}},
		Pkg:   "./observe/lockui", Run: "TestSemaphore",
	},
	{
		Name:  "the permits of a semaphore are rows of their own",
		Edits: []Edit{{"observe/lockui survey.nameOf", `semaphore == ""`, "true"}},
		Pkg:   "./observe/lockui", Run: "TestSemaphore",
	},
	{
		Name:  "the permits of clients without presence are rows of their own",
		Edits: []Edit{{"observe/lockui survey.addContended", "s.withoutPermits(names)", "names"}},
		Pkg:   "./observe/lockui", Run: "TestSemaphoreWithoutPresence",
	},
	{
		Name:  "a leader with a standby is stuck",
		Edits: []Edit{{"observe/lockui handler.judge", `case waits && l.seen.Lasts():`, "case false:"}},
		Pkg:   "./observe/lockui", Run: "Lasting",
	},
	{
		Name:  "a leader that is not heard of is one of many that lead",
		Edits: []Edit{{"observe/lockui survey.addClients", `hold.Lasting == "" || c.Quiet()`, `hold.Lasting == ""`}},
		Pkg:   "./observe/lockui", Run: "Lasting",
	},
	{
		Name:  "a call that waits beside a campaign of its client stands by",
		Edits: []Edit{{"internal/engine lockState.waiting", `|| !same && word == ""`, ""}},
		Pkg:   "./observe/inspect", Run: "Lasting",
	},
	{
		Name:  "the words of holds that are meant to last have no bound",
		Edits: []Edit{{"observe/lockmetrics bounded", "len(known) >= most", "len(known) > 1000"}},
		Pkg:   "./observe/lockmetrics", Run: "Lasting",
	},
	{
		Name:  "a client that stood still has begun when it goes on",
		Edits: []Edit{{"internal/engine presenter.write", "said.There = now - p.first", ""}},
		Pkg:   "./observe/inspect", Run: "PresenceLasts",
	},
	{
		Name:  "a lock named {} has one without a name beside it",
		Edits: []Edit{{"observe/inspect nameOf", `inner != "}"`, "true"}},
		Pkg:   "./observe/inspect", Run: "NamedByBraces",
	},
	{
		Name:  "two locks that share a channel are shown where one is used",
		Edits: []Edit{{"observe/lockui survey.addContended", "s.claims[whole] != nil", "false"}},
		Pkg:   "./observe/lockui", Run: "NamesThatShareAChannel",
	},
	{
		Name:  "the calls of a hundred waiters are shown as those of all",
		Edits: []Edit{{"observe/lockui shownLock.AtLeast", "l.More > 0 ||", "false &&"}},
		Pkg:   "./observe/lockui", Run: "CallsOfALongLine",
	},
	{
		Name:  "of the servers of a quorum that are away one is named",
		Edits: []Edit{{"internal/plain away", "one := range all {", "one := range all[:1] {"}},
		Pkg:   "./observe/lockui", Run: "NobodyAnswers",
	},
}
