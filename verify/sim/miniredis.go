package main

import (
	"context"
	"path/filepath"

	"github.com/fencelock/fencelock/verify/overlay"
)

// luaStates lets the Redis in memory use a Lua state for more than one script: to make one takes more time than to run a script. A state is
// used again where its script has ended without an error. KEYS, ARGV and redis are set anew for each script, and global variables are
// protected, as in Redis, which has one state for all scripts.
var luaStates = overlay.Module{Path: "github.com/alicebob/miniredis/v2", Edits: []overlay.Edit{
	{File: "miniredis.go", Old: "	scripts     map[string]string // sha1 -> lua src\n", New: "	scripts     map[string]string // sha1 -> lua src\n	luaStates   luaStates\n"},
	{File: "cmd_scripting.go", Old: "// Execute lua. Needs to run", New: "type luaStates []*lua.LState\n\n// Execute lua. Needs to run"},
	{File: "cmd_scripting.go", Old: "	l := lua.NewState(lua.Options{SkipOpenLibs: true})\n	defer l.Close()\n", New: `	var l *lua.LState
	spare := len(m.luaStates)
	if spare > 0 {
		l, m.luaStates = m.luaStates[spare-1], m.luaStates[:spare-1]
	} else {
		l = lua.NewState(lua.Options{SkipOpenLibs: true})
	}
	ended := false
	defer func() {
		if ended {
			l.SetTop(0)
			m.luaStates = append(m.luaStates, l)
		} else {
			l.Close()
		}
	}()
	if spare == 0 {
`},
	{File: "cmd_scripting.go", Old: "	requireGlobal(l, \"cjson\", \"json\")\n", New: "	requireGlobal(l, \"cjson\", \"json\")\n	}\n"},
	{File: "cmd_scripting.go", Old: "	l.RegisterModule(\"os\", mkLuaOS())\n\n	_ = doScript(l, protectGlobals)\n", New: "	if spare == 0 {\n		l.RegisterModule(\"os\", mkLuaOS())\n		_ = doScript(l, protectGlobals)\n	}\n"},
	{File: "cmd_scripting.go", Old: "	luaToRedis(l, c, l.Get(1))\n	c.Resp3 = oldresp\n	c.SwitchResp3 = nil\n	return true\n", New: "	luaToRedis(l, c, l.Get(1))\n	c.Resp3 = oldresp\n	c.SwitchResp3 = nil\n	ended = true\n	return true\n"},
}}

// buildWorker builds the program that workers run: this one, with a faster Redis in memory, and with these edits of the library.
func buildWorker(ctx context.Context, edits ...overlay.Edit) (program string, remove func(), err error) {
	files := make(overlay.Files)
	if err := files.Edit(overlay.Root(), edits...); err != nil {
		return "", nil, err
	}
	return files.Build(ctx, filepath.Join(overlay.Root(), "verify", "sim"), "", luaStates)
}
