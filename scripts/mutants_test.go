package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// mutant is a script with one thing wrong. TestSequences is worth as much as it catches of these.
type mutant struct {
	name     string
	text     *string // of the function, which runs alone and in a batch
	old, new string  // a part of it, and what stands there instead
	reason   string  // a part of the failure that must come of it, "" for any
}

const (
	repeated  = "again(counter, expiry)"
	taken     = "take(counter, expiry)"
	extended  = "math.max(left, lease)"
	isRepeat  = "local extended = redis" // the first line that only a repeat comes to
	isThere   = "if there == 0 then"
	noReplica = "local written = redis.pcall('HDEL', lock, field)"
	removes   = "redis.pcall('HDEL', lock, field, field .. '#')"
	notTaken  = "(tonumber(redis.call('GET', counter) or 0) or 0)"
	ownOnly   = "string.match(holder, '^[^:]*:') == string.match(field, '^[^:]*:') and holder or nil"
)

var mutants = []mutant{
	{"acquire counts a repeat", &acquireText, isRepeat, "redis.call('HINCRBY', lock, field, 1)\n    " + isRepeat, ""},
	{"acquire gives a repeat a new token", &acquireText, repeated, taken, ""},
	{"acquire gives a repeat no token", &acquireText, repeated, "0", ""},
	{"a lost counter is not replaced", &tokenText, "return take(counter, expiry)", "return 0", ""},
	{"any text is taken for a number", &tokenText, "if not tonumber(token) then", "if false then", "spoilt"},
	{"a repeat of acquire shortens the expiry", &acquireText, extended, "lease", "time that is left"},
	{"a repeat of acquire extends nothing", &acquireText, extended, "redis.call('PTTL', lock)", ""},
	{"acquire takes a held lock", &acquireText, "redis.pcall('EXISTS', lock)", "redis.pcall('HEXISTS', lock, field)", ""},
	{"acquire cleans up the holder's count", &acquireText, noReplica, "local written = redis.pcall('DEL', lock)", ""},
	{"acquire sets no expiry", &acquireText, "redis.pcall('PEXPIRE', lock, lease)", "1", "time that is left"},
	{"acquire gives the old token", &acquireText, taken, notTaken, ""},
	{"acquire tells seconds", &acquireText, "return 0, left", "return 0, redis.call('TTL', lock)", "in the reply"},
	{"acquire says lost for held", &acquireText, "return 0, left", "return -2, 0", ""},

	{"level adds", &levelText, "redis.pcall('HSET', lock, field, count, change, op)",
		"redis.call('HINCRBY', lock, field, 1) redis.call('HSET', lock, change, op)", "the hash"},
	{"level asks for no change number", &levelText, ">= tonumber(op)", "< -1", ""},
	{"level counts the same change again", &levelText, ">= tonumber", "> tonumber", ""},
	{"level keeps no change number", &levelText, ", change, op)", ")", "the hash"},
	{"level compares change numbers as text", &levelText,
		"tonumber(latest or 0) >= tonumber(op)", "(latest or '0') >= op", ""},
	{"level takes a lock that was lost", &levelText, isThere, "if false then", ""},
	{"level takes a free lock", &levelText, isThere, "if there == 0 and redis.call('EXISTS', lock) == 1 then", ""},
	{"level shortens the expiry", &levelText, extended, "lease", "time that is left"},
	{"level extends nothing", &levelText, extended, "redis.call('PTTL', lock)", ""},
	{"an inner unlock ends the lock", &levelText, "if tonumber(lease) > 0 then", "if true then redis.call('PEXPIRE', lock, lease)", ""},
	{"level gives a repeat a new token", &levelText, repeated, taken, ""},
	{"level says held for lost", &levelText, "-2, 0", "1, 0", "the reply"},

	{"unlock asks for no field", &unlockText, removes, "redis.pcall('DEL', lock)", ""},
	{"unlock subtracts", &unlockText, removes, "redis.pcall('HEXISTS', lock, field) if removed == 1 then redis.call('HINCRBY', lock, field, -1) end", "the hash"},
	{"unlock leaves the change number", &unlockText, removes, "redis.pcall('HDEL', lock, field)", "the hash"},
	{"unlock removes the change number only", &unlockText, removes, "redis.pcall('HDEL', lock, field .. '#')", ""},
	{"unlock says released for gone", &unlockText, "return 0, own(holding(lock) or '', field) or 0", "return 1, 0", "the reply"},

	{"every hold is the asker's own", &holderText, ownOnly, "holder ~= '' and holder or nil", "the reply"},
	{"no hold is the asker's own", &holderText, ownOnly, "nil", "the reply"},
	{"acquire does not say whose hold has the lock", &acquireText, "owned and {value, owned} or value", "value", "the reply"},
	{"wait does not say whose hold has the lock", &waitText, "return 0, {left, -1, 0, head or '', owned}", "return 0, {left, -1, 0, head or ''}", "the reply"},
	{"who enters the line is not told whose hold has the lock", &waitText, "score, head or '', owned}", "score, head or ''}", "the reply"},
	{"a release does not say whose hold has the lock", &unlockText, "own(holding(lock) or '', field) or 0", "0", "the reply"},

	{"transfer asks for no old hold", &transferText, "not counts[2]", "redis.call('EXISTS', lock) == 0", ""},
	{"transfer takes a free lock", &transferText, "not counts[2]", "not counts[2] and redis.call('EXISTS', lock) == 1", ""},
	{"transfer leaves the old hold", &transferText, "redis.pcall('HDEL', lock, old, old .. '#')", "redis.pcall('HDEL', lock, old .. '#')", ""},
	{"transfer leaves the change number", &transferText, ", old, old .. '#')", ", old)", "the hash"},
	{"transfer removes the old hold first", &transferText, "local counted = redis.pcall('HINCRBY', lock, field, '1')",
		"local expires = redis.pcall('PEXPIRE', lock, lease) redis.pcall('HDEL', lock, old, old .. '#')\n  local counted = redis.pcall('HINCRBY', lock, field, 1) if counted then return 1, token end", "time that is left"},
	{"transfer hands the count on", &transferText, "redis.pcall('HINCRBY', lock, field, '1')",
		"redis.pcall('HINCRBY', lock, field, redis.call('HGET', lock, old))", "the hash"},
	{"transfer takes no token", &transferText, taken, notTaken, ""},
	{"transfer gives a repeat a new token", &transferText, repeated, taken, ""},
	{"transfer gives a repeat no token", &transferText, repeated, "0", ""},
	{"transfer knows no repeat", &transferText, "if counts[1] then", "if false then", ""},
	{"transfer sets no expiry", &transferText, "redis.pcall('PEXPIRE', lock, lease)", "1", "time that is left"},
	{"transfer extends only", &transferText, "redis.pcall('PEXPIRE', lock, lease)", "redis.pcall('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))", "time that is left"},
	{"a repeat of transfer shortens the expiry", &transferText, extended, "lease", "time that is left"},
	{"a repeat of transfer extends nothing", &transferText, extended, "redis.call('PTTL', lock)", "time that is left"},
	{"transfer says held for gone", &transferText, "-2, 0", "1, 0", "the reply"},

	{"acquire knows no repeat", &acquireText, "if holder ~= field then", "if true then", ""},

	{"a newcomer goes before the first", &lineText, "return not head or head == ticket, head", "return true, head", "the reply"},
	{"a newcomer without a ticket goes before the first", &tryText, "redis.pcall('EXISTS', lock, line)", "redis.pcall('EXISTS', lock)", ""},
	{"who has the lock stays in the line", &lineText, "lined('ZREM', line, ticket)\n  if look", "redis.pcall('EXISTS', line)\n  if look", "the line"},
	{"whose acquire is repeated stays in the line", &waitText, "lined('ZREM', line, ticket)\n    end\n    if verdict ~= 0", "redis.pcall('EXISTS', lock)\n    end\n    if verdict ~= 0", "the line"},
	{"who takes the lock removes the first", &waitText, "lined('ZREM', line, ticket)\n    end\n    if verdict ~= 0", "redis.pcall('ZREMRANGEBYRANK', line, 0, 0)\n    end\n    if verdict ~= 0", "the line"},
	{"nobody calls a lone first", &lineText, "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or heads[2] == ticket)", ""},
	{"who looks calls nobody", &lineText, "(look == '1' or #heads == 1 or heads[2] == ticket)", "(#heads == 1 or heads[2] == ticket)", ""},
	{"everybody calls the first", &lineText, "(look == '1' or #heads == 1 or heads[2] == ticket)", "true", ""},
	{"the second does not call", &lineText, "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or #heads == 1)", ""},
	{"who comes back is at the end when the first one is looked for", &lineText, "enter(line, ticket, place) --", "--", ""},
	{"whoever is first is stale", &lineText, "head == stale and", "stale ~= '' and", ""},
	{"a stale first stays", &lineText, "lined('ZREM', line, head) == 1", "true", ""},
	{"a stale first is not told", &lineText, "tell(line, publish, head, 'd ' .. head)", "", "the clients hear"},
	{"a held lock's first is dropped", &waitText, "left, calls, owned = value, second, of", "left, calls, owned = value, second, of redis.pcall('ZREM', line, stale)", ""},
	{"another's turn is a held lock", &waitText, "calls, owned = -2, nil, true, nil", "calls, owned = -1, nil, true, nil", "in the reply"},
	{"who waits is not in the line", &waitText, "return 0, {left, before, score, head or '', owned}", "return 0, {left, -1, 0, head or '', owned}", "the reply"},
	{"who is first is not said", &waitText, "score, head or '', owned}", "score, '', owned}", "the reply"},

	{"the first does not tell the second that it is alive", &lineText, "if there and before == 0 and held then", "if false then", "the clients hear"},
	{"who comes as the first tells the second that it is alive", &lineText, "if there and before == 0 and held then", "if before == 0 and held then", ""},
	{"who is not the first tells the second that it is alive", &lineText, "if there and before == 0 and held then", "if there and held then", "the clients hear"},

	{"newcomers are first", &lineText, "score = last[#last] + 1", "score = last[2] - 1", ""},
	{"newcomers go by the clock", &lineText, "if #last == 0 then", "if true then last = {}", ""},
	{"a place is forgotten", &lineText, "if place ~= '' then", "if false then", ""},
	{"a place is the end at best", &lineText, "math.min(score, tonumber(place))", "math.max(score, tonumber(place))", ""},
	{"a repeat enters again", &lineText, "'ZADD', line, 'NX',", "'ZADD', line,", ""},
	{"the line never expires", &lineText, "if #last == 0 or added == 0", "if added == 0", "line"},
	{"a repeat does not renew the line", &lineText, "or added == 0 or", "or", "the line lives"},
	{"everybody has two before him", &lineText, "return text, #last / 2", "return text, 2", "the reply"},
	{"a repeat tells the end of the line", &lineText, "tonumber(there) or score", "score", "the reply"},
	{"a repeat tells of nobody before him", &lineText, "math.min(tonumber(rank) or 2, 2)", "0", "the reply"},

	{"the second is called", &lineText, "first, second, batch, from = {}, nil, nil, 2, 0", "first, second, batch, from = {}, nil, nil, 2, 1", ""},
	{"the second is not told", &lineText, "until second or", "until first or second or", "the clients hear"},
	{"the third is told too", &lineText, "        second = ticket\n        break", "        second = ticket", "the clients hear"},
	{"the second is not told of whom", &lineText, "' ' .. first .. (field", "' ' .. ticket .. (field", "the clients hear"},
	{"a deaf second ends the call", &lineText, "if heard == 0 then", "if heard == 0 and not first then", "the line"},
	{"the dead stay", &lineText, "if #dead > 0 then", "if false then", "the line"},
	{"the first dead one ends the call", &lineText, "if heard == 0 then", "if false then", ""},
	{"who listens besides is not said", &lineText, "and told or math.max(told - known, 0))", "and 0 or 0)", "the clients hear"},
	{"who releases is one of the others", &lineText, "math.max(told - known, 0)", "told", "the clients hear"},
	{"others are fewer than none", &lineText, "math.max(told - known, 0)", "told - known", "the clients hear"},
	{"calls go to all clients", &lineText, "line .. ':' .. client(ticket)", "line", ""},

	{"a release calls nobody", &releaseText, "called or call(line, publish, math.max(told, 0), field, math.max(known, 0), named)", "called or 0", ""},
	{"a late release calls", &releaseText, "remove(lock, field)\n", "remove(lock, field)\n  if verdict ~= 1 then call(line, publish, 0, '', 0) end\n", ""},
	{"a late release enters", &releaseText, "remove(lock, field)\n", "remove(lock, field)\n  if verdict ~= 1 and again then enter(line, again, '') end\n", ""},
	{"a release never looks at the line", &releaseText, "not (again or second)", "not again", ""},
	{"a release looks at the line each time", &releaseText, "not (again or second)", "false", ""},
	{"who enters does not mark the hold", &acquireText, "type(redis.pcall('HINCRBY', lock, holder .. '#', '0')) ~= 'table'", "true", ""},
	{"who does not enter marks the hold", &acquireText, "local marked = mark and not second", "local marked = not second", "the hash"},
	{"a release does not enter again", &releaseText, "enter(line, again, '') or 0", "0", ""},
	{"a release enters after the call", &releaseText, "return 1, {told, called, place}", "redis.pcall('ZREM', line, again) enter(line, again, '') return 1, {told, called, place}", ""},
	{"a release does not say who was told", &releaseText, "return 1, {told, called, place}", "return 1, {0, called, place}", "the reply"},
	{"a release does not say its place", &releaseText, "return 1, {told, called, place}", "return 1, {told, called, 0}", "the reply"},

	{"each release is told to all", &lineText, "% (waiting + 1) > 0", "% (waiting + 1) > waiting", "the reply"},
	{"those in no line are never told", &lineText, "% (waiting + 1) > 0", "% (waiting + 1) >= 0", "the reply"},
	{"those in no line have each second turn", &lineText, "% (waiting + 1) > 0", "% 2 > 0", "the reply"},
	{"a lone client is left to itself", &lineText, "waiting > 1", "waiting > 0", "the reply"},
	{"who leaves last tells nobody", &leaveText, "if called == 0 then", "if false then", "the clients hear"},
	{"who leaves tells all", &leaveText, "if called == 0 then", "if true then", "the clients hear"},

	{"who takes the lock by a look tells nobody", &lineText, "if look == '1' then", "if false then", "the clients hear"},
	{"who was called tells who is near", &lineText, "if look == '1' then", "if true then", "the clients hear"},
	{"a look's call counts as a release's", &lineText, "field ~= '' and ' 1' or ''", "' 1'", "the clients hear"},
	{"a release's call counts as a look's", &lineText, "field ~= '' and ' 1' or ''", "''", "the clients hear"},
	{"a release that finds nothing on a free lock calls nobody", &releaseText, "if verdict == 0 and", "if false and", "the clients hear"},
	{"a release that finds nothing calls while the lock is held", &releaseText, "redis.pcall('EXISTS', lock) == 0", "true", "the clients hear"},
	{"a release that finds nothing and calls nobody tells nobody", &releaseText, "call(line, publish, 0, '', 0) == 0 then", "call(line, publish, 0, '', 0) == 3 then", "the clients hear"},
	{"a release that finds nothing tells all", &releaseText, "call(line, publish, 0, '', 0) == 0 then", "call(line, publish, 0, '', 0) >= 0 then", "the clients hear"},
	{"leave takes out the first", &leaveText, "lined('ZREM', line, ticket)", "redis.pcall('ZREMRANGEBYRANK', line, 0, 0)", ""},
	{"leave takes out nobody", &leaveText, "lined('ZREM', line, ticket)", "0", ""},
	{"who was not in the line calls nobody", &leaveText, "if held == 0 then", "if held == 0 and removed == 1 then", "the clients hear"},
	{"leave calls nobody", &leaveText, "if held == 0 then", "if false then", "the clients hear"},
	{"leave calls for a held lock", &leaveText, "if held == 0 then", "if true then", ""},
	{"leave tells nobody", &leaveText, "if removed == 1 then", "if false then", "the clients hear"},
	{"leave tells who is second only", &lineText, "'ZRANGE', line, 0, 1)\n  for", "'ZRANGE', line, 1, 1)\n  for", "the clients hear"},
	{"leave tells who is first only", &lineText, "'ZRANGE', line, 0, 1)\n  for", "'ZRANGE', line, 0, 0)\n  for", "the clients hear"},
	{"who was not in the line tells where others are", &leaveText, "if removed == 1 then", "if true then", "the clients hear"},

	{"batch gives an op no line", &branchesText, "wait(KEYS[k], KEYS[k + 1], nil,", "wait(KEYS[k], KEYS[k], nil,", ""},
	{"batch leaves the line among the locks", &branchesText, "k, a = k + 2, a + 9", "k, a = k + 1, a + 9", ""},
	{"batch forgets the last argument of who calls", &branchesText, "release(KEYS[k], KEYS[k + 1], nil, unpack(ARGV, a + 1, a + 5))", "release(KEYS[k], KEYS[k + 1], nil, unpack(ARGV, a + 1, a + 4))", ""},

	{"batch shifts the arguments", &branchesText, "level(KEYS[k], nil, unpack(ARGV, a + 1,", "level(KEYS[k], nil, unpack(ARGV, a,", ""},
	{"batch forgets the last argument", &branchesText, "level(KEYS[k], nil, unpack(ARGV, a + 1, a + 4))", "level(KEYS[k], nil, unpack(ARGV, a + 1, a + 3))", ""},
	{"batch goes on one argument too far", &branchesText, "k, a = k + 1, a + 5", "k, a = k + 1, a + 6", ""},
	{"batch gives an op a counter", &branchesText, "acquire(KEYS[k], nil,", "acquire(KEYS[k], KEYS[k + 1],", ""},
	{"batch gives an op no counter", &branchesText, "acquire(KEYS[k], KEYS[k + 1], unpack(ARGV, a + 1, a + 2))", "acquire(KEYS[k], nil, unpack(ARGV, a + 1, a + 2))", ""},
	{"batch leaves the counter among the locks", &branchesText, "k, a = k + 2, a + 3", "k, a = k + 1, a + 3", ""},
	{"batch gives an op the first lock", &branchesText, "unlock(KEYS[k],", "unlock(KEYS[1],", ""},
	{"batch ends with an error", &batchText, "verdict, value = -1, value.err", "do return {err = value.err} end", ""},
	{"batch leaves out what comes after an error", &batchText, "verdict, value = -1, value.err",
		"verdict, value = -1, value.err ARGV = {}", ""},
	{"batch keeps errors to itself", &batchText, "verdict, value = -1, value.err", "verdict, value = -2, 0", "the reply"},
	{"batch answers in reverse", &batchText, "return replies",
		"local back = {} for i = #replies - 1, 1, -2 do back[#back + 1] = replies[i] back[#back + 1] = replies[i + 1] end return back", ""},
	{"batch answers with the last", &batchText, "replies[n], replies[n + 1] = verdict, value",
		"for i = 1, n, 2 do replies[i], replies[i + 1] = verdict, value end", ""},
	{"batch takes level for acquire", &branchesText, "= level(KEYS[k], nil,", "= acquire(KEYS[k], nil,", ""},
	{"batch takes transfer for acquire", &branchesText, "= transfer(KEYS[k], nil,", "= acquire(KEYS[k], nil,", ""},

	{"renew asks for no field", &renewText, "redis.pcall('HEXISTS', lock, field)", "redis.call('EXISTS', lock)", ""},
	{"renew brings a lock back", &renewText, "redis.pcall('HDEL', lock, there == 1 and '#' or field)", "redis.pcall('HSETNX', lock, field, 1) redis.pcall('PEXPIRE', lock, lease)", ""},
	{"renew shortens the expiry", &renewText, "math.max(left, lease)", "lease", "time that is left"},
	{"renew extends nothing", &renewText, "redis.pcall('PEXPIRE', lock, math.max(left, lease))", "redis.call('EXISTS', lock)", ""},
	{"renew takes the first lease for all", &renewEachText, "ARGV[2 * i - 1]", "ARGV[1]", "time that is left"},
	{"renew names the wrong lock", &renewEachText, "{i, why}", "{#failed + 1, why}", "the reply"},

	{"inspect takes the change number for a hold", &holderText, "'^[^:]+:%-?%d+$'", "'^[^:]+:%-?%d+#$'", ""},
	{"inspect counts whoever is there", &inspectText, "redis.call('HGET', KEYS[1], ARGV[1]) or 0", "redis.call('HGET', KEYS[1], holder) or 0", "the reply"},
	{"inspect tells seconds", &inspectText, "'PTTL'", "'TTL'", "in the reply"},
	{"inspect removes what it looks at", &inspectText, "redis.call('HDEL', KEYS[1], '#')", "redis.call('HDEL', KEYS[1], ARGV[1])", ""},
}

