package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A report is everything that a run has to tell, and the form of results.json.
type report struct {
	Environment environment `json:"environment"`
	Summaries   []summary   `json:"summaries"`
	Results     []result    `json:"rounds"`
}

// jsonFile, in the directory of the results, has the report.
const jsonFile = "results.json"

// render writes again what a run wrote, from its report.
func render(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, jsonFile))
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("%s is not what a run writes: %w", jsonFile, err)
	}
	return write(dir, r)
}

// write puts results.md, results.json and the plots into the directory.
func write(dir string, r report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.Summaries = nil
	for _, m := range modes() {
		r.Summaries = append(r.Summaries, summarize(r.Results, m)...)
	}
	plots, err := drawAll(dir, r.Summaries)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	raw = append(bytes.ReplaceAll(raw, []byte(`{"contender"`), []byte("\n"+`{"contender"`)), '\n') // a line for each
	if err := os.WriteFile(filepath.Join(dir, jsonFile), raw, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "results.md"), []byte(r.markdown(plots)), 0o644)
}

func (r report) markdown(plots []string) string {
	var b strings.Builder
	env := r.Environment
	fmt.Fprintf(&b, "# Benchmarks\n\nWritten by `%s` in `bench/` on %s: %s, %s, %d CPUs for clients and server together, %s on loopback",
		env.Command, env.Date, env.Go, env.Platform, env.CPUs, env.Server)
	for _, name := range slices.Sorted(maps.Keys(env.Modules)) {
		fmt.Fprintf(&b, ", %s %s", name, env.Modules[name])
	}
	if env.Others != nil {
		fmt.Fprintf(&b, ", while other programs took %.0f%% of the CPUs", 100**env.Others)
	}
	fmt.Fprintf(&b, ".\n%d interleaved repeats, windows of %v s; where many clients have one caller or a few each, and on several servers, every %dth repeat "+
		"and windows of %v s. Raw figures: [results.json](results.json).\n\n", env.Repeats, env.Window, clientEvery, clientWindows*env.Window)
	for _, contender := range env.LeftOut {
		fmt.Fprintf(&b, "**Left out**: %s.\n\n", contender)
	}
	b.WriteString(legend)
	for _, part := range []struct {
		modes []mode
		text  string
	}{{usualModes(), legendUsual}, {kindModes(), legendKinds}, {otherModes(), legendOthers}} {
		if r.some(part.modes) {
			b.WriteString(part.text)
		}
	}
	for _, plot := range plots {
		fmt.Fprintf(&b, "![%s](%s)\n", strings.TrimSuffix(plot, filepath.Ext(plot)), plot)
	}
	b.WriteString("\n| contender | |\n|---|---|\n")
	for _, name := range r.names() {
		fmt.Fprintf(&b, "| %s | %s |\n", name, noteOf(name))
	}
	r.overview(&b)
	for _, m := range modes() {
		if rows := r.of(m); len(rows) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", m.name(), capital(m.title()))
			rateTable(&b, rows)
			costTable(&b, rows)
		}
	}
	return b.String()
}

const legend = `## How to read it

A pair is an acquire and its unlock. Rates, ratios and waits are medians of the repeats, with the smallest and the
largest in brackets; the maximal wait is over all repeats, and so are the counts of what must not be. Ratios are to
` + baseline + ` in the same repeat, on several servers to redsync. Commands are those the server executed, inside of
scripts too. Messages are what the servers read from their connections at a time, which may be several commands. Server and
client CPU and allocations are for one pair, and the client's include this program's own. Least/most compares the pairs of
the goroutine (client) that got the fewest with those of the one that got the most: 1 is fair; in a short window with many
waiters each gets few turns, and it says little. Waits that go on at the end of the window end with it or soon after,
because sections do nothing from then on: where a full turn of all waiters takes longer than the window, waits are too
short. A lock that polls (redislock, redsync) goes again and again to whoever just unlocked it, while the others sleep: its
rate on one key is to be read beside least/most, and so is its p99 where 99 uses of 100 are of the same few callers. A use
is a wait with its section and its unlock. A waiter hangs that has not come back seconds after all load ended.

`

const legendUsual = `On Linux the server has a session of its own, as a service has: where sessions are scheduled as groups (sched_autogroup)
it would otherwise share its clients' part of the CPUs. The slow
link is a proxy in this program, whose CPU counts as the client's; it delays what clients send, and keeps its order.
Redisson's holds are checked as those of the others, in Java. Its client CPU is the whole JVM's and its bytes are what the JVM's
threads allocated; the JVM is warmed up before the first round and stays for all.

In the modes of many clients (clients, quorum) a client stands for a process: all are in this one, each with connections of
its own. Where callers pause they begin one after the other, and nothing is measured before all have begun and two seconds
are over. With 1,000 clients fencelock is alone: a full turn of all callers of another lock would take longer than a
window. Redisson takes part up to 64 clients, because each of its clients has threads of its own: here two for tasks and two
for the network, and one idle connection. On several servers only redsync has a lock to compare with.

Where one of the servers of a quorum is far or dead, it is the one that fencelock asks first for the key; redsync asks all at
once. The far one is behind a link as above. At the dead one's address nothing listens from the start of the round. redsync as it
comes waits for that one too, for seconds: where no pair ended within a window the tables say so, and its waiters hang until they are cancelled.

`

const legendKinds = `In the modes semaphore a pair is a permit and its return, and in the modes rwlock a read or write lock and its unlock. Ratios are to Redisson. A
client stands for a process: all are in this one, those of Redisson in one JVM, each with connections of its own. Redisson's client CPU is the
whole JVM's, its bytes are what the JVM's threads allocated, and the JVM is warmed up before the first round. It has no tokens of permits and of
read-write locks.

Up to 5 may have a permit at once: overlaps are those beyond. fencelock's tokens grow in each slot for itself: a slot that two have, or a token that is not
larger, counts as an error. Redisson's permits are not renewed, and its documentation says that their order is unpredictable. sorted-set
tries again every 10 ms: it gives a permit to whoever asks next, and who has just returned one is awake.

Of a read-write lock, whoever is inside beside a writer is an overlap. Who reads at the same time has the same token. In rwlock-lone the waits and uses are
the writer's, pairs are those of all, and least/most is the writer's part where it has the fewest.

`

const legendOthers = `In the modes others fencelock is beside locks that are not in Redis, and ratios are to fencelock. All clients are in one process. A
client of etcd has one session, and one of PostgreSQL a connection for each of its holders, opened before the load begins. Their servers
run in processes of their own, each in a session of its own as the Redis server, and are idle while another contender is measured. Their
CPU is what the kernel says of all their processes, and they get no commands of Redis. The Redis server keeps nothing on disk, advisory
locks are in PostgreSQL's memory alone, and a member of etcd writes each step of a lock to its log and, but for etcd-nosync, waits until
the disk has it: how long such a write takes here is in the first lines. etcd's token is the revision in the header with which its mutex
was got. Its member sends new watchers what happened meanwhile once in 100 ms, so that a waiter of etcd hears of a release that comes soon
after it began to wait up to 100 ms late. Where callers pause, nothing is measured before two seconds are over.

`

// duration writes microseconds with about three digits and a unit.
func duration(us float64) string {
	d := time.Duration(us * float64(time.Microsecond))
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f us", us)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f us", us)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", us/1e3)
	default:
		return fmt.Sprintf("%.1f s", us/1e6)
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
