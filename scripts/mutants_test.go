package scripts

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
)

// mutant is a script with one thing wrong. TestSequences is worth as much as it catches of these.
type mutant struct {
	name     string
	script   *script
	old, new string // a part of its text, and what stands there instead
	reason   string // a part of the failure that must come of it, "" for any
}

const (
	getOrIncr = "redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])"
	extended  = "math.max(redis.call('PTTL', KEYS[1]), ARGV[1])"
)

var mutants = []mutant{
	{"acquire counts a repeat", &acquire, "return {1, token}\nend\nif", "redis.call('HINCRBY', KEYS[1], ARGV[2], 1)\n  return {1, token}\nend\nif", ""},
	{"acquire gives a repeat a new token", &acquire, getOrIncr, "redis.call('INCR', KEYS[2])", ""},
	{"acquire gives a repeat no token", &acquire, getOrIncr, "0", ""},
	{"acquire does not replace a lost counter", &acquire, " or redis.call('INCR', KEYS[2])", " or 0", ""},
	{"a repeat of acquire shortens the expiry", &acquire, extended, "ARGV[1]", "time that is left"},
	{"a repeat of acquire extends nothing", &acquire, extended, "redis.call('PTTL', KEYS[1])", ""},
	{"acquire takes a held lock", &acquire, "redis.call('EXISTS', KEYS[1]) == 1", "false", ""},
	{"acquire cleans up the holder's count", &acquire, "redis.call('HDEL', KEYS[1], ARGV[2])", "redis.call('DEL', KEYS[1])", ""},
	{"acquire sets no expiry", &acquire, "redis.pcall('PEXPIRE', KEYS[1], ARGV[1])", "1", "time that is left"},
	{"acquire gives the old token", &acquire, "token = redis.call('INCR', KEYS[2])", "token = tonumber(redis.call('GET', KEYS[2]) or 0)", ""},
	{"acquire tells seconds", &acquire, "{0, redis.call('PTTL', KEYS[1])}", "{0, redis.call('TTL', KEYS[1])}", "in the reply"},
	{"acquire says lost for held", &acquire, "{0, redis.call('PTTL', KEYS[1])}", "{-2, 0}", ""},

	{"level adds", &level, "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3], change, ARGV[4])",
		"redis.call('HINCRBY', KEYS[1], ARGV[2], 1) redis.call('HSET', KEYS[1], change, ARGV[4])", "the hash"},
	{"level asks for no change number", &level, ">= tonumber(ARGV[4])", "< -1", ""},
	{"level counts the same change again", &level, ">= tonumber", "> tonumber", ""},
	{"level keeps no change number", &level, ", change, ARGV[4])", ")", "the hash"},
	{"level compares change numbers as text", &level,
		"tonumber(redis.call('HGET', KEYS[1], change) or 0) >= tonumber(ARGV[4])", "(redis.call('HGET', KEYS[1], change) or '0') >= ARGV[4]", ""},
	{"level takes a lock that was lost", &level, "redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0", "false", ""},
	{"level takes a free lock", &level, "redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0", "redis.call('HEXISTS', KEYS[1], ARGV[2]) + 1 - redis.call('EXISTS', KEYS[1]) == 0", ""},
	{"level shortens the expiry", &level, extended, "ARGV[1]", "time that is left"},
	{"level extends nothing", &level, extended, "redis.call('PTTL', KEYS[1])", ""},
	{"an inner unlock ends the lock", &level, "if tonumber(ARGV[1]) > 0 then", "if true then redis.call('PEXPIRE', KEYS[1], ARGV[1])", ""},
	{"level gives a repeat a new token", &level, getOrIncr, "redis.call('INCR', KEYS[2])", ""},
	{"level says held for lost", &level, "{-2, 0}", "{1, 0}", "the reply"},

	{"unlock asks for no field", &unlock, "redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0", "redis.call('EXISTS', KEYS[1]) == 0", ""},
	{"unlock subtracts", &unlock, "redis.call('DEL', KEYS[1])", "redis.call('HINCRBY', KEYS[1], ARGV[1], -1)", "the hash"},
	{"unlock leaves the change number", &unlock, "redis.call('DEL', KEYS[1])", "redis.call('HDEL', KEYS[1], ARGV[1])", "the hash"},
	{"unlock says released for gone", &unlock, "return 0", "return 1", "the reply"},

	{"renew asks for no field", &renew, "if there == 0 then", "if redis.call('EXISTS', lock) == 0 then", ""},
	{"renew brings a lock back", &renew, "redis.pcall('HDEL', lock, field)", "redis.pcall('HSETNX', lock, field, 1) redis.pcall('PEXPIRE', lock, lease)", ""},
	{"renew shortens the expiry", &renew, "math.max(redis.call('PTTL', lock), lease)", "lease", "time that is left"},
	{"renew extends nothing", &renew, "math.max(redis.call('PTTL', lock), lease)", "redis.call('PTTL', lock)", ""},
	{"renew takes the first lease for all", &renew, "ARGV[2 * i - 1]", "ARGV[1]", "time that is left"},
	{"renew names the wrong lock", &renew, "{i, why}", "{#failed + 1, why}", "the reply"},

	{"inspect takes the change number for a hold", &inspect, "string.sub(field, -1) ~= '#'", "string.sub(field, -1) == '#'", "the reply"},
	{"inspect counts whoever is there", &inspect, "redis.call('HGET', KEYS[1], ARGV[1]) or 0", "redis.call('HGET', KEYS[1], holder) or 0", "the reply"},
	{"inspect tells seconds", &inspect, "'PTTL'", "'TTL'", "in the reply"},
	{"inspect removes what it looks at", &inspect, "redis.call('HDEL', KEYS[1], '#')", "redis.call('HDEL', KEYS[1], ARGV[1])", ""},
}

var comments = regexp.MustCompile(`(?m)^ *--.*\n`)

// swap puts the mutant in the place of its script until the test ends. No test that runs a script may be parallel to it.
func (m mutant) swap(t *testing.T) {
	t.Helper()
	right := *m.script
	code := comments.ReplaceAllString(right.text, "")
	if n := strings.Count(code, m.old); n != 1 {
		t.Fatalf("the script has changed, and has %q %d times: change the mutant", m.old, n)
	}
	*m.script = newScript(strings.Replace(code, m.old, m.new, 1))
	t.Cleanup(func() { *m.script = right })
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
		"renew brings a lock back":              "invariant 10",
		"inspect removes what it looks at":      "invariant 10",
		"acquire cleans up the holder's count":  "invariant",
		"level gives a repeat a new token":      "invariant 5: a copy moved the counter",
		"level compares change numbers as text": "invariant",
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
