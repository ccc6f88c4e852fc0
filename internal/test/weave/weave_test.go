package weave_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/weave"
)

const (
	mainFile = "app/main.go"
	script   = "app/text.lua"
)

var module = map[string]string{
	"go.mod": "module github.com/fencelock/fencelock\n\ngo 1.25\n",
	script:   "right script",
	mainFile: `package main

import (
	_ "embed"
	"fmt"
)

var (
	//go:embed text.lua
	text string
)

const outside = "right constant"

func answer() string { return "right answer" }

func labelled() string {
again:
	for {
		break again
	}
	return "right label"
}

func main() { fmt.Print(outside, ", ", answer(), ", ", labelled(), ", ", text) }
`,
}

// broken is a break that exchanges these texts.
func broken(name string, pairs ...string) weave.Break {
	b := weave.Break{Name: name, Files: map[string]string{}}
	for _, file := range []string{mainFile, script} {
		if text := strings.NewReplacer(pairs...).Replace(module[file]); text != module[file] {
			b.Files[file] = text
		}
	}
	return b
}

func TestWeave(t *testing.T) {
	root := t.TempDir()
	write := func(files map[string]string) {
		t.Helper()
		for file, text := range files {
			path := filepath.Join(root, file)
			locktest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			locktest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	write(module)
	woven, err := weave.Weave(root, []weave.Break{
		broken("a function", "right answer", "broken answer"),
		broken("the same function", "right answer", "another answer"),
		broken("a script", "right script", "broken script"),
		broken("both", "right answer", "third answer", "right script", "third script"),
		broken("outside", "right constant", "broken constant"),
		broken("a label", "right label", "broken label"),
		broken("both, and outside", "right constant", "broken constant", "right answer", "fourth answer"),
	})
	locktest.NoError(t, err)
	if names := slices.Sorted(maps.Keys(woven.Numbers)); !slices.Equal(names, []string{"a function", "a script", "both", "the same function"}) {
		t.Errorf("woven: %q", names)
	}
	write(woven.Files)
	program := filepath.Join(root, "program")
	build := exec.Command("go", "build", "-o", program, "./app")
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]string{
		"none of them":      "right answer, right label, right script",
		"a function":        "broken answer, right label, right script",
		"the same function": "another answer, right label, right script",
		"a script":          "right answer, right label, broken script",
		"both":              "third answer, right label, third script",
	} {
		run := exec.Command(program)
		run.Env = append(os.Environ(), weave.Switch+"="+strconv.Itoa(woven.Numbers[name]))
		out, err := run.Output()
		locktest.NoError(t, err)
		locktest.Equal(t, name, string(out), "right constant, "+want)
	}
}
