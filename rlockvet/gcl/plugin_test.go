package gcl

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/fencelock/fencelock/rlockvet"
)

func TestPlugin(t *testing.T) {
	t.Cleanup(func() { _ = rlockvet.Token.Flags.Set("on", "false") })
	for _, c := range []struct {
		settings any
		without  string
		token    string
	}{
		{nil, "", "false"},
		{map[string]any{"disable": []string{"held"}, "token": true}, "held", "true"},
	} {
		build, err := register.GetPlugin("rlockvet")
		if err != nil {
			t.Fatal(err)
		}
		p, err := build(c.settings)
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
			if names[a.Name] != (a.Name != c.without) {
				t.Errorf("%v: %s %t", c.settings, a.Name, names[a.Name])
			}
		}
		if on := rlockvet.Token.Flags.Lookup("on").Value.String(); on != c.token {
			t.Errorf("%v: token is %s", c.settings, on)
		}
	}
}

func TestSettingsThatSayNothing(t *testing.T) {
	for _, settings := range []any{map[string]any{"disable": []string{"nosuch"}}, map[string]any{"tokens": true}} {
		if _, err := newPlugin(settings); err == nil || !strings.Contains(err.Error(), "rlockvet: ") {
			t.Errorf("%v: %v", settings, err)
		}
	}
}
