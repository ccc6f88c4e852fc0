package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A bug is a break of the library that this program has to find: in the scenario, and as a violation of the rule.
type bug struct {
	name, text string
	scenario   string
	rules      []string // any of them
	edits      []edit
}

var bugs = []bug{
	{"acquire-held", "an acquire takes a lock that is held", "calm", []string{ruleExclusive, ruleLock}, []edit{
		{"scripts/acquire.lua", "local exists = redis.pcall('EXISTS', lock)", "local exists = redis.pcall('HEXISTS', lock, field)"}}},
	{"token-read", "a token is read, not taken", "calm", []string{ruleTokens}, []edit{
		{"scripts/token.lua", "token = redis.pcall('INCRBY', counter, '1') --", "token = tonumber(redis.call('GET', counter) or 0) + 1 --"}}},
	{"release-silent", "a release is told to nobody", "wake", []string{ruleWake}, []edit{
		{"scripts/unlock.lua", "local told = redis.pcall(publish, channel, '0')", "local told = 1"},
		{"scripts/line.lua", "return lined(publish, line .. ':' .. client(ticket), message)", "return 1"}}},
	{"channel-kept", "a channel is never given up", "calm", []string{ruleLeft}, []edit{
		{"pubsub/link.go", "(ch.drop || time.Since(ch.idle) >= linger)", "time.Since(ch.idle) >= 1000*linger"}}},
	{"deadline-reply", "a deadline counts from the reply", "late", []string{ruleExclusive, ruleLock}, []edit{
		{"internal/engine/claim.go", "sentAt: by.SentAt", "sentAt: watchdog.Now()"}}},
	{"repeat-counts", "a repeated acquire counts twice", "replies", []string{ruleCount}, []edit{
		{"scripts/acquire.lua", "local extended = redis.", "redis.call('HINCRBY', lock, field, 1)\n    local extended = redis."}}},
	{"number-again", "all holds of a client have one number", "replies", []string{ruleExclusive, ruleLock}, []edit{
		{"internal/engine/client.go", "c.lastField.Add(1)", "c.lastField.Load()"}}},
	{"unlock-any", "an unlock does not look whose lock it is", "replies", []string{ruleExclusive, ruleLock}, []edit{
		{"scripts/unlock.lua", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)"}}},
	{"ghost-kept", "what an acquire without an answer has taken is not released", "ghosts", []string{ruleWake, ruleLeft}, []edit{
		{"internal/engine/claim.go", "\t\tc.releaser.Abandon(&h.attempts)\n", ""},
		{"internal/engine/over.go", "return strings.HasPrefix(field, c.id+\":\")", "return field == \"\" && strings.HasPrefix(field, c.id)"}}},
	{"no-poll", "a waiter relies on messages", "silence", []string{ruleWake}, []edit{
		{"rlock/options.go", "s.Poll = d", "s.Poll = time.Hour"}}},
	{"clock-unseen", "a context is alive until the watchdog has run", "pause", []string{ruleExclusive, ruleLock}, []edit{
		{"internal/holder/context.go", "h.Lease.PassedAt(now) {", "h.Lease.PassedAt(now) && h == nil {"}}},
	{"guard-open", "the guard accepts older tokens", "pause", []string{ruleGuard, ruleRegister}, []edit{
		{"guard/redisguard/guard.lua", "if seen and larger(seen, token) then", "if false then"}}},
	{"wall-clock", "a lease is counted on the wall clock alone", "clocks", []string{ruleExclusive, ruleLock}, []edit{
		{"watchdog/deadline.go", "now.at.Sub(start) >= d.mono || now.at.UnixNano() >= d.wall || d.boot != 0 && now.boot >= d.boot", "now.at.UnixNano() >= d.wall"},
		{"watchdog/deadline.go", " || d.boot != 0 && bootClock() >= d.boot", ""},
		{"watchdog/run.go", "d.passed(instant) || l.round(w.countOf(d.mono)) <= now {", "d.passed(instant) {"}}},
	{"no-floor", "tokens with a floor have none", "loss", []string{ruleTokens}, []edit{
		{"scripts/token.lua", "token = math.max(last, ", "token = math.max(last, 0 * "}}},
	{"quorum-counters", "tokens of a quorum are by the counters alone", "quorum-loss", []string{ruleTokens}, []edit{
		{"quorum/proposals.go", "	if !known {", "	if known || !known {"},
		{"quorum/election.go", "	floor := times[len(times)/2] - 1\n", "	floor := int64(0)\n"}}},
	{"quorum-young", "a node of a quorum that has just started counts", "quorum", []string{ruleExclusive, ruleLock}, []edit{
		{"quorum/node.go", "return !n.young(r) || n.lossless == r.Run", "return true"}}},
	{"quorum-minority", "two of five nodes of a quorum are a majority", "quorum", []string{ruleExclusive, ruleLock}, []edit{
		{"quorum/client.go", "majority := len(nodes)/2 + 1", "majority := len(nodes) / 2"},
		{"quorum/store.go", "sh.ttls[len(sh.ttls)-n]", "sh.ttls[max(len(sh.ttls)-n, 0)]"}}},
	{"second-sleeps", "the second in a line does not watch the first", "line", []string{ruleCalled}, []edit{
		{"internal/line/message.go", "\t\treturn Watch, p.watch(n.watch, \"\", now)\n", "\t\treturn Nothing, 0\n"}}},
	{"line-backwards", "who comes to a line is the first", "line", []string{ruleTurns}, []edit{
		{"scripts/line.lua", "score = last[#last] + 1", "score = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2] - 1"}}},
	{"line-asks", "all in a line ask all the time", "line", []string{ruleCost}, []edit{
		{"internal/line/policy.go", "return min(max(2*l.lastStay, l.poll<<min(l.quiet, 4)), most)", "return CalledTimeout"}}},
	{"permit-kept", "what an attempt for a permit without an answer has taken is looked for in the first slot alone", "ghosts", []string{ruleWake, ruleLeft}, []edit{
		{"scripts/vacate.lua", "redis.pcall('HDEL', base .. i, field, field .. '#')", "redis.pcall('HDEL', base .. 0, field, field .. '#')"}}},
	{"permit-elsewhere", "the release of a permit calls who waits for the lock of its slot", "wake", []string{ruleWake}, []edit{
		{"internal/engine/share.go", "return h.share.keys", "return h.keys"}}},
	{"permit-more", "a semaphore has a permit more", "permits", []string{rulePermits}, []edit{
		{"scripts/slots.lua", "return base, tonumber(number) + 1", "return base, tonumber(number) + 2"}}},
	{"read-beside", "who reads comes beside a writer", "readwrite", []string{ruleReaders}, []edit{
		{"scripts/readwrite.lua", "return mode == '' or (mode == 'read' and toRead)", "return mode == '' or toRead"}}},
	{"read-released", "the release of one that reads ends the lock for all that read", "readwrite", []string{ruleReaders}, []edit{
		{"scripts/readwrite_unlock.lua", "local more, why = sweep(lock, enough)", "redis.call('PEXPIRE', lock, '0')\n  local more, why = false, nil"}}},
	{"read-token", "who reads takes no token", "readwrite", []string{ruleTokens}, []edit{
		{"scripts/readwrite.lua", "      token, why = take(counter, expiry)\n", "      token = tonumber(redis.call('GET', counter) or 0)\n"}}},
	{"renew-any", "a renewal does not look whose lock it is", "deleted", []string{ruleForced}, []edit{
		{"scripts/renew.lua", "local there = redis.pcall('HEXISTS', lock, field)", "local there = redis.pcall('EXISTS', lock)"}}},
	{"renew-revives", "a renewal brings back what is gone", "deleted", []string{ruleForced, ruleLeft}, []edit{
		{"scripts/renew.lua", "  if type(there) == 'table' then\n    return there.err\n  end\n",
			"  if there == 0 then\n    redis.call('HSET', lock, field, 1)\n    redis.call('PEXPIRE', lock, lease)\n    return nil\n  end\n"}}},
}

// soonest are those faults of the scenario that show a bug soonest, of those bugs that all of them would show after minutes.
var soonest = map[string]string{
	"ghost-kept":   "lose-taken",
	"quorum-young": "node-restart node-restart node-cut node-cut",
}

// tries is how many rounds there are to find a bug, and brokenLoad and brokenCalm how long they are, where nothing is
// found sooner.
const (
	tries      = 30
	brokenLoad = 6 * time.Second
	brokenCalm = 2 * time.Second
)

// runBroken builds the bugs and requires that each is found.
func runBroken(ctx context.Context, set settings, progress io.Writer) error {
	var chosen []bug
	for _, b := range bugs {
		if set.chosen(b.name) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no bug is called %q; -list shows the names", set.only)
	}
	var classes string
	if slices.ContainsFunc(chosen, bug.inLine) {
		var err error
		if classes, err = redissonClasses(ctx, progress); err != nil {
			return fmt.Errorf("some bugs are seen only with a client of Redisson's: %w", err)
		}
	}
	together := slices.DeleteFunc(slices.Clone(chosen), bug.needsClock)
	program, numbers, remove, err := buildWoven(ctx, together)
	if err != nil {
		return err
	}
	defer remove()
	slices.SortStableFunc(chosen, func(a, b bug) int { return cmp.Compare(b.roundTime(), a.roundTime()) }) // the last one to begin is a short one
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		missed int
		room   = make(chan struct{}, set.jobs)
	)
	for _, b := range chosen {
		places := 1
		if strings.HasPrefix(b.scenario, "quorum") { // its clients keep the machine busy: others beside it would see nothing
			places = set.jobs
		}
		for range places {
			room <- struct{}{}
		}
		all.Go(func() {
			defer func() {
				for range places {
					<-room
				}
			}()
			if ctx.Err() != nil {
				return
			}
			began := time.Now()
			how, err := b.find(ctx, set, plan{program: program, bug: numbers[b.name], classes: classes})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				cancel(fmt.Errorf("%s: %w", b.name, err))
				return
			case strings.HasPrefix(how, notFound):
				missed++
			}
			fmt.Fprintf(progress, "%-15s %5.1f s  %-8s %s\n", b.name, time.Since(began).Seconds(), b.scenario, how)
		})
	}
	all.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case missed > 0:
		return fmt.Errorf("%d of %d bugs were not found: %w", missed, len(chosen), errViolated)
	}
	fmt.Fprintf(progress, "all %d bugs were found\n", len(chosen))
	return nil
}

