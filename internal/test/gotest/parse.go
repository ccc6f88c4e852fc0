package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// A pkg is a package that failed, and what go test has printed of it.
type pkg struct {
	name  string
	lines []string
}

// A failure is a failed test of the top level, with the messages of its own and of its subtests; or what failed beside the tests.
type failure struct {
	test  string
	lines []string
	again string // why the test may be run again; "" for a test that may not
}

// A parser takes the output of go test, package by package.
type parser struct {
	packages []string // that are tested: a test may print lines of others
	lines    []string
	failed   []pkg
}

var (
	ends     = regexp.MustCompile(`^(ok  |FAIL|\?   )\t(\S+)`)
	fails    = regexp.MustCompile(`^( *)--- FAIL: (\S+) `)
	message  = regexp.MustCompile(`^( +)(\S+\.go):\d+: (.*)`)
	poisoned = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)|\bInv[129]: `) // exclusion, tokens, goroutines that remain
)

func (p *parser) line(line string) {
	m := ends.FindStringSubmatch(line)
	if m == nil || !slices.Contains(p.packages, m[2]) {
		p.lines = append(p.lines, line)
		return
	}
	if m[1] == "FAIL" {
		p.failed = append(p.failed, pkg{m[2], append(p.lines, line)})
	}
	p.lines = nil
}

// rotten tells whether something failed that nobody may try again: also where the tests did not come to their end, of which a line FAIL tells, or
// where a test's line of failure is not by itself, as something was printed before it.
func (p pkg) rotten() bool {
	return slices.ContainsFunc(p.lines, poisoned.MatchString) || !slices.ContainsFunc(p.lines, fails.MatchString) || !slices.Contains(p.lines, "FAIL") ||
		slices.ContainsFunc(p.lines, func(line string) bool { return strings.Contains(line, "--- FAIL: ") && !fails.MatchString(line) })
}

// A node is a failed test, or a subtest. The line of a message is indented by four more than the test that says it, and a test says its own
// before and behind those of its subtests.
type node struct {
	name   string
	depth  int
	above  *node
	inner  bool   // a test below it failed too
	said   int    // how many messages of its own there are, without marks
	bound  string // what its first message says of a bound in real time that was passed
	marked string // why realtime.Test marks it
}

// again returns why the test may be run again. Of a test with failed subtests these decide, unless it has messages of its own.
func (n *node) again() string {
	for outer := n; outer != nil; outer = outer.above {
		if outer.marked != "" {
			return outer.marked
		}
	}
	return n.bound
}

// failures returns what failed. Where a package panics, or does not compile, that is one failure without a test's name.
func (p pkg) failures() []failure {
	var all []*failure
	var nodes []*node
	of := map[*node]*failure{}
	var now *node // whose lines come
	var top *failure
	up := func(depth int) {
		for now != nil && now.depth > depth && now.above != nil {
			now = now.above
		}
	}
	for _, line := range p.lines {
		if m := fails.FindStringSubmatch(line); m != nil {
			n := &node{name: m[2], depth: len(m[1])}
			if n.depth > 0 && now != nil {
				up(n.depth - 4)
				n.above, now.inner = now, true
			} else {
				top = &failure{test: n.name}
				all = append(all, top)
			}
			now = n
			nodes = append(nodes, n)
			of[n] = top
		} else if now == nil || !strings.HasPrefix(line, "    ") { // what the program itself prints
			continue
		}
		top.lines = append(top.lines, line)
		m := message.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		up(len(m[1]) - 4)
		why, isMark := strings.CutPrefix(m[3], realtime.Mark)
		switch {
		case isMark && m[2] == "realtime.go":
			now.marked = why
		case isMark && now.said == 0 && now.bound == "":
			now.bound = why
		case !strings.HasPrefix(m[3], "output of the server"): // package redistest adds it
			now.said++
		}
	}
	refused := map[*failure]bool{}
	for _, n := range nodes {
		if n.inner && n.said == 0 {
			continue
		}
		f := of[n]
		if why := n.again(); why == "" {
			refused[f] = true
		} else {
			f.again = why
		}
	}
	var found []failure
	for _, f := range all {
		if refused[f] || p.rotten() {
			f.again = ""
		}
		found = append(found, *f)
	}
	if p.rotten() {
		found = append(found, failure{lines: p.beside()})
	}
	return found
}

// beside is what is there besides the tests: from the first line of a panic or a race on, or the end.
func (p pkg) beside() []string {
	if i := slices.IndexFunc(p.lines, poisoned.MatchString); i >= 0 {
		return p.lines[i:]
	}
	return p.lines[max(0, len(p.lines)-20):]
}
