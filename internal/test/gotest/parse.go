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

// A failure is a failed test with no failed test below it, with its messages and those of the tests that it is below; or what failed beside the
// tests.
type failure struct {
	test  string
	lines []string
}

// A parser takes the output of go test, package by package.
type parser struct {
	lines  []string
	failed []pkg
}

var (
	ends     = regexp.MustCompile(`^(ok  |FAIL|\?   )\t(\S+)`)
	fails    = regexp.MustCompile(`^( *)--- FAIL: (\S+) `)
	message  = regexp.MustCompile(`^( +)\S+\.go:\d+: `)
	anyEnd   = regexp.MustCompile(`^ *--- (PASS|SKIP|FAIL): `)
	poisoned = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|Inv9: )|\bInv[12]: `) // Inv1 is exclusion, and Inv2 that tokens grow
)

func (p *parser) line(line string) {
	m := ends.FindStringSubmatch(line)
	if m == nil {
		p.lines = append(p.lines, line)
		return
	}
	if m[1] == "FAIL" {
		p.failed = append(p.failed, pkg{m[2], append(p.lines, line)})
	}
	p.lines = nil
}

// end returns the packages that failed.
func (p *parser) end() []pkg { return p.failed }

// rotten tells whether something failed that nobody may try again.
func (p pkg) rotten() bool {
	return slices.ContainsFunc(p.lines, poisoned.MatchString) || !slices.ContainsFunc(p.lines, fails.MatchString)
}

// A node is a failed test among those that it is below. The line of a message is indented by four more than the test that says it, and a test
// says its own behind those of its subtests.
type node struct {
	failure
	depth int
	above *node
	inner bool // a test below it failed too
}

// failures returns what failed. Where a package panics, or does not compile, that is one failure without a test's name.
func (p pkg) failures() []failure {
	var all []*node
	var now *node // whose lines come
	up := func(depth int) {
		for now != nil && now.depth > depth {
			now = now.above
		}
	}
	for _, line := range p.lines {
		if m := fails.FindStringSubmatch(line); m != nil {
			up(len(m[1]) - 4)
			now = &node{failure: failure{test: m[2]}, depth: len(m[1]), above: now}
			if now.above != nil {
				now.above.inner = true
			}
			all = append(all, now)
			continue
		}
		if m := message.FindStringSubmatch(line); m != nil {
			up(len(m[1]) - 4)
		}
		switch {
		case anyEnd.MatchString(line):
			now = nil
		case now != nil && strings.HasPrefix(line, "    "): // and not what the program itself prints
			now.lines = append(now.lines, line)
		}
	}
	var leaves []failure
	for _, n := range all {
		if n.inner {
			continue
		}
		for outer := n.above; outer != nil; outer = outer.above {
			n.lines = append(n.lines, outer.lines...)
		}
		leaves = append(leaves, n.failure)
	}
	if len(leaves) == 0 || slices.ContainsFunc(p.lines, poisoned.MatchString) {
		leaves = append(leaves, failure{lines: p.beside()})
	}
	return leaves
}

// beside is what is there besides the tests: from the first line of a panic or a race on, or the end.
func (p pkg) beside() []string {
	if i := slices.IndexFunc(p.lines, poisoned.MatchString); i >= 0 {
		return p.lines[i:]
	}
	return p.lines[max(0, len(p.lines)-20):]
}

// mark returns why the test may be run again; "" for a test that may not.
func (f failure) mark() string {
	for _, line := range f.lines {
		if _, why, is := strings.Cut(line, ": "+realtime.Mark); is {
			return why
		}
	}
	return ""
}
