package rlockvet_test

import (
	"go/token"
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
		t.Run(dir, func(t *testing.T) {
			for _, f := range findings(t, dir) {
				if file := filepath.Base(f.at.Filename); !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "example_test.go") {
					t.Errorf("%s: %s: %s", f.at, f.check, f.message)
				}
			}
		})
	}
}

// What is good for one check is good for all: in testdata none of them reports a line where nothing is wanted.
func TestGoodIsGoodForAll(t *testing.T) {
	lines := map[string][]string{}
	all := findings(t, "testdata")
	if len(all) < len(rlockvet.Analyzers) {
		t.Errorf("%d findings", len(all))
	}
	for _, f := range all {
		if lines[f.at.Filename] == nil {
			lines[f.at.Filename] = strings.Split(read(t, f.at.Filename), "\n")
		}
		if !strings.Contains(lines[f.at.Filename][f.at.Line-1], "// want ") {
			t.Errorf("%s: %s: %s", f.at, f.check, f.message)
		}
	}
}

type finding struct {
	at      token.Position
	check   string
	message string
}

// findings returns what all checks report in a module.
func findings(t *testing.T, dir string) []finding {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile,
		Dir:   dir,
		Env:   append(os.Environ(), "GOWORK="+workspace(t, dir)),
		Tests: true,
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range pkgs {
		for _, err := range pkg.Errors {
			t.Error(err)
		}
	}
	graph, err := checker.Analyze(rlockvet.Analyzers, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []finding
	users := 0
	for _, root := range graph.Roots {
		if root.Err != nil {
			t.Error(root.Err)
		}
		for path := range root.Package.Imports {
			if strings.HasPrefix(path, "github.com/fencelock/fencelock/") {
				users++
			}
		}
		for _, d := range root.Diagnostics {
			all = append(all, finding{root.Package.Fset.Position(d.Pos), root.Analyzer.Name, d.Message})
		}
	}
	if users == 0 {
		t.Error("no package imports fencelock: nothing was checked")
	}
	return all
}

// workspace returns the go.work that a module is built with: its own, if it has one.
func workspace(t *testing.T, dir string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(dir, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
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