var comments = regexp.MustCompile(`(?m)^ *--.*\n`)

// compose makes all scripts of their texts again.
func compose() {
	acquire, level = alone("acquire", tokenText+holderText+acquireText), alone("level", tokenText+levelText)
	transfer, unlock = alone("transfer", tokenText+transferText), alone("unlock", holderText+unlockText)
	wait = alone("wait", tokenText+holderText+oneText+lineText+acquireText+waitText)
	tryFree = alone("try", tokenText+holderText+oneText+lineText+acquireText+waitText+tryText)
	release, leave = alone("release", holderText+lineText+unlockText+releaseText), alone("leave", oneText+lineText+unlockText+leaveText)
	lineLen = alone("waiting", lineText+waitingText)
	batched = newBatch(tokenText+holderText+oneText+lineText+acquireText+levelText+unlockText+transferText+waitText+tryText+releaseText+leaveText+waitingText, branchesText)
	renew, inspect = newScript(renewText+renewEachText), newScript(holderText+inspectText)
}

// swap puts the mutant in the place of its text until the test ends. No test that runs a script may be parallel to it.
func (m mutant) swap(t *testing.T) {
	t.Helper()
	right := *m.text
	code := comments.ReplaceAllString(right, "")
	if n := strings.Count(code, m.old); n != 1 {
		t.Fatalf("the script has changed, and has %q %d times: change the mutant", m.old, n)
	}
	*m.text = strings.Replace(code, m.old, m.new, 1)
	compose()
	t.Cleanup(func() {
		*m.text = right
		compose()
	})
}

