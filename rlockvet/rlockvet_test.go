package rlockvet_test

import (
	"os"
	"os/exec"
	"testing"

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

func TestChecks(t *testing.T) {
	if err := rlockvet.Token.Flags.Set("on", "true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rlockvet.Token.Flags.Set("on", "false") })
	for _, a := range rlockvet.Analyzers {
		t.Run(a.Name, func(t *testing.T) {
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), a, "./"+a.Name)
		})
	}
}

func TestIgnore(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), rlockvet.Held, "./ignore")
}

func TestTokenIsOffWithoutItsFlag(t *testing.T) {
	for _, res := range analysistest.Run(deaf{}, analysistest.TestData(), rlockvet.Token, "./token") {
		if len(res.Action.Diagnostics) > 0 {
			t.Errorf("it reports %q", res.Action.Diagnostics[0].Message)
		}
	}
}

// deaf does not hear that what is wanted is not there.
type deaf struct{}

func (deaf) Errorf(string, ...any) {}
