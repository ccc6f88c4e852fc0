package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scenario line: what its clients do, what is seen of the line in Redis meanwhile, and what is required of that.

const (
	// lineProcesses are the workers of a round, each with one client.
	lineProcesses = 60
	// lineLease is how long the hold of a client that was killed lasts.
	lineLease = 2 * time.Second
	// wave is how long clients come back at once, and then with rests, by turns. Without faults they come back at once.
	wave = 2 * time.Second
	// waveRest is what they rest at most: they want the lock for about 70% of the time, 60 sections of 2.5 ms in 210 ms.
	waveRest = 400 * time.Millisecond
	// gapBound is for how long a lock may be free while one client is the first in its line: the second finds after 100 ms
	// that it is late. Where something befalls the second, too, or it finds that a client of Redisson's has taken the lock,
	// it and others look after the lease, or after their last waits.
	gapBound  = 300 * time.Millisecond
	lookBound = 4 * time.Second
	// turnTime is how much of the part without faults it takes to tell whether everybody gets a turn.
	turnTime = 4 * time.Second
	// costTime is the end of that part, without Redisson's client, which asks at every release. There a handoff may cost
	// maxCommands, those inside of scripts too.
	costTime    = 2 * time.Second
	maxCommands = 22
)

// A resting decides when the clients of a process rest: never, once they were told so.
type resting struct{ never atomic.Bool }

// now tells whether they do.
func (r *resting) now() bool { return !r.never.Load() && now()/int64(wave)%2 == 1 }

// turn is one try to take the lock for a section of about 2 ms. While clients rest now and then, one call of ten mostly gives
// up before it is its turn. Later none does: who leaves the line has others look, which hides what is lost.
func (c *caller) turn() {
	wait := c.Wait
	if !c.resting.never.Load() && c.rng.IntN(10) == 0 {
		wait = time.Duration(c.rng.IntN(300)) * time.Millisecond
	}
	if p := c.take(wait, 0); p != nil {
		p.look()
		if p.increment() {
			p.stay(time.Duration(500+c.rng.IntN(2000)) * time.Microsecond)
		}
		p.leave()
	}
	if c.resting.now() {
		select {
		case <-time.After(time.Duration(c.rng.Int64N(int64(waveRest)))):
		case <-c.stop:
		}
	}
}

// come makes all clients come back at once after each hold, and wait for their turns.
func (s *stage) come() {
	for _, w := range s.living() {
		w.tell("come")
	}
	if s.java != nil {
		s.java.resting.never.Store(true)
	}
}

// A gap is a time in which one client was the first in the line of a lock that was free, as Redis had it.
type gap struct {
	From      int64         `json:"from"`
	To        int64         `json:"to"`
	Free      time.Duration `json:"free"`      // in all: a client of Redisson's may have had it in between
	Line      []string      `json:"line"`      // the first ones when it began
	Processes []int         `json:"processes"` // they are of, 1 for the first one, 0 where it is not known
}

// seen is what was seen of the line in Redis.
type seen struct {
	Gaps     []gap `json:"gaps"`     // those of some length
	Redisson bool  `json:"redisson"` // was among the clients

	// Of costTime: what the server has done, inside of scripts too, and how often the lock was taken.
	Commands map[string]int64 `json:"commands"`
	Handoffs int64            `json:"handoffs"`
}

// minGap is how long a gap is that is worth noting: one handoff takes less.
const minGap = 50 * time.Millisecond

// A lineWatch asks Redis for the lock and its line, a hundred times a second.
type lineWatch struct {
	stage *stage
	rdb   *redis.Client
	lock  string
	own   atomic.Int64 // commands of its own
	end   func()
}

// lineWatchCommands is how many commands a look of it takes.
const lineWatchCommands = 4

func (s *stage) watchLine(ctx context.Context, lock string) *lineWatch {
	w := &lineWatch{stage: s, rdb: s.direct(s.locks), lock: lock}
	ctx, w.end = context.WithCancel(ctx)
	go w.run(ctx)
	return w
}

func (w *lineWatch) run(ctx context.Context) {
	var g gap
	var last int64 // when the lock was seen free
	for ; ctx.Err() == nil; sleep(ctx, 10*time.Millisecond) {
		at := now()
		free, line := w.look(ctx)
		switch {
		case len(line) == 0 || len(g.Line) == 0 || line[0] != g.Line[0]:
			g.To = at
			w.note(g)
			g = gap{From: at, Line: line}
		case free && last != 0:
			g.Free += time.Duration(at - last)
		}
		last = 0
		if free {
			last = at
		}
	}
	g.To = now()
	w.note(g)
}

// note keeps a gap of some length.
func (w *lineWatch) note(g gap) {
	if g.Free < minGap {
		return
	}
	w.stage.mu.Lock()
	defer w.stage.mu.Unlock()
	for _, ticket := range g.Line {
		client, _, _ := strings.Cut(ticket, ":")
		g.Processes = append(g.Processes, 1+slices.IndexFunc(w.stage.workers, func(worker *worker) bool {
			id := worker.link.client.Load()
			return id != nil && *id == client
		}))
	}
	w.stage.trial.Line.Gaps = append(w.stage.trial.Line.Gaps, g)
}

// look tells whether the lock is free, and who are the first in its line.
func (w *lineWatch) look(ctx context.Context) (free bool, line []string) {
	var held *redis.IntCmd
	var first *redis.StringSliceCmd
	w.own.Add(lineWatchCommands)
	_, err := w.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		held, first = p.Exists(ctx, w.lock), p.ZRange(ctx, "fencelock_line:{"+w.lock+"}", 0, 2)
		return nil
	})
	return err == nil && held.Val() == 0, first.Val()
}

