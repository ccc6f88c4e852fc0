package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
)

// mutant is a script with one thing wrong. TestSequences is worth as much as it catches of these.
type mutant struct {
	name     string
	text     *string // of the function, which runs alone and in a batch
	old, new string  // a part of it, and what stands there instead
	reason   string  // a part of the failure that must come of it, "" for any
}

const (
	repeated  = "again(counter, tokens, expiry)"
	taken     = "take(counter, tokens, expiry)"
	extended  = "math.max(left, lease)"
	isRepeat  = "local extended = redis" // the first line that only a repeat comes to
	isThere   = "if there == 0 then"
	noReplica = "local written = redis.pcall('HDEL', lock, field)"
	removes   = "redis.pcall('HDEL', lock, field, field .. '#')"
	notTaken  = "(tonumber(redis.call('GET', counter) or 0) or 0)"
	takenOnce = "take(counter, 1, expiry)"
)

var mutants = []mutant{
	{"acquire counts a repeat", &acquireText, isRepeat, "redis.call('HINCRBY', lock, field, 1)\n    " + isRepeat, ""},
	{"acquire gives a repeat a new token", &acquireText, repeated, taken, ""},
	{"acquire gives a repeat no token", &acquireText, repeated, "0", ""},
	{"a lost counter is not replaced", &tokenText, "return take(counter, tokens, expiry)", "return 0", ""},
	{"a lost counter is replaced by one token", &tokenText, "return take(counter, tokens, expiry)", "return take(counter, 1, expiry)", ""},
	{"any text is taken for a number", &tokenText, "if not tonumber(token) then", "if false then", "spoilt"},
	{"a repeat of acquire shortens the expiry", &acquireText, extended, "lease", "time that is left"},
	{"a repeat of acquire extends nothing", &acquireText, extended, "redis.call('PTTL', lock)", ""},
	{"acquire takes a held lock", &acquireText, "redis.pcall('EXISTS', lock)", "redis.pcall('HEXISTS', lock, field)", ""},
	{"acquire cleans up the holder's count", &acquireText, noReplica, "local written = redis.pcall('DEL', lock)", ""},
	{"acquire sets no expiry", &acquireText, "redis.pcall('PEXPIRE', lock, lease)", "1", "time that is left"},
	{"acquire gives the old token", &acquireText, taken, notTaken, ""},
	{"acquire takes one token only", &acquireText, taken, takenOnce, ""},
	{"acquire gives the first of its tokens", &acquireText, "return 1, token\nend", "return 1, counter and token - tokens + 1 or 0\nend", "the reply"},
	{"acquire tells seconds", &acquireText, "local left = redis.pcall('PTTL', lock)\n      if", "local left = redis.pcall('TTL', lock)\n      if", "in the reply"},
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
	{"level gives a repeat a new token", &levelText, "again(counter, 1, expiry)", "take(counter, 1, expiry)", ""},
	{"level says held for lost", &levelText, "-2, 0", "1, 0", "the reply"},

	{"unlock asks for no field", &unlockText, removes, "redis.pcall('DEL', lock)", ""},
	{"unlock subtracts", &unlockText, removes, "redis.pcall('HEXISTS', lock, field) if removed == 1 then redis.call('HINCRBY', lock, field, -1) end", "the hash"},
	{"unlock leaves the change number", &unlockText, removes, "redis.pcall('HDEL', lock, field)", "the hash"},
	{"unlock removes the change number only", &unlockText, removes, "redis.pcall('HDEL', lock, field .. '#')", ""},
	{"unlock says released for gone", &unlockText, "return 0, 0", "return 1, 0", "the reply"},

	{"transfer asks for no old hold", &transferText, "not counts[2]", "redis.call('EXISTS', lock) == 0", ""},
	{"transfer takes a free lock", &transferText, "not counts[2]", "not counts[2] and redis.call('EXISTS', lock) == 1", ""},
	{"transfer leaves the old hold", &transferText, "redis.pcall('HDEL', lock, old, old .. '#')", "redis.pcall('HDEL', lock, old .. '#')", ""},
	{"transfer leaves the change number", &transferText, ", old, old .. '#')", ", old)", "the hash"},
	{"transfer removes the old hold first", &transferText, "local counted = redis.pcall('HINCRBY', lock, field, '1')",
		"local expires = redis.pcall('PEXPIRE', lock, lease) redis.pcall('HDEL', lock, old, old .. '#')\n  local counted = redis.pcall('HINCRBY', lock, field, 1) if counted then return 1, token end", "time that is left"},
	{"transfer hands the count on", &transferText, "redis.pcall('HINCRBY', lock, field, '1')",
		"redis.pcall('HINCRBY', lock, field, redis.call('HGET', lock, old))", "the hash"},
	{"transfer takes no token", &transferText, taken, notTaken, ""},
	{"transfer takes one token only", &transferText, taken, takenOnce, ""},
	{"transfer gives a repeat a new token", &transferText, repeated, taken, ""},
	{"transfer gives a repeat no token", &transferText, repeated, "0", ""},
	{"transfer knows no repeat", &transferText, "if counts[1] then", "if false then", ""},
	{"transfer sets no expiry", &transferText, "redis.pcall('PEXPIRE', lock, lease)", "1", "time that is left"},
	{"transfer extends only", &transferText, "redis.pcall('PEXPIRE', lock, lease)", "redis.pcall('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))", "time that is left"},
	{"a repeat of transfer shortens the expiry", &transferText, extended, "lease", "time that is left"},
	{"a repeat of transfer extends nothing", &transferText, extended, "redis.call('PTTL', lock)", "time that is left"},
	{"transfer says held for gone", &transferText, "-2, 0", "1, 0", "the reply"},

	{"retain counts its client among the others", &retainText, "listening[2] <= ", "listening[2] < ", "the reply"},
	{"retain does not ask who listens", &retainText, "(listening.err or listening[2] <= tonumber(known))", "false", "the reply"},
	{"retain takes everybody for its client", &retainText, "(listening.err or listening[2] <= tonumber(known))", "true", "the reply"},
	{"retain knows no repeat", &retainText, " and redis.pcall('HEXISTS', lock, field) == 0", "", "the reply"},
	{"retain releases whoever is there", &retainText, "unlock(lock, nil, old, channel, 'PUBLISH')", "redis.call('DEL', lock), redis.call('PUBLISH', channel, '0')", ""},
	{"retain releases without telling", &retainText, "unlock(lock, nil, old, channel, 'PUBLISH')", "redis.call('HDEL', lock, old, old .. '#'), 0", "the reply"},
	{"retain tells on another channel", &retainText, "old, channel, 'PUBLISH'", "old, lock, 'PUBLISH'", "the reply"},
	{"retain says retained for released", &retainText, "released and 2", "released and 1", "the reply"},
	{"retain says released for gone", &retainText, "-2, 0", "2, 0", "the reply"},
	{"retain tells nobody how many heard", &retainText, "2, told", "2, 0", "the reply"},
	{"retain takes no token", &retainText, "transfer(lock, counter,", "transfer(lock, nil,", "the reply"},
	{"retain takes two tokens", &retainText, "field, 1, old", "field, 2, old", "the reply"},
	{"retain takes a free lock", &retainText, "return transfer(lock, counter, lease, field, 1, old, expiry)",
		"redis.call('HSETNX', lock, old, 1) return transfer(lock, counter, lease, field, 1, old, expiry)", ""},

	{"batch shifts the arguments", &batchText, "unpack(ARGV, a + 1,", "unpack(ARGV, a,", ""},
	{"batch forgets the last argument", &batchText, "a + operation[2]))", "a + operation[2] - 1))", ""},
	{"batch goes on one argument too far", &batchText, "a = a + 1 + operation[2]", "a = a + 1 + 4", ""},
	{"batch gives every op a counter", &batchText, "if operation[3] then", "if true then", ""},
	{"batch gives no op a counter", &batchText, "counter = KEYS[k]\n", "\n", ""},
	{"batch leaves the counter among the locks", &batchText, "counter = KEYS[k]\n    k = k + 1", "counter = KEYS[k]", ""},
	{"batch keeps the counter for the next", &batchText, "local operation, counter = operations[ARGV[a]], nil",
		"local operation = operations[ARGV[a]] counter = counter", ""},
	{"batch gives all the first lock", &batchText, "local lock = KEYS[k]", "local lock = KEYS[1]", ""},
	{"batch ends with an error", &batchText, "verdict, value = -1, value.err", "do return {err = value.err} end", ""},
	{"batch leaves out what comes after an error", &batchText, "verdict, value = -1, value.err",
		"verdict, value = -1, value.err ARGV = {}", ""},
	{"batch keeps errors to itself", &batchText, "verdict, value = -1, value.err", "verdict, value = -2, 0", "the reply"},
	{"batch answers in reverse", &batchText, "return replies",
		"local back = {} for i = #replies - 1, 1, -2 do back[#back + 1] = replies[i] back[#back + 1] = replies[i + 1] end return back", ""},
	{"batch answers with the last", &batchText, "replies[n], replies[n + 1] = verdict, value",
		"for i = 1, n, 2 do replies[i], replies[i + 1] = verdict, value end", ""},
	{"batch takes level for acquire", &batchText, "level = {level, 4},", "level = {function(l, c, lease, f) return acquire(l, c, lease, f, 1) end, 4},", ""},
	{"batch takes transfer for acquire", &batchText, "transfer = {transfer, 4},", "transfer = {acquire, 4},", ""},
	{"batch takes retain for transfer", &batchText, "retain = {retain, 5},", "retain = {function(l, c, lease, f, old) return transfer(l, c, lease, f, 1, old) end, 5},", "the reply"},

	{"renew asks for no field", &renewText, "redis.pcall('HEXISTS', lock, field)", "redis.call('EXISTS', lock)", ""},
	{"renew brings a lock back", &renewText, "redis.pcall('HDEL', lock, there == 1 and '#' or field)", "redis.pcall('HSETNX', lock, field, 1) redis.pcall('PEXPIRE', lock, lease)", ""},
	{"renew shortens the expiry", &renewText, "math.max(left, lease)", "lease", "time that is left"},
	{"renew extends nothing", &renewText, "redis.pcall('PEXPIRE', lock, math.max(left, lease))", "redis.call('EXISTS', lock)", ""},
	{"renew takes the first lease for all", &renewText, "ARGV[2 * i - 1]", "ARGV[1]", "time that is left"},
	{"renew names the wrong lock", &renewText, "{i, why}", "{#failed + 1, why}", "the reply"},

	{"inspect takes the change number for a hold", &holderText, "'^[^:]+:%-?%d+$'", "'^[^:]+:%-?%d+#$'", ""},
	{"inspect counts whoever is there", &inspectText, "redis.call('HGET', KEYS[1], ARGV[1]) or 0", "redis.call('HGET', KEYS[1], holder) or 0", "the reply"},
	{"inspect tells seconds", &inspectText, "'PTTL'", "'TTL'", "in the reply"},
	{"inspect removes what it looks at", &inspectText, "redis.call('HDEL', KEYS[1], '#')", "redis.call('HDEL', KEYS[1], ARGV[1])", ""},
}

