package main

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func contenderOf(t *testing.T, name string) contender {
	t.Helper()
	i := slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no contender is called %q", name)
	}
	return contenders[i]
}

func TestARemoteThatEndsOrIsSilent(t *testing.T) {
	r, err := startRemote("it", exec.Command("sh", "-c", "echo too bad >&2; read line"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	if _, err := r.ask(t.Context(), 0, "hello", nil); err == nil || !strings.Contains(err.Error(), "it ended") || !strings.Contains(err.Error(), "too bad") {
		t.Errorf("the error is %v", err)
	}
	silent, err := startRemote("it", exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := silent.ask(ctx, 0, "hello", nil); err != context.DeadlineExceeded {
		t.Errorf("the error is %v", err)
	}
}