// measure waits for so long without faults, and notes what a handoff costs in the end.
func (w *lineWatch) measure(ctx context.Context, calm time.Duration) {
	sleep(ctx, calm-costTime)
	if java := w.stage.java; java != nil && ctx.Err() == nil {
		_ = java.leave(grace) // told when the round ends
	}
	commands, handoffs := w.counts(ctx)
	sleep(ctx, costTime)
	if ctx.Err() != nil {
		return
	}
	w.end()
	c, h := w.counts(ctx)
	w.stage.note(func(t *trial) {
		t.Line.Commands, t.Line.Handoffs = c, h-handoffs
		for name, n := range commands {
			c[name] -= n
		}
	})
}

// counts returns how many commands the server has done for others, and how often the lock was taken.
func (w *lineWatch) counts(ctx context.Context) (commands map[string]int64, handoffs int64) {
	commands = map[string]int64{"own": -w.own.Load()}
	for _, line := range strings.Split(w.rdb.Info(ctx, "commandstats").Val(), "\n") {
		name, stats, _ := strings.Cut(line, ":")
		var calls int64
		if _, err := fmt.Sscanf(stats, "calls=%d,", &calls); err == nil {
			commands[strings.TrimPrefix(name, "cmdstat_")] = calls
		}
	}
	handoffs, _ = w.rdb.Get(ctx, "redisson_lock_token:{"+w.lock+"}").Int64()
	return commands, handoffs
}

// unwatched tells whether something befell the second in the line of a gap, or one that became the second.
func (t trial) unwatched(g gap) bool {
	return slices.ContainsFunc(t.Faults, func(e event) bool {
		return e.From < g.To && e.To > g.From && e.Process > 0 && slices.Contains(g.Processes[1:], e.Process)
	})
}

// longer is how much longer than 100 ms the client with this ticket may take to come when it is called, as its ticket says (P24): on a busy
// machine its commands take long.
func longer(ticket string) time.Duration {
	_, number, _ := strings.Cut(ticket, ":")
	_, needs, _ := strings.Cut(number, ":")
	ms, _ := strconv.Atoi(needs) // a ticket that says nothing stands for 100 ms
	return max(time.Duration(ms)*time.Millisecond-100*time.Millisecond, 0)
}

// unheard tells whether a message to the client may have been lost since it began to wait, as it does at this time. It looks
// by itself after twice its last wait, which may have been a long one: up to 10 s.
func (t trial) unheard(client int, at int64) bool {
	return slices.ContainsFunc(t.Ops, func(o op) bool {
		return o.Kind == acquire && o.Client == client && o.Call < at && (o.Return > at || o.Outcome == open) &&
			slices.ContainsFunc(t.Faults, func(e event) bool {
				return strings.HasPrefix(e.Name, "lose-") && e.Process == client/10+1 && e.To > o.Call
			})
	})
}

// cost is how many commands a handoff took; 0: not known.
func (l *seen) cost() float64 {
	if l.Handoffs == 0 {
		return 0
	}
	var commands int64
	for _, n := range l.Commands {
		commands += n
	}
	return float64(commands) / float64(l.Handoffs)
}

// lineSeen is what was seen, for who looks at the rounds: the longest gap, what a handoff costs, the fewest and the most
// turns that a client got without faults, and those of Redisson's client.
func (t trial) lineSeen() string {
	var longest time.Duration
	for _, g := range t.Line.Gaps {
		longest = max(longest, g.Free)
	}
	turns := t.turnsFrom(t.Calm + int64(lineLease))
	redissons := turns[redissonProcess*10]
	delete(turns, redissonProcess*10)
	counts := slices.Collect(maps.Values(turns))
	if len(counts) == 0 {
		counts = []int{0}
	}
	return fmt.Sprintf(", gap %v, %.1f commands, turns %d to %d, Redisson %d", longest.Round(time.Millisecond), t.Line.cost(),
		slices.Min(counts), slices.Max(counts), redissons)
}

// turnsFrom is how often each client that was there at this time, and was not killed, has had the lock since.
func (t trial) turnsFrom(from int64) map[int]int {
	turns := make(map[int]int)
	for _, o := range t.Ops {
		if _, killed := t.Killed[o.Client/10]; o.Kind == acquire && !killed {
			if o.Call < from {
				turns[o.Client] += 0
			}
			if _, there := turns[o.Client]; there && o.Outcome == done && o.Return > from && o.Return < t.End {
				turns[o.Client]++
			}
		}
	}
	return turns
}

// turns requires that those who waited in the part without faults got the lock, Redisson's client too, and that it cost what
// it should.
func (t trial) turns() []violation {
	var found []violation
	violate := func(rule, format string, args ...any) {
		found = append(found, violation{rule, lockNames[0], fmt.Sprintf(format, args...)})
	}
	for _, g := range t.Line.Gaps {
		bound := gapBound
		if t.unwatched(g) {
			bound = lookBound
		}
		if g.Free > bound+longer(g.Line[0])+2*t.Stall {
			violate(ruleCalled, "free for %v, from %.3f ms on, with the same client first in the line: %+v",
				g.Free, float64(g.From)/1e6, g)
		}
	}
	from := t.Calm + int64(lineLease) // a client that was killed may have had the lock until then
	if t.End-from < int64(turnTime) {
		return found
	}
	for client, n := range t.turnsFrom(from) {
		if n == 0 && !t.unheard(client, from) {
			violate(ruleTurns, "client %d did not get the lock in %v without a fault", client, time.Duration(t.End-from))
		}
	}
	if cost := t.Line.cost(); cost > maxCommands {
		violate(ruleCost, "%.1f commands a handoff, in %d without a fault", cost, t.Line.Handoffs)
	}
	return found
}
