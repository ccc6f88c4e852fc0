// Package examples holds the runnable examples, each in a folder of its own, and the check of the README's code.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	command = regexp.MustCompile(`go run (\./examples/\w+)`)
	target  = regexp.MustCompile(`(?m)^make (\w+)`)
)

// The README's code is taken from Example functions, which are run.
func TestREADMECodeIsRun(t *testing.T) {
	var examples strings.Builder
	for _, pattern := range []string{"../*/example_test.go", "../guard/*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no file: %v", pattern, err)
		}
		for _, f := range files {
			examples.WriteString(unindented(read(t, f)))
		}
	}
	blocks := goBlock.FindAllStringSubmatch(read(t, "../README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("no Go code in the README: the pattern is wrong")
	}
	for _, b := range blocks {
		if !strings.Contains(examples.String(), unindented(b[1])) {
			t.Errorf("not in any example_test.go:\n%s", b[1])
		}
	}
}

// The commands that the README names are there.
func TestREADMECommands(t *testing.T) {
	readme, makefile := read(t, "../README.md"), read(t, "../Makefile")
	for _, pattern := range []*regexp.Regexp{command, target} {
		if !pattern.MatchString(readme) {
			t.Errorf("%v is nowhere in the README: the pattern is wrong", pattern)
		}
	}
	for _, m := range command.FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1], "main.go")); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
	for _, m := range target.FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("%s: no such target", m[0])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unindented is the text without indentation and empty lines.
func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
