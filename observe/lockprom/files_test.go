package lockprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/lockprom"
)

// panel is one of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	locktest.NoError(t, json.Unmarshal(lockprom.Dashboard, &dashboard))
	return dashboard.Panels
}

// names are the metrics that the collector has, with the three of each histogram, and whether they have been seen elsewhere.
func names(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for name := range series(t, full()) {
		name, _, _ = strings.Cut(name, "{")
		all[strings.TrimSuffix(name, "_sum")] = false
	}
	for _, i := range lockmetrics.All {
		if _, is := all[i.Prometheus()]; !is {
			t.Errorf("the collector has no %s", i.Prometheus())
		}
		if i.Kind == lockmetrics.Histogram {
			delete(all, i.Prometheus())
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				all[i.Prometheus()+suffix] = false
			}
		}
	}
	return all
}

var metric = regexp.MustCompile(`fencelock_[a-z_]+`)

// Each metric that the dashboard and the alerts name is one that the collector has, and each instrument is on the dashboard.
func TestNames(t *testing.T) {
	known := names(t)
	check := func(where, text string) {
		t.Helper()
		found := metric.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric: %s", where, text)
		}
		for _, name := range found {
			if _, is := known[name]; !is {
				t.Errorf("%s names %s, which the collector does not have", where, name)
			}
			known[name] = true
		}
	}
	rules := 0
	for line := range strings.Lines(string(lockprom.Rules)) {
		if expr, is := strings.CutPrefix(strings.TrimSpace(line), "expr: "); is {
			rules++
			check("an alert", expr)
		}
	}
	locktest.Equal(t, "alerts", rules, strings.Count(string(lockprom.Rules), "- alert:"))
	known = names(t) // what alerts name need not be on the dashboard for that
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			check("the panel "+p.Title, target.Expr)
		}
	}
	check("a variable, or a title", string(lockprom.Dashboard))
	for _, i := range lockmetrics.All {
		if name := i.Prometheus(); !known[name] && !known[name+"_bucket"] && !known[name+"_count"] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	locktest.NoError(t, err)
	for _, i := range lockmetrics.All {
		if !strings.Contains(string(page), "`"+i.Name+"`") || !strings.Contains(string(page), "`"+i.Prometheus()+"`") {
			t.Errorf("docs/metrics.md does not name %s and %s", i.Name, i.Prometheus())
		}
	}
}
