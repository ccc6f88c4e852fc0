package rlockvet_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/fencelock/fencelock/rlockvet"
)

// The checks have nothing to say of this repository's code, nor of its examples, where the README's code comes from. Its tests do on
// purpose what the checks are for, and are left out.
func TestRepository(t *testing.T) {
	for _, dir := range modules(t) {
		t.Run(dir, func(t *testing.T) { look(t, dir) })
	}
}

// look fails the test with what the checks report in a module.
func look(t *testing.T, dir string) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile,
		Dir:   dir,
		Env:   append(os.Environ(), "GOWORK="+workspace(dir)),
		Tests: true,
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(rlockvet.Analyzers, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	users := 0
	for _, root := range graph.Roots {
		for _, err := range root.Package.Errors {
			t.Error(err)
		}
		if root.Err != nil {
			t.Error(root.Err)
		}
		for path := range root.Package.Imports {
			if strings.HasPrefix(path, "github.com/fencelock/fencelock/") {
				users++
			}
		}
		for _, d := range root.Diagnostics {
			at := root.Package.Fset.Position(d.Pos)
			if file := filepath.Base(at.Filename); !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "example_test.go") {
				t.Errorf("%s: %s: %s", at, root.Analyzer.Name, d.Message)
			}
		}
	}
	if users == 0 {
		t.Error("no package imports fencelock: nothing was checked")
	}
}

// workspace returns the go.work that a module is built with: its own, if it has one.
func workspace(dir string) string {
	file, err := filepath.Abs(filepath.Join(dir, "go.work"))
	if _, missing := os.Stat(file); err != nil || missing != nil {
		return "off"
	}
	return file
}

// modules returns the directories of the modules that use the locks.
func modules(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || path == filepath.Join("..", "rlockvet")) {
			return fs.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		text, err := os.ReadFile(path)
		if dir := filepath.Dir(path); dir == ".." || strings.Contains(string(text), "github.com/fencelock/fencelock v") {
			all = append(all, dir)
		}
		return err
	})
	if err != nil || len(all) < 5 {
		t.Fatalf("modules: %v, %v", all, err)
	}
	return all
}
