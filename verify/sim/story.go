package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// around is how much of a history is told before a violation.
const around = 3 * time.Minute

// tell tells a history as a person would: all of it, or, where something was violated, what led to that.
func tell(out io.Writer, p plan, history []event, violations []violation) {
	fmt.Fprintf(out, "%s\n", p)
	from, to, lock := time.Duration(0), time.Duration(1<<62), ""
	if len(violations) > 0 {
		v := violations[0]
		from, to, lock = v.At-around, v.At, v.Lock
		for _, v := range violations[:min(len(violations), 5)] {
			fmt.Fprintf(out, "  %s\n  %s  %s\n", strings.Repeat("-", 80), clock(v.At), v)
		}
		if v.Rule == itEnds {
			return
		}
	}
	begun := make(map[string]time.Duration) // faults that had begun before
	for _, e := range history {
		if e.At >= from {
			break
		}
		switch e.Kind {
		case begins:
			begun[e.Text] = e.At
		case ends:
			delete(begun, e.Text)
		}
	}
	for _, text := range slices.SortedFunc(maps.Keys(begun), func(a, b string) int { return cmp.Or(cmp.Compare(begun[a], begun[b]), cmp.Compare(a, b)) }) {
		fmt.Fprintf(out, "  %s  %s, and it goes on\n", clock(begun[text]), text)
	}
	for _, e := range history {
		if e.At < from || e.At > to || lock != "" && e.Lock != "" && lockOfKey(e.Lock) != lockOfKey(lock) || e.Kind == counted && e.Count == e.Levels {
			continue
		}
		fmt.Fprintf(out, "  %s  %s\n", clock(e.At), e)
	}
	if i := slices.IndexFunc(violations, func(v violation) bool { return v.At == to }); i >= 0 {
		fmt.Fprintf(out, "  %s  HERE: %s\n", clock(to), violations[i])
	}
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%3d:%06.3f", int(d/time.Minute), (d % time.Minute).Seconds())
}

func (v violation) String() string {
	if v.Lock == "" {
		return fmt.Sprintf("%s: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("%s: %s: %s", v.Rule, v.Lock, v.Text)
}

func (p plan) String() string {
	callers, calls := 0, 0
	for _, c := range p.Clients {
		callers += len(c.Callers)
		for _, one := range c.Callers {
			calls += len(one.Calls)
		}
	}
	var with []string
	for text, is := range map[string]bool{"WithClockFloor": p.Floor, "WithStableToken": p.Stable, "a crowd": p.Crowd, "a way of 15 ms": p.Distance > 0, "locks without tokens": p.Plain} {
		if is {
			with = append(with, text)
		}
	}
	slices.Sort(with)
	return fmt.Sprintf("seed %d: %d servers, %d clients, %d callers, up to %d calls, %d locks, %d faults, %s", p.Seed, p.Servers, len(p.Clients), callers, calls, p.Locks, len(p.Faults), strings.Join(append(with, "defaults else"), ", "))
}

// what is what the call has got, or asks for.
func (e event) what() string {
	switch {
	case e.Slot != "":
		return e.Slot
	case e.Reads:
		return e.Lock + " to read"
	}
	return e.Lock
}

// stories say what has happened, by the kind of the event.
var stories = map[string]string{
	nested:   "WHO re-enters LOCK, with token TOKEN: LEVELS levels are open",
	refused:  "WHO has not got LOCK: TEXT",
	ended:    "WHO: the context of its hold of LOCK has ended: TEXT",
	failed:   "WHO: a level of LOCK has failed after FOR: TEXT",
	watches:  "WHO: its hold of LOCK is to say who waits",
	waited:   "WHO: its hold of LOCK says that somebody waits",
	extends:  "WHO extends its lease of LOCK, to FOR from now",
	extended: "WHO: its Extend is over: TEXT",
	remains:  "WHO: its lease of LOCK lasts for FOR more",
	unlocks:  "WHO unlocks LOCK",
	unlocked: "WHO has unlocked LOCK: TEXT",
	counted:  "WHO: HoldCount is COUNT, and LEVELS levels are open",
	started:  "WHO starts, with the id TEXT",
	closes:   "WHO calls TEXT",
	closed:   "WHO is closed: TEXT",
	died:     "WHO dies",
	has:      "WHO Redis: LOCK is taken by TEXT",
	begins:   "       FAULT TEXT",
	ends:     "       END OF TEXT; all is well FOR later",
	lost:     "       LOST  TEXT",
	left:     "WHO LEFT  COUNT LOCK TEXT, for FOR more",
	calm:     "       no more faults",
	stops:    "       no more calls",
}

func (e event) String() string {
	who := fmt.Sprintf("%-6s", e.Client)
	if e.Call > 0 {
		who += fmt.Sprintf(" call %-4d", e.Call)
	}
	switch {
	case e.Kind == asks && e.For < 0:
		return fmt.Sprintf("%s asks for %s, and waits for as long as it takes", who, e.what())
	case e.Kind == asks && e.For == 0:
		return fmt.Sprintf("%s tries %s", who, e.what())
	case e.Kind == asks:
		return fmt.Sprintf("%s asks for %s, and waits %v at most", who, e.what(), e.For)
	case e.Kind == got && e.For > 0:
		return fmt.Sprintf("%s has %s, with token %d, for %v", who, e.what(), e.Token, e.For)
	case e.Kind == got:
		return fmt.Sprintf("%s has %s, with token %d", who, e.what(), e.Token)
	case e.Kind == has && e.Text == "":
		return fmt.Sprintf("%s Redis: %s is free", who, e.Lock)
	}
	told := strings.NewReplacer("WHO", who, "LOCK", e.Lock, "TOKEN", fmt.Sprint(e.Token), "LEVELS", fmt.Sprint(e.Levels), "COUNT", fmt.Sprint(e.Count),
		"FOR", e.For.String(), "TEXT", e.Text)
	return strings.TrimSuffix(told.Replace(stories[e.Kind]), ": ")
}
