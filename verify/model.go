package main

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// lockModel is a lock with tokens. A hold ends in two ways: by its unlock, or, where that was never sent or found nothing,
// at some time after its context was last seen alive. The end of a hold that is over already changes nothing.
//
// Acquires without an outcome are left out: they may have taken the lock at the end of all things, so that they make no
// history legal or illegal. Tokens grow, and all that were given out are there, so that each acquire or re-entry has to have the next one of
// them (see inOrder): a model that took any larger one would have porcupine try each set of the calls that waited at the same time.
var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(lockState), input.(op)
		switch o.Kind {
		case acquire:
			return s.hold == 0 && o.Want == s.takes+1, lockState{o.ID, o.Want}
		case reenter:
			return s.hold == o.Hold && o.Want == s.takes+1, lockState{o.Hold, o.Want}
		}
		if s.hold == o.Hold {
			s.hold = 0
		}
		return true, s
	},
	DescribeOperation: describe,
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

type lockState struct{ hold, takes int64 }

// counterModel is the tokens of a lock alone, for when Redis may forget who has it.
var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		place := input.(op).Want
		return place == state.(int64)+1, place
	},
	DescribeOperation: describe,
}

// registerModel is a number behind a guard. Each write is one more than what its holder has read under the same token, so
// that a legal history has lost no update; but for those of twice, which two holds had at the same time: a guard cannot tell
// their writes apart. A write without an outcome takes effect whenever it is its time, or not.
func registerModel(twice map[int64]bool) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return registerState{} },
		Step:              func(state, input, _ any) (bool, any) { return registerStep(state.(registerState), input.(op), twice) },
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func registerStep(s registerState, o op, twice map[int64]bool) (bool, any) {
	follows := o.Value == s.value+1 || twice[o.Token]
	switch {
	case o.Outcome == refused:
		return o.Token < s.token, s
	case o.Kind == read && o.Outcome == done:
		return o.Token >= s.token && o.Value == s.value, registerState{o.Token, s.value}
	case o.Outcome == done:
		return o.Token >= s.token && follows, registerState{o.Token, o.Value}
	case o.Token < s.token: // of those without an outcome
		return true, s
	case o.Kind == read:
		return true, registerState{o.Token, s.value}
	case follows:
		return true, registerState{o.Token, o.Value}
	}
	return true, s
}

type registerState struct{ token, value int64 }

func describe(input, _ any) string {
	o := input.(op)
	switch o.Kind {
	case read, write:
		return fmt.Sprintf("%s %d, token %d: %s", o.Kind, o.Value, o.Token, o.Outcome)
	case acquire, reenter:
		return fmt.Sprintf("%s: token %d", o.Kind, o.Token)
	}
	return fmt.Sprintf("end of hold %d: %s", o.Hold, o.Outcome)
}

// lockHistory is what lockModel is asked about.
func lockHistory(ops []op) []porcupine.Operation {
	var history []porcupine.Operation
	last := make(map[int64]int64) // when a hold was last seen alive
	released := make(map[int64]bool)
	for _, o := range ops {
		switch {
		case o.Kind == alive:
			last[o.Hold] = o.Return
		case o.Kind == unlock && o.Outcome == done:
			released[o.Hold] = true
			history = append(history, operation(o, o.Call, o.Return))
		}
	}
	for _, o := range ops {
		if (o.Kind == acquire || o.Kind == reenter) && o.Outcome == done {
			history = append(history, operation(o, o.Call, o.Return))
		}
		if o.Kind == acquire && o.Outcome == done && !released[o.ID] {
			history = append(history, operation(op{Kind: unlock, Client: o.Client, Hold: o.ID}, max(last[o.ID], o.Return), forever))
		}
	}
	return inOrder(history)
}

// counterHistory is what counterModel is asked about.
func counterHistory(ops []op) []porcupine.Operation {
	var history []porcupine.Operation
	for _, o := range ops {
		if (o.Kind == acquire || o.Kind == reenter) && o.Outcome == done {
			history = append(history, operation(o, o.Call, o.Return))
		}
	}
	return inOrder(history)
}

// registerHistory is what registerModel is asked about.
func registerHistory(ops []op) []porcupine.Operation {
	var history []porcupine.Operation
	for _, o := range ops {
		switch {
		case o.Kind != read && o.Kind != write:
		case o.Outcome == done, o.Outcome == refused:
			history = append(history, operation(o, o.Call, o.Return))
		case o.Outcome != failed:
			history = append(history, operation(o, o.Call, forever))
		}
	}
	return history
}

// inOrder sets Want of acquires and re-entries to the place of their token among all.
func inOrder(history []porcupine.Operation) []porcupine.Operation {
	var tokens []int64
	takes := func(o op) bool { return o.Kind == acquire || o.Kind == reenter }
	for _, one := range history {
		if o := one.Input.(op); takes(o) {
			tokens = append(tokens, o.Token)
		}
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	for i, one := range history {
		if o := one.Input.(op); takes(o) {
			place, _ := slices.BinarySearch(tokens, o.Token)
			o.Want = int64(place) + 1
			history[i].Input = o
		}
	}
	return history
}

func operation(o op, from, to int64) porcupine.Operation {
	return porcupine.Operation{ClientId: o.Client, Input: o, Call: from, Return: to}
}