// What the mutants are put together like is what runs.
func TestMutants_AreComposedAsTheScriptsAre(t *testing.T) {
	all := func() []string {
		return []string{acquire.sha, level.sha, unlock.sha, transfer.sha, tryFree.sha, wait.sha, release.sha, leave.sha, lineLen.sha, batched.sha, renew.sha, inspect.sha}
	}
	before := all()
	compose()
	if !slices.Equal(before, all()) {
		t.Error("run.go composes the scripts in another way now: change compose")
	}
}

// caught runs sequences until one fails, as it must, with the mutant's reason.
func (m mutant) caught(t *testing.T, rdb redis.UniversalClient, blind bool) {
	t.Helper()
	m.swap(t)
	for seed := range uint64(4 * sequences) {
		if err := runSequence(rdb, newKeys(t), seed, blind); err != nil {
			if !strings.Contains(err.Error(), m.reason) {
				t.Fatalf("sequence %d failed, but not with %q: %v", seed, m.reason, err)
			}
			t.Logf("sequence %d: %s", seed, lastLine(err))
			return
		}
	}
	t.Fatalf("not caught within %d sequences", 4*sequences)
}

// TestMutants_EachIsCaughtByTheModel shows that TestSequences can fail.
func TestMutants_EachIsCaughtByTheModel(t *testing.T) {
	rdb := redistest.Real(t).Client() // which runs the scripts many times faster than miniredis
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) { m.caught(t, rdb, false) })
	}
}

