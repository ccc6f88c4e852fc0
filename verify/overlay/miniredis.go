package overlay

import _ "embed"

// luaStates lets the Redis in memory use a Lua state for more than one script: to make one takes more time than to run a script.
//
//go:embed miniredis/lua_states.patch
var luaStates []byte

// Miniredis is a faster Redis in memory. It tells a message in the order in which clients have subscribed, and not by addresses.
var Miniredis = Module{Path: "github.com/alicebob/miniredis/v2", Patch: luaStates, Edits: []Edit{
	{File: "miniredis.go", Old: "\tsubscribers map[*Subscriber]struct{}", New: "\tsubscribers []*Subscriber"},
	{File: "miniredis.go", Old: "map[*Subscriber]struct{}{},", New: "nil,"},
	{File: "miniredis.go", Old: "\tm.subscribers[s] = struct{}{}\n", New: "\tm.subscribers = append(m.subscribers, s)\n"},
	{
		File: "miniredis.go", Old: "\t_, ok := m.subscribers[s]\n\tdelete(m.subscribers, s)\n\tif ok {\n\t\ts.Close()\n\t}\n",
		New: "\tfor i, other := range m.subscribers {\n\t\tif other == s {\n\t\t\tm.subscribers = append(m.subscribers[:i:i], m.subscribers[i+1:]...)\n\t\t\ts.Close()\n\t\t\treturn\n\t\t}\n\t}\n",
	},
	{File: "miniredis.go", Old: "\tfor s := range m.subscribers {\n\t\tn +=", New: "\tfor _, s := range m.subscribers {\n\t\tn +="},
	{File: "miniredis.go", Old: "\tfor s := range m.subscribers {\n\t\tsubs", New: "\tfor _, s := range m.subscribers {\n\t\tsubs"},
}}
