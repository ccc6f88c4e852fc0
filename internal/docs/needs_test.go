package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A need is a row of the table of commands: the commands in scripts, those by themselves, and what becomes of locks without them.
type need struct {
	inScripts, byItself []string
	without             string
}

// needs are the rows of the table.
func needs(t *testing.T) (all []need) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rightsPage))
	locktest.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := func(cell string) []string {
		return slices.DeleteFunc(strings.Split(strings.TrimSpace(cell), ", "), func(c string) bool { return c == "" })
	}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && !strings.Contains(line, "---") && !strings.HasPrefix(line, "| in scripts") {
			all = append(all, need{named(cells[1]), named(cells[2]), cells[4]})
		}
	}
	return all
}

// scriptCommands are the commands that the scripts call.
func scriptCommands(t *testing.T) (all []string) {
	t.Helper()
	called := regexp.MustCompile(`(?:redis\.p?call|lined)\('([A-Z]+)'|ipairs\(\{('[^}]*')\}\)|(redis\.p?call|lined)\(publish`)
	for _, folder := range []string{"scripts", "guard/redisguard", "internal/presence"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.lua"))
		locktest.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			locktest.NoError(t, err)
			for _, m := range called.FindAllStringSubmatch(string(text), -1) {
				switch {
				case m[1] != "":
					all = append(all, m[1])
				case m[2] != "":
					all = append(all, strings.Split(strings.Trim(m[2], "'"), "', '")...)
				default:
					all = append(all, "PUBLISH", "SPUBLISH")
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The table of commands has what the scripts call, and what the lists of rights have, no more and no less, and says of each command what
// TestP30_OneRightLess has shown.
func TestCommandsThatAreNeeded(t *testing.T) {
	says := map[string]string{noLine: "no line", mayNotHear: "poll", mayNotTell: "poll", noHandoff: "not handed on", mayNotAsk: "no line", isError: "error"}
	lists := rightsLists(t)
	var inScripts, all, granted []string
	for _, n := range needs(t) {
		inScripts, all = append(inScripts, n.inScripts...), slices.Concat(all, n.inScripts, n.byItself)
	}
	for name, list := range lists {
		for _, word := range list {
			if command, is := strings.CutPrefix(word, "+"); is {
				granted = append(granted, strings.ToUpper(strings.ReplaceAll(command, "|", " ")))
				if name == "server" || name == "cluster" {
					saysWhat(t, says, word, granted[len(granted)-1])
				}
			}
		}
	}
	sorted := func(list []string) []string { slices.Sort(list); return slices.Compact(list) }
	locktest.Equal(t, "in scripts", strings.Join(sorted(inScripts), " "), strings.Join(scriptCommands(t), " "))
	locktest.Equal(t, "in the table", strings.Join(sorted(all), ", "), strings.Join(sorted(granted), ", "))
}

// saysWhat requires that a row of this command says what becomes of locks without the right to it.
func saysWhat(t *testing.T, says map[string]string, right, command string) {
	t.Helper()
	outcomes, known := withoutRight[right]
	if !known {
		outcomes = []string{isError}
	}
	for _, outcome := range outcomes {
		if !slices.ContainsFunc(needs(t), func(n need) bool {
			return slices.Contains(slices.Concat(n.inScripts, n.byItself), command) && strings.Contains(n.without, says[outcome])
		}) {
			t.Errorf("%s: no row of %s says %q", rightsPage, command, says[outcome])
		}
	}
}
