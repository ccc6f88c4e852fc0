package main

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/fencelock/fencelock/internal/test/breaks"
	"github.com/fencelock/fencelock/verify/overlay"
)

// luaStates lets the Redis in memory use a Lua state for more than one script: to make one takes more time than to run a script.
//
//go:embed miniredis/lua_states.patch
var luaStates []byte

// buildWorker builds the program that workers run: this one, with a faster Redis in memory, and with these edits of the library.
func buildWorker(ctx context.Context, edits ...breaks.Edit) (program string, remove func(), err error) {
	files := make(overlay.Files)
	if err := files.Break(edits...); err != nil {
		return "", nil, err
	}
	if err := sameOrder(ctx, files); err != nil {
		return "", nil, err
	}
	return files.Build(ctx, overlay.Program{
		Dir: filepath.Join(overlay.Root(), "verify", "sim"), Env: []string{"GOEXPERIMENT=norandomizedheapbase64"},
		Modules: []overlay.Module{{Path: "github.com/alicebob/miniredis/v2", Patch: luaStates}},
	})
}
