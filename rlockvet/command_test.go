package rlockvet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command says the same on its own and below go vet, and takes the flags that docs/vet.md names.
func TestCommand(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "rlockvet")
	if out, err := exec.Command("go", "build", "-o", tool, "./cmd/rlockvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const dropped = "the context that Lock returns is dropped"
	for _, c := range []struct {
		args   string
		status int
		says   string // nothing at all where it is empty
	}{
		{"TOOL ./held", 3, dropped},
		{"go vet -vettool=TOOL ./held", 1, dropped},
		{"TOOL -held ./held", 3, dropped},
		{"TOOL -held=false -wrongctx=false ./held", 0, ""},
		{"go vet -vettool=TOOL -held=false ./held", 0, ""},
		{"TOOL -fix -diff ./errcompare", 0, `+import "errors"`},
		{"TOOL help held", 0, "drop the context"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "TOOL", tool))
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "testdata"
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if cmd.ProcessState.ExitCode() != c.status || !strings.Contains(string(out), c.says) || c.says == "" && len(out) > 0 {
			t.Errorf("%s: status %d, want %d and %q:\n%s", c.args, cmd.ProcessState.ExitCode(), c.status, c.says, out)
		}
	}
}
