package main

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/fencelock/fencelock/internal/test/breaks"
	"github.com/fencelock/fencelock/verify/overlay"
)

// pubsubWaits lets the clock of a world go on while a goroutine waits for the mutex of a subscription, which go-redis holds as it dials.
//
//go:embed goredis/waits.patch
var pubsubWaits []byte

// buildWorker builds the program that workers run: this one, with a faster Redis in memory, and with these edits of the library.
func buildWorker(ctx context.Context, edits ...breaks.Edit) (program string, remove func(), err error) {
	files := make(overlay.Files)
	if err := files.Break(edits...); err != nil {
		return "", nil, err
	}
	if err := files.OneSchedule(ctx); err != nil {
		return "", nil, err
	}
	if err := files.Edit(overlay.Root(), processEdits...); err != nil {
		return "", nil, err
	}
	return files.Build(ctx, overlay.Program{
		Dir: filepath.Join(overlay.Root(), "verify", "sim"), Env: oneHeap,
		Modules: []overlay.Module{overlay.Miniredis, {Path: "github.com/redis/go-redis/v9", Patch: pubsubWaits}},
	})
}

// oneHeap has the heap begin at the same address in each process.
var oneHeap = []string{"GOEXPERIMENT=norandomizedheapbase64"}

// processEdits make all processes say the same of themselves: what is sent decides how long it takes.
var processEdits = []overlay.Edit{
	{File: "internal/engine/presence.go", Old: "host, _ := os.Hostname()", New: `host, _ := "host", 0`},
	{File: "internal/engine/presence.go", Old: "os.Getpid()", New: "1"},
}
