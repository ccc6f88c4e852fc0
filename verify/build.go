package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fencelock/fencelock/internal/test/breaks"
	"github.com/fencelock/fencelock/internal/test/weave"
	"github.com/fencelock/fencelock/verify/overlay"
)

// shiftEdit lets a program set its own wall clock: neither Go's runtime nor its tools have a way to do that, and a library
// that is loaded before the C library (faketime) is not asked. Of package time only the reading of the wall clock changes.
var shiftEdit = overlay.Edit{
	File: "time.go", Old: "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
	New: "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tif by := shift.Load(); by != 0 {\n" +
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

// build builds this program with the edits.
func build(ctx context.Context, shift bool, edits []breaks.Edit) (program string, remove func(), err error) {
	files, tags := make(overlay.Files), ""
	if shift {
		tags = "shift"
		std, err := overlay.Std(ctx, "time")
		if err != nil {
			return "", nil, err
		}
		if err := files.Edit(std, shiftEdit); err != nil {
			return "", nil, err
		}
		files[filepath.Join(std, "shift.go")] = []byte(shiftFile)
	}
	if err := files.Break(edits...); err != nil {
		return "", nil, err
	}
	return files.Build(ctx, overlay.Program{Dir: filepath.Join(overlay.Root(), "verify"), Tags: tags, Brief: len(edits) > 0})
}

// buildWoven builds this program with all bugs that can be in one program, and returns by which number weave.Switch turns each of them on. Without bugs it
// builds none.
func buildWoven(ctx context.Context, all []bug) (program string, numbers map[string]int, remove func(), err error) {
	if len(all) == 0 {
		return "", nil, func() {}, nil
	}
	root := overlay.Root()
	var woven []weave.Break
	for _, b := range all {
		files, err := b.Files(root)
		if err != nil {
			return "", nil, nil, fmt.Errorf("%s: %w", b.Short, err)
		}
		woven = append(woven, weave.Break{Name: b.Short, Files: files})
	}
	together, err := weave.Weave(root, woven)
	if err != nil {
		return "", nil, nil, err
	}
	files := make(overlay.Files)
	for file, text := range together.Files {
		files[filepath.Join(root, file)] = []byte(text)
	}
	program, remove, err = files.Build(ctx, overlay.Program{Dir: filepath.Join(root, "verify"), Brief: true})
	return program, together.Numbers, remove, err
}