// TestMutants_TheInvariantsStandWithoutTheModel shows the same of the checks that read Redis's state alone.
func TestMutants_TheInvariantsStandWithoutTheModel(t *testing.T) {
	rdb := redistest.Real(t).Client() // which runs the scripts many times faster than miniredis
	reasons := map[string]string{
		"acquire counts a repeat":               "invariant 5: a copy changed the hash",
		"acquire gives a repeat a new token":    "invariant 5: a copy moved the counter",
		"acquire gives the old token":           "invariant 2",
		"acquire takes a held lock":             "invariant 1:",
		"level asks for no change number":       "invariant 5: a copy",
		"level counts the same change again":    "invariant 5: a copy moved the counter",
		"level takes a lock that was lost":      "invariant",
		"unlock asks for no field":              "invariant 5: a copy changed the hash",
		"unlock leaves the change number":       "invariant",
		"renew brings a lock back":              "invariant 1",
		"inspect removes what it looks at":      "invariant 10",
		"acquire cleans up the holder's count":  "invariant",
		"level gives a repeat a new token":      "invariant 5: a copy moved the counter",
		"level compares change numbers as text": "invariant",
		"a newcomer goes before the first":      "line: it took the lock out of turn",
		"who has the lock stays in the line":    "has the lock and is in the line",
		"the line never expires":                "line: it has no expiry",
		"a release calls nobody":                "were called of",
		"the second is called":                  "line: ",
		"a release never looks at the line":     "line: ",
		"who enters does not mark the hold":     "line: ",
		"leave takes out nobody":                "are left when all have left",
		"transfer asks for no old hold":         "invariant",
		"transfer leaves the old hold":          "invariant 1:",
		"transfer takes a free lock":            "invariant 5: a copy changed the hash",
		"transfer takes no token":               "invariant 2",
		"transfer gives a repeat a new token":   "invariant 5: a copy moved the counter",
	}
	for _, m := range mutants {
		reason, is := reasons[m.name]
		if !is {
			continue
		}
		delete(reasons, m.name)
		m.reason = reason
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) { m.caught(t, rdb, true) })
	}
	for name := range reasons {
		t.Errorf("there is no mutant called %q", name)
	}
}

// A failure says how to repeat it, and the repetition is the same to the letter, but for milliseconds.
func TestMutants_AFailureCanBeRepeated(t *testing.T) {
	rdb := redistest.New(t)
	mutants[0].swap(t)
	for seed := range uint64(sequences) {
		first := runSequence(rdb, newKeys(t), seed, false)
		if first == nil {
			continue
		}
		var printed uint64
		if _, err := fmt.Sscanf(first.Error(), "FENCELOCK_SEED=%d repeats", &printed); err != nil {
			t.Fatalf("no seed in the failure: %v", first)
		}
		again := runSequence(rdb, newKeys(t), printed, false)
		if again == nil || again.Error() != first.Error() {
			t.Errorf("the first failure:\n%v\nthe repetition:\n%v", first, again)
		}
		return
	}
	t.Fatal("nothing failed")
}

func lastLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return lines[len(lines)-1]
}
