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

func (e event) String() string {
	who := fmt.Sprintf("%-6s", e.Client)
	if e.Call > 0 {
		who += fmt.Sprintf(" call %-4d", e.Call)
	}
	switch e.Kind {
	case asks:
		switch {
		case e.For < 0:
			return fmt.Sprintf("%s asks for %s, and waits for as long as it takes", who, e.what())
		case e.For == 0:
			return fmt.Sprintf("%s tries %s", who, e.what())
		}
		return fmt.Sprintf("%s asks for %s, and waits %v at most", who, e.what(), e.For)
	case got:
		lease := ""
		if e.For > 0 {
			lease = fmt.Sprintf(", for %v", e.For)
		}
		return fmt.Sprintf("%s has %s, with token %d%s", who, e.what(), e.Token, lease)
	case nested:
		return fmt.Sprintf("%s re-enters %s, with token %d: %d levels are open", who, e.Lock, e.Token, e.Levels)
	case refused:
		return fmt.Sprintf("%s has not got %s: %s", who, e.Lock, e.Text)
	case ended:
		return fmt.Sprintf("%s: the context of its hold of %s has ended: %s", who, e.Lock, e.Text)
	case failed:
		return fmt.Sprintf("%s: a level of %s has failed after %v: %s", who, e.Lock, e.For, e.Text)
	case watches, waited:
		return fmt.Sprintf("%s: its hold of %s %s", who, e.Lock, map[string]string{watches: "is to say who waits", waited: "says that somebody waits"}[e.Kind])
	case extends:
		return fmt.Sprintf("%s extends its lease of %s, to %v from now", who, e.Lock, e.For)
	case extended:
		return strings.TrimSuffix(fmt.Sprintf("%s: its Extend is over: %s", who, e.Text), ": ")
	case remains:
		return fmt.Sprintf("%s: its lease of %s lasts for %v more", who, e.Lock, e.For)
	case unlocks:
		return fmt.Sprintf("%s unlocks %s", who, e.Lock)
	case unlocked:
		if e.Text == "" {
			return fmt.Sprintf("%s has unlocked %s", who, e.Lock)
		}
		return fmt.Sprintf("%s has unlocked %s, and was told: %s", who, e.Lock, e.Text)
	case counted:
		return fmt.Sprintf("%s: HoldCount is %d, and %d levels are open", who, e.Count, e.Levels)
	case started:
		return fmt.Sprintf("%s starts, with the id %s", who, e.Text)
	case closes:
		return fmt.Sprintf("%s calls %s", who, e.Text)
	case closed:
		return fmt.Sprintf("%s is closed %s", who, e.Text)
	case died:
		return fmt.Sprintf("%s dies", who)
	case has:
		if e.Text == "" {
			return fmt.Sprintf("       Redis: %s is free", e.Lock)
		}
		return fmt.Sprintf("       Redis: %s is taken by %s", e.Lock, e.Text)
	case begins:
		return fmt.Sprintf("       FAULT %s", e.Text)
	case ends:
		return fmt.Sprintf("       END OF %s; all is well %v later", e.Text, e.For)
	case lost:
		return fmt.Sprintf("       LOST  %s", e.Text)
	case left:
		if e.Client != "" {
			return fmt.Sprintf("%s LEFT  %d %s", who, e.Count, e.Text)
		}
		return fmt.Sprintf("       LEFT  %s %s, for %v more", e.Lock, e.Text, e.For)
	case calm:
		return "       no more faults"
	case stops:
		return "       no more calls"
	}
	return e.Kind
}
