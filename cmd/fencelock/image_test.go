package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// The image runs as a user that is not root, by number, as Kubernetes asks for with runAsNonRoot.
func TestImageUser(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	locktest.NoError(t, err)
	stages := strings.Split(string(text), "\nFROM ")
	if user := regexp.MustCompile(`(?m)^USER ([1-9]\d*):([1-9]\d*)$`); !user.MatchString(stages[len(stages)-1]) {
		t.Error("the last stage of the Dockerfile has no line USER <number>:<number>")
	}
}

// .dockerignore keeps away what is not built, the history above all, and nothing that is.
func TestImageContext(t *testing.T) {
	root, err := filepath.Abs("../..")
	locktest.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	locktest.NoError(t, err)
	var patterns []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			patterns = append(patterns, line)
		}
	}
	ignored := func(file string) bool {
		for _, pattern := range patterns {
			anywhere, is := strings.CutPrefix(pattern, "**/")
			for at := file; at != "."; at = path.Dir(at) {
				name := at
				if is {
					name = path.Base(at)
				}
				if matches, err := path.Match(anywhere, name); err != nil {
					t.Fatalf("%s: %v", pattern, err)
				} else if matches {
					return true
				}
			}
		}
		return false
	}
	for _, file := range []string{".git/config", "docs/command.md", "verify/main.go", "cmd/fencelock/image_test.go", "cmd/fencelock/testdata/view/ls.txtar"} {
		if !ignored(file) {
			t.Errorf("%s goes into the image's build", file)
		}
	}

	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Standard,GoFiles,EmbedFiles")
	list.Stderr = os.Stderr
	out, err := list.Output()
	locktest.NoError(t, err)
	needed := []string{"go.mod", "go.sum", "cmd/fencelock/go.mod", "cmd/fencelock/go.sum", "cmd/fencelock/go.work"}
	for all := json.NewDecoder(strings.NewReader(string(out))); all.More(); {
		var p struct {
			Dir                 string
			Standard            bool
			GoFiles, EmbedFiles []string
		}
		locktest.NoError(t, all.Decode(&p))
		if dir, err := filepath.Rel(root, p.Dir); err == nil && !p.Standard && !strings.HasPrefix(dir, "..") {
			for _, file := range append(p.GoFiles, p.EmbedFiles...) {
				needed = append(needed, path.Join(filepath.ToSlash(dir), file))
			}
		}
	}
	if len(needed) < 50 {
		t.Fatalf("the command is built of %q", needed)
	}
	for _, file := range needed {
		if ignored(file) {
			t.Errorf("%s is needed, and does not go into the image's build", file)
		}
	}
}

// The commands of the page on Kubernetes are such that fencelock takes them.
func TestKubernetesCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	locktest.NoError(t, err)
	commands := regexp.MustCompile(`command: \[/?fencelock, ([^]]*)\]|`+"`fencelock ([^`]*)`").FindAllStringSubmatch(string(text), -1)
	if len(commands) < 4 {
		t.Fatalf("the page has the commands %q", commands)
	}
	for _, c := range commands {
		args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(c[1], ",", ""), `"`, "") + c[2])
		cmd, rest, err := newRoot().Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() != args[0] {
			t.Errorf("fencelock %q is %s: %v", args, cmd.Name(), err)
		}
	}
}