var comments = regexp.MustCompile(`(?m)^ *--.*\n`)

// compose makes all scripts of their texts again.
func compose() {
	acquire, level, transfer = newScript(tokenText+holderText+acquireText), newScript(tokenText+levelText), newScript(tokenText+transferText)
	unlock, reserve = newScript(unlockText), newScript(tokenText+reserveText)
	retain = newScript(tokenText + function(transferText) + function(unlockText) + retainText)
	batch = newBatch(batchText, acquireText, levelText, unlockText, transferText, retainText, reserveText)
	renew, inspect = newScript(renewText), newScript(holderText+inspectText)
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
	before := []script{acquire, level, unlock, transfer, retain, reserve, batch, renew, inspect}
	compose()
	if !slices.Equal(before, []script{acquire, level, unlock, transfer, retain, reserve, batch, renew, inspect}) {
		t.Error("run.go composes the scripts in another way now: change compose")
	}
}

// caught runs sequences until one fails, as it must, with the mutant's reason.
func (m mutant) caught(t *testing.T, rdb redis.UniversalClient, blind bool) {
	t.Helper()
	m.swap(t)
	for seed := range uint64(sequences) {
		if err := runSequence(rdb, newKeys(t), seed, blind); err != nil {
			if !strings.Contains(err.Error(), m.reason) {
				t.Fatalf("sequence %d failed, but not with %q: %v", seed, m.reason, err)
			}
			t.Logf("sequence %d: %s", seed, lastLine(err))
			return
		}
	}
	t.Fatalf("not caught within %d sequences", sequences)
}

// TestMutants_EachIsCaughtByTheModel shows that TestSequences can fail.
func TestMutants_EachIsCaughtByTheModel(t *testing.T) {
	rdb := redistest.New(t)
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) { m.caught(t, rdb, false) })
	}
}

// TestMutants_TheInvariantsStandWithoutTheModel shows the same of the checks that read Redis's state alone.
func TestMutants_TheInvariantsStandWithoutTheModel(t *testing.T) {
	rdb := redistest.New(t)
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
		"transfer asks for no old hold":         "invariant",
		"transfer leaves the old hold":          "invariant 1:",
		"transfer takes a free lock":            "invariant 5: a copy changed the hash",
		"transfer takes no token":               "invariant 2",
		"transfer gives a repeat a new token":   "invariant 5: a copy moved the counter",
		"retain releases whoever is there":      "invariant 5: a copy changed the hash",
		"retain takes a free lock":              "invariant",
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
