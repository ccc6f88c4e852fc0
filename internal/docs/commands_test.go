package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

var comment = regexp.MustCompile(`\s{2,}# .*$`)

// commands are the commands of a block: each line of sh and crontab, and those behind a prompt in console.
func commands(b block) (all []string) {
	for line := range strings.Lines(b.text) {
		line = comment.ReplaceAllString(strings.TrimSpace(line), "")
		prompted, is := strings.CutPrefix(line, "$ ")
		switch {
		case line == "" || strings.HasPrefix(line, "cd ") && !strings.Contains(line, "&&"):
		case b.label == "console" && is:
			all = append(all, prompted)
		case b.label == "sh" || b.label == "crontab":
			all = append(all, line)
		}
	}
	return all
}

// Every command on a page is in commands.txt, with the file that runs it and what stands there, or why nothing does.
func TestCommandsAreRun(t *testing.T) {
	text, err := os.ReadFile("commands.txt")
	locktest.NoError(t, err)
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		command, how, ok := strings.Cut(line, "  <- ")
		if !ok {
			t.Errorf("commands.txt: no <- in %s", line)
			continue
		}
		command = strings.TrimSpace(command)
		listed[command] = false
		if reason, is := strings.CutPrefix(how, "not run: "); is {
			if len(reason) < 10 {
				t.Errorf("%s: no reason", command)
			}
			continue
		}
		file, part, _ := strings.Cut(how, ": ")
		runner, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || part == "" || !strings.Contains(string(runner), part) {
			t.Errorf("%s: %s has no %q (%v)", command, file, part, err)
		}
	}
	for _, b := range allBlocks(t) {
		for _, c := range commands(b) {
			if _, is := listed[c]; !is {
				t.Errorf("%s: not in commands.txt: %s", b.page, c)
			}
			listed[c] = true
		}
	}
	for c, used := range listed {
		if !used {
			t.Errorf("commands.txt: on no page: %s", c)
		}
	}
	if len(listed) < 30 {
		t.Errorf("%d commands: the pages were not read", len(listed))
	}
}

var (
	goRun  = regexp.MustCompile("`go run (\\./examples/\\w+)")
	target = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
)

// The programs and the targets of make that a page names, in a block or in a sentence, are there.
func TestNamedProgramsAndTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	locktest.NoError(t, err)
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		locktest.NoError(t, err)
		for _, m := range goRun.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1], "main.go")); err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: make %s: no such target", page, m[1])
			}
		}
	}
}
