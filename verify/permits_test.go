package main

import (
	"slices"
	"testing"
)

// inSlot is the history of a hold whose lock is that of a slot.
func inSlot(slot string, ops []op) []op {
	for i := range ops {
		ops[i].Lock = slot
	}
	return ops
}

// Each slot is a lock, and who waits for a permit waits for all of them.
func TestPermitRules(t *testing.T) {
	slot := func(i int, id int64, from, to int) []op {
		return inSlot(slotBase+string(rune('0'+i)), hold(id, int(id)*10, id, from, to))
	}
	var all, most []op // are held all the time; most: but for the last slot
	for i := range permits {
		most = all
		all = join(all, slot(i, int64(i+1), 10, 19_990))
	}
	const last = permits - 1
	waiter := op{ID: 100, Client: 900, Kind: acquire, Lock: anySlot, Value: ms(60_000), Call: ms(40), Return: ms(20_000), Outcome: refused}
	silent := op{ID: 101, Client: 910, Kind: acquire, Lock: anySlot, Value: ms(18_000), Call: ms(40), Return: ms(18_000), Outcome: unknown}
	other := inSlot("a", []op{waiter})
	got := slot(0, 8, 9_000, 19_990)
	got[0].Call, got[0].Value = ms(40), ms(9_000)
	for _, c := range []struct {
		name string
		ops  []op
		want []string
	}{
		{"all are held", join(all, []op{waiter}), nil},
		{"one is free", join(most, []op{waiter}), []string{ruleWake}},
		{"one is free, and nobody waits", most, nil},
		{"one is free, and somebody waits for a lock", join(most, hold(7, 70, 7, 10, 19_990), other), nil},
		{"one is free for a while", join(most, slot(last, 7, 10, 14_000), []op{waiter}), []string{ruleWake}},
		{"one is free, and who waited gets another one", join(slot(0, 7, 10, 8_999), got, most[3:]), []string{ruleWake}},
		{"one may have been taken by an attempt without an answer", join(most, []op{waiter, silent}), nil},
		{"two in one slot", join(most, slot(0, 8, 20, 30)), []string{ruleExclusive, ruleLock}},
		{"one more than there are", join(all, slot(permits, 8, 20, 30)), []string{rulePermits}},
		{"a slot that there is not", slot(permits, 8, 20, 30), []string{rulePermits}},
		{"an older token", join(slot(1, 9, 10, 20), slot(1, 8, 30, 40)), []string{ruleLock, ruleTokens}},
		{"an older token in another slot", join(slot(1, 9, 10, 20), slot(2, 8, 30, 40)), nil},
		{"an older token at the guard of a slot", inSlot(slotBase+"1", []op{guarded(1, write, 2, 1, 10, 11, done), guarded(2, write, 1, 2, 12, 13, done)}), []string{ruleGuard, ruleRegister}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(trial{Ops: c.ops, promise: keeps, Calm: ms(60), End: ms(19_900)})
			if names := slices.Sorted(slices.Values(v.violated())); !slices.Equal(names, slices.Sorted(slices.Values(c.want))) {
				t.Errorf("violated: %q, want %q: %v", names, c.want, v.Violations)
			}
		})
	}
}
