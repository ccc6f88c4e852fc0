package overlay

import "context"

// What Go leaves to chance decides which of several events at the same time comes first: which goroutine runs next, the order of the cases of a
// select, of a map, of timers and of the contexts below one, the seeds of hashes, where the heap begins, when a goroutine that runs for long gives
// way, and when a mutex is handed over. With these edits the runtime takes its random numbers from one sequence, which begins anew with each
// testing/synctest bubble, and looks at no real time and no address. So a program with one processor that collects no garbage does the same in a
// bubble each time. OrderVariable chooses the sequence.
var runtimeEdits = map[string][]Edit{
	"runtime": {
		{File: "rand.go", Old: "\tglobalRand.state.Init(*seed)\n", New: "\t*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)\n"},
		{File: "rand.go", Old: "func rand() uint64 {\n", New: "func rand() uint64 {\n\treturn inOrder()\n}\n\n" + inOrder + "func randPerM() uint64 {\n"},
		{File: "rand.go", Old: "\tmp.cheaprand = rand()\n", New: "\tmp.cheaprand = randPerM()\n"},
		{File: "select.go", Old: "block bool) (int, bool) {\n\tgp := getg()\n", New: "block bool) (int, bool) {\n\tyieldsInOrder()\n\tgp := getg()\n"},
		{File: "chan.go", Old: "func chansend1(c *hchan, elem unsafe.Pointer) {\n", New: "func chansend1(c *hchan, elem unsafe.Pointer) {\n\tyieldsInOrder()\n"},
		{File: "chan.go", Old: "func chanrecv1(c *hchan, elem unsafe.Pointer) {\n", New: "func chanrecv1(c *hchan, elem unsafe.Pointer) {\n\tyieldsInOrder()\n"},
		{File: "chan.go", Old: "elem unsafe.Pointer) (received bool) {\n", New: "elem unsafe.Pointer) (received bool) {\n\tyieldsInOrder()\n"},
		{File: "chan.go", Old: "elem unsafe.Pointer) (selected bool) {\n", New: "elem unsafe.Pointer) (selected bool) {\n\tyieldsInOrder()\n"},
		{File: "chan.go", Old: "c *hchan) (selected, received bool) {\n", New: "c *hchan) (selected, received bool) {\n\tyieldsInOrder()\n"},
		{File: "chan.go", Old: "func closechan(c *hchan) {\n", New: "func closechan(c *hchan) {\n\tyieldsInOrder()\n"},
		{File: "select.go", Old: "j := cheaprandn(uint32(norder + 1))", New: "j := uint32((uint64(uint32(inOrder())) * uint64(norder+1)) >> 32)"},
		{File: "sema.go", Old: "s.ticket = cheaprand() | 1", New: "s.ticket = uint32(inOrder()) | 1"},
		{File: "synctest.go", Old: "func synctestRun(f func()) {\n", New: "func synctestRun(f func()) {\n\torderFromEnv()\n"},
		{File: "time.go", Old: "t.rand = cheaprand()", New: "t.rand = uint32(inOrder())"},
		{File: "proc.go", Old: "\tgoenvs()\n", New: "\tgoenvs()\n\torderFromEnv()\n"},
		{File: "proc.go", Old: "if pp.schedtick%61 == 0 && !sched.runq.empty() {", New: "if false {"},
		{File: "proc.go", Old: "i <= n; i++ {\n\t\t\tj := cheaprandn(i + 1)", New: "i <= n; i++ {\n\t\t\tj := randn(i + 1)"},
		{File: "proc.go", Old: "i < n; i++ {\n\t\t\tj := cheaprandn(i + 1)", New: "i < n; i++ {\n\t\t\tj := randn(i + 1)"},
		{
			File: "proc.go", Old: "\t\tpp.runq[t%uint32(len(pp.runq))].set(gp)\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item",
			New: "\t\tat := t\n\t\tif randomizeScheduler {\n\t\t\tat = h + randn(t-h+1)\n\t\t\tpp.runq[t%uint32(len(pp.runq))] = pp.runq[at%uint32(len(pp.runq))]\n\t\t}\n" +
				"\t\tpp.runq[at%uint32(len(pp.runq))].set(gp)\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item",
		},
		{File: "proc.go", Old: "const randomizeScheduler = raceenabled", New: "var randomizeScheduler bool"},
		{File: "proc.go", Old: "const forcePreemptNS = 10 * 1000 * 1000 // 10ms", New: "const forcePreemptNS = 1 << 60"},
	},
	"context": {
		{File: "context.go", Old: "children map[canceler]struct{}", New: "births   int\n\tchildren map[canceler]int"},
		{File: "context.go", Old: "make(map[canceler]struct{})", New: "make(map[canceler]int)"},
		{File: "context.go", Old: "p.children[child] = struct{}{}", New: "p.births++\n\t\t\tp.children[child] = p.births"},
		{File: "context.go", Old: "for child := range c.children {", New: "for _, child := range c.childrenInOrder() {"},
		{File: "context.go", Old: "// cancel closes c.done,", New: childrenInOrder + "// cancel closes c.done,"},
	},
	"internal/sync": {
		{File: "mutex.go", Old: "func (m *Mutex) Lock() {\n", New: "func (m *Mutex) Lock() {\n\truntime_yieldsInOrder()\n"},
		{File: "mutex.go", Old: "\t\tm.unlockSlow(new)\n\t}\n}\n", New: "\t\tm.unlockSlow(new)\n\t}\n\truntime_yieldsInOrder()\n}\n"},
		{File: "runtime.go", Old: "//go:linkname throw\n", New: "//go:linkname runtime_yieldsInOrder\nfunc runtime_yieldsInOrder()\n\n//go:linkname throw\n"},
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

//go:linkname yieldsInOrder internal/sync.runtime_yieldsInOrder
func yieldsInOrder() {
	if gp := getg(); randomizeScheduler && gp == gp.m.curg && gp.bubble != nil && gp.m.locks == 0 && inOrder()>>61 == 0 {
		goyield()
	}
}

func orderFromEnv() {
	inOrderState = 1
	for _, digit := range []byte(gogetenv("` + OrderVariable + `")) {
		inOrderState = 10*inOrderState + uint64(digit)
		randomizeScheduler = true
	}
}

`

// OrderVariable is the environment variable with a number: each makes another order of what happens at one time. Without it goroutines run in the
// order in which they are ready.
const OrderVariable = "FENCELOCK_ORDER"

// childrenInOrder walks the contexts below one in the order in which they were made. Package context walks them by their addresses, which hang on
// real time.
const childrenInOrder = `func (c *cancelCtx) childrenInOrder() []canceler {
	var all []canceler
	for child, born := range c.children {
		i := len(all)
		all = append(all, child)
		for ; i > 0 && c.children[all[i-1]] > born; i-- {
			all[i] = all[i-1]
		}
		all[i] = child
	}
	return all
}

`

// OneOrder adds the edits of the standard library to the files.
func (f Files) OneOrder(ctx context.Context) error {
	for pkg, edits := range runtimeEdits {
		dir, err := Std(ctx, pkg)
		if err != nil {
			return err
		}
		if err := f.Edit(dir, edits...); err != nil {
			return err
		}
	}
	return nil
}
