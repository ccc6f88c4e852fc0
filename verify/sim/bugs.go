package main

import "github.com/fencelock/fencelock/verify/overlay"

// A bug is a break of the library that worlds have to find.
type bug struct {
	name, text string
	faults     string // of the worlds that look for it, separated by commas; "" for all
	servers    int    // of these worlds; 0: by the seed
	edits      []overlay.Edit
}

// rareBugs are those that a few worlds may not find, and why. docs/verification.md says what shows them.
var rareBugs = map[string]string{
	"close-leaves":  "Close has to begin within the half millisecond of an attempt",
	"patience-long": "the ReadTimeout and copies (P8) answer in its place",
	"refusal-slow":  "no pause is longer than a third of the lease",
}

func edit(file, from, to string) overlay.Edit { return overlay.Edit{File: file, Old: from, New: to} }

// Those that program verify finds too have the names that it has for them.
var bugs = []bug{
	{"acquire-held", "an acquire takes a lock that is held", "cut", 1, []overlay.Edit{
		edit("scripts/acquire.lua", "local exists = redis.pcall('EXISTS', lock)", "local exists = redis.pcall('HEXISTS', lock, field)")}},
	{"token-read", "a token is read, not taken", "cut", 1, []overlay.Edit{
		edit("scripts/token.lua", "token = redis.pcall('INCRBY', counter, '1') --", "token = tonumber(redis.call('GET', counter) or 0) + 1 --")}},
	{"repeat-counts", "a repeated acquire counts twice", "replies,dead,late", 1, []overlay.Edit{
		edit("scripts/acquire.lua", "local extended = redis.", "redis.call('HINCRBY', lock, field, 1)\n    local extended = redis.")}},
	{"number-again", "all holds of a client have one number (P1)", "", 1, []overlay.Edit{
		edit("internal/engine/client.go", "c.lastField.Add(1)", "c.lastField.Load()")}},
	{"unlock-any", "an unlock does not look whose lock it is", "", 1, []overlay.Edit{
		edit("scripts/unlock.lua", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)")}},
	{"ghost-kept", "what an acquire without an answer has taken is not released (P3)", "", 1, []overlay.Edit{
		edit("internal/engine/claim.go", "\t\tc.releaser.Abandon(&h.attempts)\n", ""),
		edit("internal/engine/over.go", "return strings.HasPrefix(field, c.id+\":\")", "return field == \"\" && strings.HasPrefix(field, c.id)")}},
	{"no-floor", "tokens with a floor have none", "flush,forgets,failover", 1, []overlay.Edit{
		edit("scripts/token.lua", "token = math.max(last, ", "token = math.max(last, 0 * ")}},
	{"quorum-counters", "tokens of a quorum are by the counters alone", "flush", 5, []overlay.Edit{
		edit("quorum/proposals.go", "	if !known {", "	if known || !known {"),
		edit("quorum/election.go", "	floor := times[len(times)/2] - 1\n", "	floor := int64(0)\n")}},
	{"deadline-reply", "a deadline counts from the reply", "late", 1, []overlay.Edit{
		edit("internal/engine/claim.go", "sentAt: by.SentAt", "sentAt: watchdog.Now()")}},
	{"release-silent", "a release is told to nobody", "cut", 1, []overlay.Edit{
		edit("scripts/unlock.lua", "local told = redis.pcall(publish, channel, '0')", "local told = 1"),
		edit("scripts/line.lua", "return lined(publish, line .. ':' .. client(ticket), message)", "return 1")}},
	{"second-sleeps", "the second in a line does not watch the first", "away,messages", 1, []overlay.Edit{
		edit("internal/line/message.go", "\t\treturn Watch, p.watch(n.watch, \"\", now)\n", "\t\treturn Nothing, 0\n")}},
	{"renew-any", "a renewal does not look whose lock it is", "delete,failover", 1, []overlay.Edit{
		edit("scripts/renew.lua", "local there = redis.pcall('HEXISTS', lock, field)", "local there = redis.pcall('EXISTS', lock)")}},
	{"renew-revives", "a renewal brings back what is gone", "delete,flush", 1, []overlay.Edit{
		edit("scripts/renew.lua", "  if type(there) == 'table' then\n    return there.err\n  end\n",
			"  if there == 0 then\n    redis.call('HSET', lock, field, 1)\n    redis.call('PEXPIRE', lock, lease)\n    return nil\n  end\n")}},

	// Long leases and outages.
	{"freeze-forgotten", "what got no answer matters for a lease, whether Redis is heard of or not (P3)", "freeze", 1, []overlay.Edit{
		edit("internal/releases/attempts.go", "!d.heard && !crowded || a.inFlight > 0", "a.inFlight > 0")}},
	{"no-answer-heard", "that Redis gives no answer counts as one (P3)", "freeze,restart", 1, []overlay.Edit{
		edit("internal/releases/releaser.go", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "s.afterAllAttempts && r.attempts.hear()")}},
	{"release-once", "one release is enough (P3)", "freeze,dead,replies,away", 1, []overlay.Edit{
		edit("internal/releases/releaser.go", "\trl.reschedule(r, after)\n", "\trl.remove(r)\n")}},
	{"over-kept", "a hold that is over keeps its own client from the lock (P38)", "failover", 1, []overlay.Edit{
		edit("internal/engine/over.go", "over := field != \"\" && ls.client.owns(field) && ls.ends == c.ends && !ls.has(field)", "over := false"),
		edit("internal/engine/client.go", "\tif a.Own != \"\" {\n\t\tc.releaseOver(keys, a.Own)\n\t}\n", "")}},
	{"over-taken", "the hold that is there is released, as if it were over (P38)", "", 1, []overlay.Edit{
		edit("internal/engine/over.go", "is(ls.hold) || ", "")}},
	{"lately-empty", "locks are not noted when they are released (P38)", "failover", 1, []overlay.Edit{
		edit("internal/engine/client.go", "\t\tc.lately.note(h.keys)\n", "")}},
	{"wait-unbounded", "a call that does not wait has no bound but its lease", "freeze,dead", 1, []overlay.Edit{
		edit("internal/engine/acquire.go", "min(w.lease, rest)", "max(w.lease, rest)")}},
	{"patience-long", "an attempt is waited for for an hour (P6)", "freeze,dead", 1, []overlay.Edit{
		edit("internal/engine/asker.go", "\tls.awaitAnswer(f, asking)\n", "\tls.awaitAnswer(f, asking)\n\tls.due = time.Now().Add(time.Hour)\n")}},
	{"refusal-slow", "a release of a hold that Redis refuses waits ever longer (P3)", "rights", 1, []overlay.Edit{
		edit("internal/releases/releaser.go", "	if err != nil && r.reason == unlockFailed {\n", "	if false {\n")}},
	{"watchdog-off", "nothing is renewed", "cut", 1, []overlay.Edit{
		edit("internal/engine/hold.go", "	if renewed {\n", "	if false && renewed {\n")}},
	{"no-copies", "a command whose connection is dead is sent over no other one (P8)", "dead", 1, []overlay.Edit{
		edit("scripts/hedge.go", "		if s.alive(ctx, key, step) {\n", "		if s.alive(ctx, key, step) && false {\n")}},
	{"looks-never", "a waiter relies on messages (P10)", "messages", 1, []overlay.Edit{
		edit("internal/engine/settings.go", "		Poll:          time.Second,\n", "		Poll:          time.Hour,\n")}},
	{"close-leaves", "Close does not wait for what is under way, and forgets it (P12)", "leaves", 1, []overlay.Edit{
		edit("internal/engine/client.go", "\tc.awaitReleases(ctx)\n", "\t_ = ctx\n")}},
	{"called-ghost", "a client that is called for a place that it has not got keeps silent (P19)", "replies,dead,away", 1, []overlay.Edit{
		edit("internal/engine/news.go", "\t\t\t\tls.client.leaveLine(ls.contention.keys, ghost)\n", "")}},
	{"ticket-left", "a client whose last caller has given up stays in the line (P18)", "cut", 1, []overlay.Edit{
		edit("internal/engine/line.go", "\t\tls.client.newLeave(ls.contention.keys, ticket, stood).send()\n", "\t\t_ = stood\n")}},
	{"deaf-for-good", "a subscription that was refused is not tried again while its connection lives (P10)", "rights", 1, []overlay.Edit{
		edit("pubsub/link.go", "\t\t\tl.tryRefused(now)\n", "")}},
	{"called-dead", "a release calls the first client, also where nobody listens for it", "dies", 1, []overlay.Edit{
		edit("scripts/line.lua", "      if heard == 0 then\n", "      if heard == 0 and first then\n")}},
	{"wait-lease", "no wait is longer than the lease", "cut", 1, []overlay.Edit{
		edit("internal/engine/acquire.go", "context.WithTimeout(ctx, r.Wait)", "context.WithTimeout(ctx, min(r.Wait, w.lease))")}},
	{"newest-first", "who comes last is the first in the line (P21)", "cut", 1, []overlay.Edit{
		edit("scripts/line.lua", "score = last[#last] + 1 --", "score = last[2] - 1 --")}},
}
