package main

import (
	"context"

	"github.com/fencelock/fencelock/verify/overlay"
)

// What Go leaves to chance decides which of several events at the same time comes first: the order of the cases of a select, of a map, and of
// timers, the seeds of hashes, where the heap begins, when a goroutine that runs for long gives way, and when a mutex is handed over. In a
// world the same seed is to make the same history. So the runtime that workers are built with takes its random numbers from one sequence,
// which begins with each process, and looks at no real time. A worker has one processor, plays one world, and collects no garbage below a
// bound of memory.
var runtimeEdits = map[string][]overlay.Edit{
	"runtime": {
		{File: "rand.go", Old: "\tglobalRand.state.Init(*seed)\n", New: "\t*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)\n"},
		{File: "rand.go", Old: "func rand() uint64 {\n", New: "func rand() uint64 {\n\treturn inOrder()\n}\n\n" + inOrder + "func randPerM() uint64 {\n"},
		{File: "rand.go", Old: "\tmp.cheaprand = rand()\n", New: "\tmp.cheaprand = randPerM()\n"},
		{File: "select.go", Old: "j := cheaprandn(uint32(norder + 1))", New: "j := uint32((uint64(uint32(inOrder())) * uint64(norder+1)) >> 32)"},
		{File: "sema.go", Old: "s.ticket = cheaprand() | 1", New: "s.ticket = uint32(inOrder()) | 1"},
		{File: "time.go", Old: "t.rand = cheaprand()", New: "t.rand = uint32(inOrder())"},
		{File: "proc.go", Old: "const forcePreemptNS = 10 * 1000 * 1000 // 10ms", New: "const forcePreemptNS = 1 << 60"},
	},
	"internal/sync": {
		{File: "mutex.go", Old: "starvationThresholdNs = 1e6", New: "starvationThresholdNs = 1 << 60"},
	},
}

// inOrder is a sequence of random numbers that all threads share: wyrand.
const inOrder = `var inOrderState uint64 = 1

//go:nosplit
func inOrder() uint64 {
	inOrderState += 0xa0761d6478bd642f
	hi, lo := math.Mul64(inOrderState, inOrderState^0xe7037ed1a0b428db)
	return uint64(hi ^ lo)
}

`

// processEdits make all processes say the same of themselves: what is sent decides how long it takes.
var processEdits = []overlay.Edit{
	{File: "internal/engine/presence.go", Old: "host, _ := os.Hostname()", New: `host, _ := "host", 0`},
	{File: "internal/engine/presence.go", Old: "os.Getpid()", New: "1"},
}

// sameOrder adds the edits to the files.
func sameOrder(ctx context.Context, files overlay.Files) error {
	for pkg, edits := range runtimeEdits {
		dir, err := overlay.Std(ctx, pkg)
		if err != nil {
			return err
		}
		if err := files.Edit(dir, edits...); err != nil {
			return err
		}
	}
	return files.Edit(overlay.Root(), processEdits...)
}
