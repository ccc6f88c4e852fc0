// Package gcl registers rlockvet with golangci-lint's module plugins. Its setting is "disable", a list of checks.
package gcl

import (
	"fmt"
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/fencelock/fencelock/rlockvet"
)

func init() { register.Plugin("rlockvet", newPlugin) }

type settings struct {
	Disable []string `json:"disable"`
}

type plugin struct{ analyzers []*analysis.Analyzer }

func newPlugin(conf any) (register.LinterPlugin, error) {
	set, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, fmt.Errorf("rlockvet: %w", err)
	}
	var p plugin
	for _, a := range rlockvet.Analyzers {
		if i := slices.Index(set.Disable, a.Name); i >= 0 {
			set.Disable = slices.Delete(set.Disable, i, i+1)
			continue
		}
		p.analyzers = append(p.analyzers, a)
	}
	if len(set.Disable) > 0 {
		return nil, fmt.Errorf("rlockvet: disable: there is no check %q", set.Disable)
	}
	return &p, nil
}

func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return p.analyzers, nil }

func (p *plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
