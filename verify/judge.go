package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime is what porcupine may take for one history. One that takes longer is reported as not checked.
const checkTime = 20 * time.Second

// grace is what is added to every bound in time, for a machine that is busy. A round adds how long it stood still itself.
const grace = 3 * time.Second

// slowWake is what half of the waiters are woken within where that is promised: less than the clients rest there after a
// hold, for which a lock is free that nobody was told of. slowPermit is the same for permits: the second in a line that is never empty looks
// after 100 ms. A verdict takes minWakes of them.
const (
	slowWake   = 100 * time.Millisecond
	slowPermit = 50 * time.Millisecond
	minWakes   = 5
)

// maxOwed is when what is owed has been released at the latest, however long the lease is, if Redis was away for less than
// three seconds, or stood still: see P3.
const maxOwed = 3*time.Second + answerTimeout

// A trial is a round with what there is to judge it by.
type trial struct {
	Scenario string        `json:"scenario"`
	Seed     uint64        `json:"seed"`
	Versions string        `json:"versions"`
	Faults   []event       `json:"faults"`
	Ops      []op          `json:"ops"`
	Calm     int64         `json:"calm"` // from here on there are no more faults
	End      int64         `json:"end"`  // of the load
	Stall    time.Duration `json:"stall"`
	Left     []string      `json:"left"`             // what was left behind
	Killed   map[int]int64 `json:"killed,omitempty"` // processes that were killed, and when
	Line     *seen         `json:"line,omitempty"`

	promise promise
	poll    time.Duration // of the clients
	churned int64         // calls that nobody has written down
}

// An event is a fault, as it was.
type event struct {
	Name    string `json:"name"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Process int    `json:"process,omitempty"` // that stands still, does not hear, or is gone; 1 for the first one, 0 for none
}

// A verdict is what is wrong with a trial.
type verdict struct {
	Violations []violation `json:"violations"`
	Unchecked  []string    `json:"unchecked"` // histories that porcupine had no time for
	wakes      []time.Duration
	pictures   map[string]picture
}

type picture struct {
	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// judge checks a trial, rule by rule, and then against the models.
func judge(t trial) verdict {
	v := t.rules()
	for lock, ops := range byLock(t.Ops) {
		switch {
		case lock == pageRead: // see pageRules
			continue
		case t.promise.exclusive:
			v.porcupine(ruleLock, lock, lockModel, lockHistory(ops))
		case t.promise.tokens:
			v.porcupine(ruleTokens, lock, counterModel, counterHistory(ops))
		}
		var twice map[int64]bool
		if t.again() {
			twice = shared(ops)
		}
		v.porcupine(ruleRegister, lock, registerModel(twice), registerHistory(ops))
	}
	return v
}

// again tells whether tokens may begin again in this trial, and so come to the one of a hold that has not heard of its loss.
func (t trial) again() bool { return !t.promise.exclusive && !t.promise.tokens }

// rules checks a trial rule by rule, which takes no time. What is a violation so far stays one, whatever comes.
func (t trial) rules() verdict {
	v := verdict{pictures: make(map[string]picture)}
	add := func(found []violation) { v.Violations = append(v.Violations, found...) }
	bound, owed := maxPolls*t.poll+2*time.Second+t.Stall, longestLease
	switch {
	case t.promise.ghosts:
		owed = maxOwed
	case t.promise.line:
		owed = lineLease
	}
	locks := byLock(t.Ops)
	for lock, ops := range locks {
		if t.promise.exclusive && lock != pageRead {
			add(oneAlive(ruleExclusive, ops, 0))
		}
		if t.promise.forced {
			add(oneAlive(ruleForced, ops, longestLease+time.Second+t.Stall))
		}
		if t.promise.tokens && lock != pageRead {
			add(order(ruleTokens, ops, true, acquire, reenter))
		}
		add(order(ruleGuard, ops, false, read, write))
		if t.promise.exclusive {
			add(counted(ops))
		}
		add(bounded(ops, t.stopped, 2*grace+t.Stall))
		if strings.HasPrefix(lock, slotBase) {
			continue // see permitRules
		}
		switch lock {
		case pageRead:
			continue
		case pageName: // it is free where nobody reads it either
			ops = byLock(slices.Concat(renamed(locks[pageRead], pageName), ops))[pageName]
		}
		found, gaps := woken(ops, t.Calm, t.End, bound, owed, t.Killed)
		add(found)
		v.wakes = append(v.wakes, gaps...)
	}
	add(t.pageRules(locks))
	found, gaps := t.permitRules(locks, bound, owed)
	add(found)
	woke := func(lock string, gaps []time.Duration, bound time.Duration) {
		if late := quantile(gaps, 0.5); t.promise.wakes && len(gaps) >= minWakes && late > bound {
			v.Violations = append(v.Violations, violation{ruleWake, lock, fmt.Sprintf("half of %d waiters waited for a free lock for %v or more, with nothing broken", len(gaps), late)})
		}
	}
	woke("", v.wakes, slowWake)
	woke(anySlot, gaps, slowPermit)
	v.wakes = append(v.wakes, gaps...)
	if t.promise.line && t.Line != nil {
		add(t.turns())
	}
	for _, left := range t.Left {
		v.Violations = append(v.Violations, violation{Rule: ruleLeft, Text: left})
	}
	return v
}

// stopped is for how long of this time the client's process was stopped, or the like.
func (t trial) stopped(client int, from, to int64) time.Duration {
	var sum int64
	for _, e := range t.Faults {
		if e.Process == client/10+1 {
			sum += max(0, min(to, e.To)-max(from, e.From))
		}
	}
	return time.Duration(sum)
}

func (v *verdict) porcupine(rule, lock string, model porcupine.Model, history []porcupine.Operation) {
	if len(history) == 0 {
		return
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, checkTime)
	switch result {
	case porcupine.Illegal:
		v.Violations = append(v.Violations, violation{rule, lock, fmt.Sprintf("porcupine finds no order for %d operations", len(history))})
		v.pictures[rule+" "+lock] = picture{model, info}
	case porcupine.Unknown:
		v.Unchecked = append(v.Unchecked, fmt.Sprintf("%s, lock %q, %d operations", rule, lock, len(history)))
	}
}

// save writes history.json, verdict.json and porcupine's pictures to a directory of the trial's own below dir, and returns
// its name.
func (v verdict) save(dir string, t trial) (string, error) {
	dir = filepath.Join(dir, fmt.Sprintf("%s-%d", t.Scenario, t.Seed))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	for name, what := range map[string]any{"history.json": t, "verdict.json": v} {
		raw, err := json.MarshalIndent(what, "", " ")
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(raw, '\n'), 0o666); err != nil {
			return "", err
		}
	}
	for name, p := range v.pictures {
		name = strings.Map(func(r rune) rune {
			if strings.ContainsRune(": ,/", r) {
				return '-'
			}
			return r
		}, name) + ".html"
		if err := porcupine.VisualizePath(p.model, p.info, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// violated are the names of the rules that were, each once.
func (v verdict) violated() []string {
	var names []string
	for _, one := range v.Violations {
		if !slices.Contains(names, one.Rule) {
			names = append(names, one.Rule)
		}
	}
	return names
}
