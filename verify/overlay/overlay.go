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
)

// An Edit replaces a text that occurs once in a file. File is the path below a directory.
type Edit struct{ File, Old, New string }

// Files are the changed files, by their paths.
type Files map[string][]byte

// Root is the directory of the root module of this repository.
func Root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(here)))
}

// Module returns the directory of a module, as the go command finds it from this one.
func Module(ctx context.Context, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = filepath.Join(Root(), "verify")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	dir, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", path, err)
	}
	return strings.TrimSpace(string(dir)), nil
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

// Build builds the package in the directory, with the build tags, and returns the program, and what removes it.
func (f Files) Build(ctx context.Context, dir, tags string) (program string, remove func(), err error) {
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
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-tags", tags, "-o", program, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, said)
	}
	return program, remove, nil
}
