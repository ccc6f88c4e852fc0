package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What was never done is named.
func TestNever(t *testing.T) {
	full := newTotal(settings{})
	for _, name := range expects() {
		full.done[name] = 1
	}
	if missed := full.never(); len(missed) > 0 {
		t.Errorf("all was done, and never says %v", missed)
	}
	for name := range full.done {
		delete(full.done, name)
		if missed := full.never(); !slices.Equal(missed, []string{name}) {
			t.Errorf("%s was never done, and never says %v", name, missed)
		}
		full.done[name] = 1
	}
}

// With -covers it is an error that something was never done: in a world without faults no fault was.
func TestCovers(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-seed", "3", "-n", "1", "-clients", "2", "-servers", "1", "-length", "5m", "-faults", "none", "-covers"}, &out, io.Discard)
	if !errors.Is(err, errNever) {
		t.Errorf("-covers says %v", err)
	}
	if !strings.Contains(out.String(), "never: ") || !strings.Contains(out.String(), "fault freeze, ") || strings.Contains(out.String(), "script wait, ") {
		t.Errorf("a world without faults says:\n%s", out.String())
	}
}

// The scripts have the names that they have in the library.
func TestScriptNames(t *testing.T) {
	for _, name := range []string{"acquire", "wait", "try", "level", "unlock", "release", "leave", "transfer", "renew", "inspect", "vote", "extend", "recount", "raise", "withdraw", "look"} {
		if got := nameOf(locktest.ScriptText(name)); got != name {
			t.Errorf("%s is called %q", name, got)
		}
	}
	if got := nameOf("return 1"); got != "" {
		t.Errorf("a script of others is called %q", got)
	}
}

// A script counts by its text and by its digest, a batch by its operations; one that the server has not got does not count.
func TestScriptCounter(t *testing.T) {
	done := newTally()
	s := scriptCounter{done, make(map[string]string)}
	text := "local operation = wait\nreturn 1"
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	s.counts("EVALSHA", []string{sha, "0"})
	s.counts("EVAL", []string{text, "0"})
	s.counts("EVALSHA", []string{sha, "0"})
	clear(s.names)
	s.counts("EVALSHA", []string{sha, "0"})
	s.counts("EVAL", []string{"-- batch does", "1", "L", "try+", "30000", "quick"})
	if got, want := fmt.Sprint(done.counts()), "map[batch of quick:1 batch of try:1 script wait:2]"; got != want {
		t.Errorf("counted %s, not %s", got, want)
	}
}

// An error counts for all that it is.
func TestEnds(t *testing.T) {
	done := newTally()
	done.ends("acquire", nil)
	done.ends("acquire", errors.Join(rlock.ErrLost, context.DeadlineExceeded))
	done.ends("acquire", errors.New("what nobody knows"))
	if got, want := fmt.Sprint(done.counts()), "map[acquire: lost:1 acquire: no answer:1 acquire: something else:1 acquire: well:1]"; got != want {
		t.Errorf("counted %s, not %s", got, want)
	}
}
