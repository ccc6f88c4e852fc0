package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An edit replaces a text that occurs once in a file, for the compiler only.
type edit struct{ file, old, new string }

// shiftEdit lets a program set its own wall clock: neither Go's runtime nor its tools have a way to do that, and a library
// that is loaded before the C library (faketime) is not asked. Of package time only the reading of the wall clock changes.
var shiftEdit = edit{
	"time.go", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
	"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tif by := shift.Load(); by != 0 {\n" +
		"\t\tns := sec*1000000000 + int64(nsec) + by\n\t\tsec, nsec = ns/1000000000, int32(ns%1000000000)\n\t}\n",
}

const shiftFile = "package time\n\nimport \"sync/atomic\"\n\nvar shift atomic.Int64\n\n" +
	"// Shift makes the wall clock show so much more than it does.\nfunc Shift(by Duration) { shift.Store(int64(by)) }\n"

// workerProgram returns the program that workers run: this one, or one whose clock can be set, if a scenario asks for it.
func workerProgram(ctx context.Context, all []scenario, progress io.Writer) (program string, remove func(), err error) {
	if canShift || !slices.ContainsFunc(all, func(sc scenario) bool { return sc.has("clock") }) {
		program, err = os.Executable()
		return program, func() {}, err
	}
	fmt.Fprintln(progress, "building a program whose clock can be set; the first time this takes a minute or two")
	return build(ctx, true, nil)
}

// has tells whether the fault is one of the scenario.
func (sc scenario) has(fault string) bool { return slices.Contains(strings.Fields(sc.faults), fault) }

// build builds this program with the edits, paths of which are those in the root module.
func build(ctx context.Context, shift bool, edits []edit) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "fencelock-build")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	_, here, _, _ := runtime.Caller(0)
	here = filepath.Dir(here)
	replace := make(map[string]string)
	put := func(path string, text []byte) error {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		return os.WriteFile(replace[path], text, 0o600)
	}
	if shift {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return "", nil, fmt.Errorf("go env GOROOT: %w", err)
		}
		std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
		text, err := shiftEdit.apply(filepath.Join(std, shiftEdit.file), nil)
		if err == nil {
			err = errors.Join(put(filepath.Join(std, shiftEdit.file), text), put(filepath.Join(std, "shift.go"), []byte(shiftFile)))
		}
		if err != nil {
			return "", nil, err
		}
	}
	whole := make(map[string][]byte)
	for _, e := range edits {
		path := filepath.Join(filepath.Dir(here), e.file)
		if whole[path], err = e.apply(path, whole[path]); err != nil {
			return "", nil, err
		}
	}
	for path, text := range whole {
		if err := put(path, text); err != nil {
			return "", nil, err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", nil, err
	}
	program = filepath.Join(dir, "worker")
	args := []string{"build", "-overlay", list, "-o", program}
	if shift {
		args = append(args, "-tags", "shift")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = here
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, remove, nil
}

// apply returns the text, or the file's if there is none yet, with the edit.
func (e edit) apply(path string, text []byte) ([]byte, error) {
	if text == nil {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if n := bytes.Count(text, []byte(e.old)); n != 1 {
		return nil, fmt.Errorf("%q occurs %d times in %s: bring the edit up to date", e.old, n, e.file)
	}
	return bytes.Replace(text, []byte(e.old), []byte(e.new), 1), nil
}
