package main

import (
	"slices"
	"testing"
)

// Nobody reads while somebody writes, those who read share tokens, and what they read stays the same.
func TestPageRules(t *testing.T) {
	reads := func(id, token int64, from, to int) []op {
		return renamed(hold(id, int(id)*10, token, from, to), pageRead)
	}
	writes := func(id, token int64, from, to int) []op {
		return renamed(hold(id, int(id)*10, token, from, to), pageName)
	}
	looks := func(id, token, value int64, from int) []op {
		o := guarded(id, read, token, value, from, from+1, done)
		o.Hold = id
		return renamed([]op{o}, pageName)
	}
	wants := op{ID: 100, Client: 900, Kind: acquire, Lock: pageName, Value: ms(60_000), Call: ms(40), Return: ms(20_000), Outcome: refused}
	for _, c := range []struct {
		name string
		ops  []op
		want []string
	}{
		{"two read at once", join(reads(1, 1, 10, 90), reads(2, 1, 20, 80)), nil},
		{"one reads while one writes", join(reads(1, 1, 10, 90), writes(2, 2, 20, 80)), []string{ruleReaders}},
		{"two write at once", join(reads(3, 1, 1, 2), writes(1, 2, 10, 90), writes(2, 3, 20, 80)), []string{ruleExclusive, ruleLock}},
		{"one writes after one has read", join(reads(1, 1, 10, 20), writes(2, 2, 30, 40)), nil},
		{"with the same token", join(reads(1, 1, 10, 20), writes(2, 1, 30, 40)), []string{ruleTokens}},
		{"one reads with the token of the writer before", join(writes(1, 1, 10, 20), reads(2, 1, 30, 40)), []string{ruleTokens}},
		{"one reads with an older token", join(reads(1, 2, 10, 20), reads(2, 1, 30, 40)), []string{ruleTokens}},
		{"what is read stays", join(reads(1, 1, 10, 90), looks(1, 1, 0, 20), looks(1, 1, 0, 40)), nil},
		{"it is held all the time by one who reads, and waited for", join(reads(1, 1, 10, 19_990), []op{wants}), nil},
		{"it is free, and waited for", join(reads(1, 1, 10, 100), []op{wants}), []string{ruleWake}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(trial{Ops: c.ops, promise: keeps, Calm: ms(60), End: ms(19_900)})
			if names := slices.Sorted(slices.Values(v.violated())); !slices.Equal(names, slices.Sorted(slices.Values(c.want))) {
				t.Errorf("violated: %q, want %q: %v", names, c.want, v.Violations)
			}
		})
	}
	v := trial{Ops: join(reads(1, 1, 10, 90), looks(1, 1, 0, 20), looks(1, 1, 1, 40)), promise: keeps}.rules()
	if names := v.violated(); !slices.Contains(names, ruleReaders) {
		t.Errorf("what is read changes: violated: %q", names)
	}
}
