package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The README's program, as somebody copies it: with its own imports, and another address.
func TestAsItStandsInTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "```go\npackage main\n")
	program, _, found := strings.Cut("package main\n"+program, "```\n")
	here, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !found || program != string(here) {
		t.Fatal("examples/minute/main.go is not the program of the README")
	}
	source := filepath.Join(t.TempDir(), "main.go")
	program = strings.Replace(program, "localhost:6379", redistest.Start(t), 1)
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"my token is 1\n", "my token is 2\n"} {
		out, err := exec.CommandContext(t.Context(), "go", "run", source).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
