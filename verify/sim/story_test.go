package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// The command plays a seed, and tells what happened in it.
func TestStory(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-seed", "3", "-n", "1", "-clients", "2", "-servers", "1", "-length", "5m", "-story"}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 3: 1 servers, 2 clients", "c0.1   starts", "asks for L0, and waits", "has L0, with token", "has unlocked L0", "Redis: L0 is free", "no more faults", "1 worlds, seeds 3 to 3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
}

// A bug is found by the command, in a plan that was shrunk, and told.
func TestStoryOfABug(t *testing.T) {
	b := bugs[0]
	found, worlds, err := b.find(t.Context(), settings{seed: 1, jobs: 2, limits: limits{Length: 1 << 39}})
	if err != nil || found == nil {
		t.Fatalf("%s was not found in %d worlds: %v", b.Short, worlds, err)
	}
	var out bytes.Buffer
	tell(&out, found.Plan, found.History, found.Violations)
	if !strings.Contains(out.String(), "HERE: "+oneHolder) {
		t.Errorf("the story does not end with what was violated:\n%s", out.String())
	}
}

// Faults that go on are told in the order in which they began.
func TestStoryOfFaultsThatGoOn(t *testing.T) {
	h := []event{{At: 1, Kind: begins, Text: "c"}, {At: 2, Kind: begins, Text: "a"}, {At: 3, Kind: begins, Text: "b"}, {At: 4, Kind: ends, Text: "a"}, {At: 5, Kind: begins, Text: "a"}}
	for range 20 {
		var out bytes.Buffer
		tell(&out, plan{}, h, []violation{{Rule: nobodySleep, At: 2 * around}})
		var told []string
		for line := range strings.Lines(out.String()) {
			if what, is := strings.CutSuffix(line, ", and it goes on\n"); is {
				told = append(told, what[len(what)-1:])
			}
		}
		if strings.Join(told, "") != "cba" {
			t.Fatalf("%q, not c, b, a", told)
		}
	}
}

func TestArguments(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-list"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"freeze", "failover", "acquire-held"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("-list does not name %s", name)
		}
	}
	for args, want := range map[string]string{
		"-faults nothing":           "-list prints them",
		"-broken -only nothing":     "-list prints them",
		"-servers 3":                "5 for a quorum",
		"-length 1s":                "at least 4m",
		"what":                      "is not a flag",
		"-n -1":                     "nothing is negative",
		"-faults freeze,no -seed 1": "no fault is called",
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", args, err, want)
		}
	}
}
