package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The lines that the README shows first are this program's, and it works as somebody copies it: with its own imports, and another address.
func TestAsItStandsInTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(readme), "```go\n")
	lines, _, found := strings.Cut(lines, "```\n")
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !found || !strings.Contains(strings.ReplaceAll(string(program), "\n\t", "\n"), lines) {
		t.Fatal("the first lines of Go in the README are not in examples/minute/main.go")
	}
	source := filepath.Join(t.TempDir(), "main.go")
	there := strings.Replace(string(program), "localhost:6379", redistest.Start(t), 1)
	if err := os.WriteFile(source, []byte(there), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"my token is 1\n", "my token is 2\n"} {
		out, err := exec.CommandContext(t.Context(), "go", "run", source).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
