package gcl

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/fencelock/fencelock/rlockvet"
)

func TestPlugin(t *testing.T) {
	build, err := register.GetPlugin("rlockvet")
	if err != nil {
		t.Fatal(err)
	}
	for without, settings := range map[string]any{"": nil, "held": map[string]any{"disable": []string{"held"}}} {
		p, err := build(settings)
		if err != nil {
			t.Fatal(err)
		}
		analyzers, err := p.BuildAnalyzers()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, a := range analyzers {
			names[a.Name] = true
		}
		for _, a := range rlockvet.Analyzers {
			if names[a.Name] != (a.Name != without) {
				t.Errorf("%v: %s %t", settings, a.Name, names[a.Name])
			}
		}
	}
}

func TestSettingsThatSayNothing(t *testing.T) {
	for _, settings := range []any{map[string]any{"disable": []string{"nosuch"}}, map[string]any{"disabled": true}} {
		if _, err := newPlugin(settings); err == nil || !strings.Contains(err.Error(), "rlockvet: ") {
			t.Errorf("%v: %v", settings, err)
		}
	}
}