const notFound = "NOT FOUND"

// find plays rounds with the bug until one shows it. The plan is for the program that has many bugs, and p.bug is this one there; 0: it is not. It returns
// how, or notFound.
func (b bug) find(ctx context.Context, set settings, p plan) (string, error) {
	sc, ok := scenarioCalled(b.scenario)
	if !ok {
		return "", errors.New("its scenario is not there")
	}
	sc.faults = cmp.Or(soonest[b.name], sc.faults)
	if p.bug == 0 { // its program has to be one of its own
		program, remove, err := build(ctx, b.needsClock(), b.edits)
		if err != nil {
			return "", err
		}
		defer remove()
		p.program = program
	}
	p.load, p.calm, p.enough = brokenLoad, brokenCalm, func(t trial) bool { return b.shown(t.rules()) }
	switch b.rules[0] {
	case ruleWake: // seen when nothing is broken any more
		p.load, p.calm = 3*time.Second, 6*time.Second
	case ruleLeft: // seen in the end
		p.load, p.calm = time.Second, time.Second
	}
	var last sum
	for try := range tries {
		seed := set.seed + uint64(try)
		t, err := play(ctx, sc, seed, p)
		if err != nil {
			return "", err
		}
		v := t.rules()
		if !b.shown(v) {
			v = judge(t)
		}
		if b.shown(v) {
			return fmt.Sprintf("seed %d: %s", seed, strings.Join(v.violated(), "; ")), nil
		}
		last = summarize(t, v)
	}
	return notFound + "; the last round: " + last.String(), nil
}

// needsClock tells whether its scenario needs a program whose clock can be set.
func (b bug) needsClock() bool {
	sc, _ := scenarioCalled(b.scenario)
	return sc.has("clock")
}

// inLine tells whether its scenario has the clients of a line.
func (b bug) inLine() bool {
	sc, _ := scenarioCalled(b.scenario)
	return sc.line
}

// roundTime is how long a round of its scenario has to be at least, 0 for no bound of its own.
func (b bug) roundTime() time.Duration {
	sc, _ := scenarioCalled(b.scenario)
	return sc.load + sc.calm
}

// shown tells whether the verdict is about what the bug breaks.
func (b bug) shown(v verdict) bool {
	return slices.ContainsFunc(v.violated(), func(rule string) bool { return slices.Contains(b.rules, rule) })
}
