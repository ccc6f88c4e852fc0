package rlockvet_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/fencelock/fencelock/rlockvet"
)

// The examples in testdata are a module that uses the packages of this repository as they are.
func TestMain(m *testing.M) {
	list := exec.Command("go", "list", "-deps", "./...") // what analysistest needs, which itself asks no proxy
	list.Dir = "testdata"
	list.Env = append(os.Environ(), "GOWORK=off")
	if out, err := list.CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The checks find what testdata wants and nothing else, also in the examples of each other. All
// of them look at once, since loading testdata takes most of the time.
func TestChecks(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), &analysis.Analyzer{
		Name:     "all",
		Doc:      "all checks",
		Requires: rlockvet.Analyzers[0].Requires,
		Run: func(pass *analysis.Pass) (any, error) {
			for _, a := range rlockvet.Analyzers {
				as := *pass
				as.Analyzer = a
				if _, err := a.Run(&as); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}, "./...")
}
