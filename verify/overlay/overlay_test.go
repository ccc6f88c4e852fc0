package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := make(Files)
	if err := f.Edit(dir, Edit{"a.txt", "one", "three"}, Edit{"a.txt", "three two", "four"}); err != nil {
		t.Fatal(err)
	}
	if got := string(f[filepath.Join(dir, "a.txt")]); got != "four two" {
		t.Errorf("the file has %q", got)
	}
	for _, old := range []string{"not there", "o"} {
		if err := f.Edit(dir, Edit{"a.txt", old, ""}); err == nil || !strings.Contains(err.Error(), "bring the edit up to date") {
			t.Errorf("%q: %v", old, err)
		}
	}
	if err := f.Edit(dir, Edit{"b.txt", "one", ""}); err == nil {
		t.Error("a file that is not there was edited")
	}
}

func TestBuild(t *testing.T) {
	hello := Program{Dir: filepath.Join(Root(), "verify", "overlay", "testdata", "hello")}
	f := Files{filepath.Join(Root(), "verify", "overlay", "testdata", "hello", "main.go"): []byte("package main\n\nfunc main() { this is no Go }\n")}
	if _, _, err := f.Build(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("the changed file was not compiled: %v", err)
	}
	other := Module{Path: Miniredis.Path, Patch: []byte("--- a/miniredis.go\n+++ b/miniredis.go\n@@ -1 +1 @@\n-package other\n+package miniredis\n")}
	hello.Modules = []Module{other}
	if _, _, err := (Files{}).Build(t.Context(), hello); err == nil || !strings.Contains(err.Error(), "make it anew") {
		t.Errorf("a patch of another file: %v", err)
	}
	hello.Modules = []Module{Miniredis}
	program, remove, err := Files{}.Build(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
	if remove(); true {
		if _, err := os.Stat(program); err == nil {
			t.Error("the program is left")
		}
	}
}
