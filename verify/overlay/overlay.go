// Package overlay builds a program from sources that are changed for the compiler only.
package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/fencelock/fencelock/internal/test/breaks"
)

// An Edit replaces a text that occurs once in a file. File is the path below a directory.
type Edit struct{ File, Old, New string }

// Files are the changed files, by their paths.
type Files map[string][]byte

// A Module is a module that the program is built with in place of the one that go.mod names: the same with a patch, and then edits. The go command takes no
// changed files below its module cache, so Build copies the module.
type Module struct {
	Path  string
	Patch []byte
	Edits []Edit
}

// Root is the directory of the root module of this repository.
func Root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(here)))
}

// Edit makes the edits below the directory.
func (f Files) Edit(dir string, edits ...Edit) error {
	for _, e := range edits {
		path := filepath.Join(dir, e.File)
		text, ok := f[path]
		if !ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				return fmt.Errorf("an edit: %w", err)
			}
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return fmt.Errorf("%q occurs %d times in %s: bring the edit up to date", e.Old, n, e.File)
		}
		f[path] = bytes.Replace(text, []byte(e.Old), []byte(e.New), 1)
	}
	return nil
}

// Break makes the edits of a break of the library.
func (f Files) Break(edits ...breaks.Edit) error {
	texts, err := breaks.Apply(Root(), edits...)
	for file, text := range texts {
		f[filepath.Join(Root(), file)] = []byte(text)
	}
	return err
}

// Std is the directory of a package of the standard library, of the Go that builds.
func Std(ctx context.Context, pkg string) (string, error) {
	root, err := goSays(ctx, Root(), "env", "GOROOT")
	return filepath.Join(root, "src", pkg), err
}

// A Program is what Build builds.
type Program struct {
	Dir     string   // of its package
	Tags    string   // build tags
	Env     []string // for the go command
	Modules []Module // that are changed
	Tests   bool     // the program is the package's tests
	Brief   bool     // the program runs for seconds: it is built in half of the time, without inlining and what debuggers need
}

// Build builds the program with the changed files, and returns it, and what removes it.
func (f Files) Build(ctx context.Context, p Program) (program string, remove func(), err error) {
	out, err := os.MkdirTemp("", "fencelock-build")
	if err != nil {
		return "", nil, fmt.Errorf("a build: %w", err)
	}
	remove = func() { _ = os.RemoveAll(out) }
	defer func() {
		if err != nil {
			_ = os.RemoveAll(out)
		}
	}()
	replace := make(map[string]string)
	for path, text := range f {
		replace[path] = filepath.Join(out, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			return "", nil, fmt.Errorf("a build: %w", err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, fmt.Errorf("a build: %w", err)
	}
	overlay := filepath.Join(out, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", nil, fmt.Errorf("a build: %w", err)
	}
	program = filepath.Join(out, "program")
	args := []string{"build"}
	if p.Tests {
		args = []string{"test", "-c"}
	}
	args = append(args, "-trimpath", "-overlay", overlay, "-tags", p.Tags, "-o", program) // nothing is built anew for another directory
	if p.Brief {
		args = append(args, "-gcflags=github.com/fencelock/fencelock/...=-l", "-ldflags=-s -w")
	}
	if len(p.Modules) > 0 {
		file, err := modFile(ctx, p.Dir, out, p.Modules)
		if err != nil {
			return "", nil, err
		}
		args = append(args, "-modfile", file)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = p.Dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), p.Env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, said)
	}
	return program, remove, nil
}

// modFile copies the modules below dir, with their edits, and returns a go.mod for the program that names the copies.
func modFile(ctx context.Context, program, dir string, modules []Module) (string, error) {
	mod, err := goSays(ctx, program, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(mod)
	if err != nil {
		return "", fmt.Errorf("a build: %w", err)
	}
	if ours := "replace github.com/fencelock/fencelock => "; filepath.Dir(mod) != Root() && !bytes.Contains(text, []byte(ours)) {
		text = fmt.Appendf(text, "\n%s%s\n", ours, Root()) // its workspace has it so: beside another go.mod there may be none
	}
	for i, m := range modules {
		from, err := goSays(ctx, program, "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, fmt.Sprintf("module-%d", i))
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return "", fmt.Errorf("a copy of %s: %w", m.Path, err)
		}
		if err := patch(ctx, to, m.Patch); err != nil {
			return "", fmt.Errorf("%s: %w", m.Path, err)
		}
		f := make(Files)
		if err := f.Edit(to, m.Edits...); err != nil {
			return "", fmt.Errorf("%s: %w", m.Path, err)
		}
		for path, text := range f {
			if err := os.Remove(path); err != nil { // what was copied may not be written
				return "", fmt.Errorf("a copy of %s: %w", m.Path, err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return "", fmt.Errorf("a copy of %s: %w", m.Path, err)
			}
		}
		text = fmt.Appendf(text, "\nreplace %s => %s\n", m.Path, to)
	}
	sums, err := os.ReadFile(filepath.Join(filepath.Dir(mod), "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)
	}
	file := filepath.Join(dir, "go.mod")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("a build: %w", err)
	}
	return file, nil
}

// patch makes the change of a patch, the output of git diff, to the files in the directory.
func patch(ctx context.Context, dir string, change []byte) error {
	cmd := exec.CommandContext(ctx, "git", "apply", "-")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // they are no part of a repository around them
	cmd.Stdin = bytes.NewReader(change)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("its patch does not fit, make it anew for this version: %w\n%s", err, said)
	}
	return nil
}

// goSays returns what the go command prints in the directory, without a workspace.
func goSays(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(said)), nil
}
