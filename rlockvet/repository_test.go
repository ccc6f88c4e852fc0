package rlockvet_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
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

// The command compiles for Windows.
func TestCommandOnWindows(t *testing.T) {
	pkgs := load(t, filepath.Join("..", "cmd", "fencelock"), fromSource, "GOOS=windows")
	packages.Visit(pkgs, nil, func(pkg *packages.Package) {
		for _, err := range pkg.Errors {
			t.Error(err)
		}
	})
}

// Where the types of imported packages come from. What make test compiles is there for make lint,
// and with -race. To compile the rest, for Windows or for bench, takes many times as long as to read
// its source.
const (
	fromCompiler = packages.NeedExportFile
	fromSource   = packages.NeedDeps
)

// load returns the packages of a module.
func load(t *testing.T, dir string, types packages.LoadMode, env ...string) []*packages.Package {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule | types,
		Dir:   dir,
		Env:   append(append(os.Environ(), "GOWORK="+workspace(dir)), env...),
		Tests: len(env) == 0,
	}
	if types == fromCompiler {
		config.BuildFlags = []string{"-race"}
	} else {
		config.Env = append(config.Env, "CGO_ENABLED=0") // whose files are made with the compiler
	}
	pkgs, err := packages.Load(config, "./...")
	if err != nil || len(pkgs) == 0 {
		t.Fatal(pkgs, err)
	}
	return pkgs
}

// look fails the test with what the checks report in a module; in bench also with what go vet does.
func look(t *testing.T, dir string) {
	types, checks := fromCompiler, rlockvet.Analyzers
	if dir == filepath.Join("..", "bench") {
		types, checks = fromSource, slices.Concat(checks, vet.Suite)
	}
	graph, err := checker.Analyze(checks, load(t, dir, types), nil)
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
			file, own := filepath.Base(at.Filename), slices.Contains(rlockvet.Analyzers, root.Analyzer)
			if !own || !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "example_test.go") {
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
