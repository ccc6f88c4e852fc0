package overlay

import "context"

// What Go leaves to chance decides which of several events at the same time comes first: which goroutine runs next, the order of the cases of a
// select, of a map, of timers and of the contexts below one, the seeds of hashes, where the heap begins, when a goroutine that runs for long gives
// way, and when a mutex is handed over. With these edits the runtime takes its random numbers from one sequence, which begins anew with each
// testing/synctest bubble, and looks at no real time and no address. So a program with one processor that collects no garbage does the same in a
// bubble each time.
//
// Without ScheduleVariable goroutines run in the order in which they are ready, each until it waits. Its number is a schedule: it begins the
// sequence, the next goroutine to run is any that is ready, and a goroutine gives way now and then where it locks or unlocks a mutex or uses a
// channel. Most faults need that at one or two places alone, and long runs otherwise (Burckhardt and others, A Randomized Scheduler with
// Probabilistic Guarantees of Finding Bugs, 2010), so a goroutine gives way once in 128 to 8,192 times, by the schedule.

// ScheduleVariable is the environment variable that chooses a schedule, by a number.
const ScheduleVariable = "FENCELOCK_SCHEDULE"

var runtimeEdits = map[string][]Edit{
	"runtime": {
		{File: "rand.go", Old: "\tglobalRand.state.Init(*seed)\n", New: "\t*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)\n"},
		{File: "rand.go", Old: "func rand() uint64 {\n", New: "func rand() uint64 {\n\treturn inOrder()\n}\n\n" + inOrder + "func randPerM() uint64 {\n"},
		{File: "rand.go", Old: "\tmp.cheaprand = rand()\n", New: "\tmp.cheaprand = randPerM()\n"},
		entry("select.go", "nsends, nrecvs int, block bool) (int, bool)", "givesWay()"),
		entry("chan.go", "func chansend1(c *hchan, elem unsafe.Pointer)", "givesWay()"),
		entry("chan.go", "func chanrecv1(c *hchan, elem unsafe.Pointer)", "givesWay()"),
		entry("chan.go", "elem unsafe.Pointer) (received bool)", "givesWay()"),
		entry("chan.go", "elem unsafe.Pointer) (selected bool)", "givesWay()"),
		entry("chan.go", "c *hchan) (selected, received bool)", "givesWay()"),
		entry("chan.go", "func closechan(c *hchan)", "givesWay()"),
		{File: "select.go", Old: "j := cheaprandn(uint32(norder + 1))", New: "j := uint32((uint64(uint32(inOrder())) * uint64(norder+1)) >> 32)"},
		{File: "sema.go", Old: "s.ticket = cheaprand() | 1", New: "s.ticket = uint32(inOrder()) | 1"},
		entry("synctest.go", "func synctestRun(f func())", "beginSchedule()"),
		{File: "time.go", Old: "t.rand = cheaprand()", New: "t.rand = uint32(inOrder())"},
		{File: "proc.go", Old: "\tgoenvs()\n", New: "\tgoenvs()\n\tbeginSchedule()\n"},
		{File: "proc.go", Old: "if pp.schedtick%61 == 0 && !sched.runq.empty() {", New: "if false {"},
		{File: "proc.go", Old: "i <= n; i++ {\n\t\t\tj := cheaprandn(i + 1)", New: "i <= n; i++ {\n\t\t\tj := uint32(inBubble() % uint64(i+1))"},
		{File: "proc.go", Old: "i < n; i++ {\n\t\t\tj := cheaprandn(i + 1)", New: "i < n; i++ {\n\t\t\tj := uint32(inBubble() % uint64(i+1))"},
		{
			File: "proc.go", Old: "\t\tpp.runq[t%uint32(len(pp.runq))].set(gp)\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item",
			New: "\t\tat := placeInOrder(pp, gp, h, t)\n\t\tpp.runq[t%uint32(len(pp.runq))] = pp.runq[at%uint32(len(pp.runq))]\n" +
				"\t\tpp.runq[at%uint32(len(pp.runq))].set(gp)\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item",
		},
		{File: "proc.go", Old: "if randomizeScheduler && next && randn(2) == 0 {", New: "if randomizeScheduler && next && gp.bubble != nil && inBubble()&1 == 0 {"},
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
	"crypto/internal/rand": {
		entry("rand.go", "func (r reader) Read(b []byte) (n int, err error)", "for i := range b {\n\t\tb[i] = byte(runtime_rand())\n\t}\n\treturn len(b), nil"),
		{File: "rand.go", Old: "type reader struct {\n", New: "//go:linkname runtime_rand runtime.rand\nfunc runtime_rand() uint64\n\ntype reader struct {\n"},
	},
	"internal/sync": {
		entry("mutex.go", "func (m *Mutex) Lock()", "runtime_givesWay()"),
		{File: "mutex.go", Old: "\t\tm.unlockSlow(new)\n\t}\n}\n", New: "\t\tm.unlockSlow(new)\n\t}\n\truntime_givesWay()\n}\n"},
		{File: "runtime.go", Old: "//go:linkname throw\n", New: "//go:linkname runtime_givesWay\nfunc runtime_givesWay()\n\n//go:linkname throw\n"},
		{File: "mutex.go", Old: "starvationThresholdNs = 1e6", New: "starvationThresholdNs = 1 << 60"},
	},
}

// entry has a function begin with a statement.
func entry(file, signature, statement string) Edit {
	return Edit{file, signature + " {\n", signature + " {\n\t" + statement + "\n"}
}

// inOrder takes random numbers, by wyrand, from one sequence for goroutines in a bubble, and from another one for all else.
const inOrder = `var (
	bubbleState  uint64
	outsideState uint64
	rarely       uint64
)

//go:nosplit
func inOrder() uint64 {
	if gp := getg().m.curg; gp != nil && gp.bubble != nil {
		return inBubble()
	}
	return drawn(&outsideState)
}

//go:nosplit
func inBubble() uint64 { return drawn(&bubbleState) }

//go:nosplit
func drawn(state *uint64) uint64 {
	*state += 0xa0761d6478bd642f
	hi, lo := math.Mul64(*state, *state^0xe7037ed1a0b428db)
	return uint64(hi ^ lo)
}

// placeInOrder is where a goroutine that is ready is put in the queue: whichever of its bubble is there goes to the end.
func placeInOrder(pp *p, gp *g, head, tail uint32) uint32 {
	if !randomizeScheduler || gp.bubble == nil {
		return tail
	}
	n := uint32(1)
	for i := head; i != tail; i++ {
		if pp.runq[i%uint32(len(pp.runq))].ptr().bubble != nil {
			n++
		}
	}
	n = uint32(inBubble() % uint64(n))
	for i := head; i != tail; i++ {
		if pp.runq[i%uint32(len(pp.runq))].ptr().bubble != nil {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return tail
}

//go:linkname givesWay internal/sync.runtime_givesWay
func givesWay() {
	if gp := getg(); randomizeScheduler && gp == gp.m.curg && gp.bubble != nil && gp.m.locks == 0 && inBubble()%rarely == 0 {
		goyield()
	}
}

func beginSchedule() {
	bubbleState = 1
	for _, digit := range []byte(gogetenv("` + ScheduleVariable + `")) {
		bubbleState = 10*bubbleState + uint64(digit)
		randomizeScheduler = true
	}
	rarely = 128 << (2 * (bubbleState % 4))
}

`

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

// OneSchedule adds the edits of the standard library to the files.
func (f Files) OneSchedule(ctx context.Context) error {
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
