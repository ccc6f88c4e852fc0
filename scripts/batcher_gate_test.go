package scripts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// gate is a hook that sees the batches of a client, and can hold up their answers.
type gate struct {
	mu      sync.Mutex
	closed  bool
	early   bool            // hold up the command itself, not its answer
	only    map[string]bool // hold up batches for these locks only; nil for all
	batches [][]string
	most    int // that were under way at once
	under   int
	release chan struct{} // one batch each
	end     chan struct{} // closed with the test
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		names := namesOf(cmd)
		if names == nil {
			return next(ctx, cmd)
		}
		return g.pass(names, []redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		names := []string{"pipeline"}
		for _, cmd := range cmds {
			if op := namesOf(cmd); op != nil {
				names = append(names, strings.Join(op, "+"))
			}
		}
		if len(names) == 1 {
			return next(ctx, cmds)
		}
		return g.pass(names, cmds, func() error { return next(ctx, cmds) })
	}
}

func (g *gate) pass(names []string, cmds []redis.Cmder, send func() error) error {
	g.mu.Lock()
	g.batches = append(g.batches, names)
	g.under++
	g.most = max(g.most, g.under)
	hold, early := g.closed && g.holds(cmds), g.early
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.under--
	}()
	if hold && early {
		g.wait()
	}
	err := send()
	if hold && !early {
		g.wait()
	}
	return err
}

// holds is asked with mu held.
func (g *gate) holds(cmds []redis.Cmder) bool {
	if g.only == nil {
		return true
	}
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			if name, is := arg.(string); is && g.only[name] {
				return true
			}
		}
	}
	return false
}

func (g *gate) wait() {
	select {
	case <-g.release:
	case <-g.end:
	}
}

// namesOf are the ops that a command does, nil for none: of a batch, in front of them, "batch".
func namesOf(cmd redis.Cmder) []string {
	args := cmd.Args()
	if name := cmd.Name(); name != "evalsha" && name != "eval" {
		return nil
	}
	kinds := []*kind{&acquires, &levels, &unlocks, &transfers, &acquiresInTurn, &releases, &leaves}
	for _, kind := range kinds {
		if args[1] == kind.script.sha || args[1] == kind.script.text {
			return []string{kind.names[0].(string)}
		}
	}
	if args[1] != batched.sha && args[1] != batched.text {
		return nil
	}
	names := []string{"batch"}
	for i := 3 + args[2].(int); i < len(args); {
		for _, kind := range kinds {
			if floor := slices.Index(kind.names, args[i]); floor >= 0 {
				names = append(names, kind.names[0].(string))
				i += 1 + len(kind.arguments) + max(floor-1, 0)
				break
			}
		}
	}
	return names
}

// close holds up the batches that leave from now on.
func (g *gate) close(early bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.early = true, early
}

// open lets n batches go that are held up, and all that leave later.
func (g *gate) open(n int) {
	g.mu.Lock()
	g.closed = false
	g.mu.Unlock()
	for range n {
		select {
		case g.release <- struct{}{}:
		case <-g.end:
			return
		}
	}
}

// seen are the batches since the last time.
func (g *gate) seen() [][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.batches
	g.batches = nil
	return seen
}

// sizes are how many ops the batches had since the last time.
func (g *gate) sizes() []int {
	sizes := []int{}
	for _, names := range g.seen() {
		if names[0] == "batch" || names[0] == "pipeline" {
			names = names[1:]
		}
		sizes = append(sizes, len(names))
	}
	return sizes
}

// mostAtOnce is how many batches were under way at once since the last time.
func (g *gate) mostAtOnce() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := g.most
	g.most = g.under
	return most
}

// newGate puts a gate, which is open, on a client whose server knows all scripts.
func newGate(t *testing.T, rdb redis.UniversalClient) *gate {
	t.Helper()
	g := &gate{release: make(chan struct{}), end: make(chan struct{})}
	t.Cleanup(func() { close(g.end) })
	load(t, rdb)
	rdb.AddHook(g)
	return g
}

// load makes the server know all scripts.
func load(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	for _, sc := range []script{acquire, level, unlock, transfer, wait, release, leave, batched, renew, inspect} {
		if err := rdb.ScriptLoad(t.Context(), sc.text).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// passenger is an op that was given to a batcher.
type passenger struct {
	*ear
	op Op
}

func send(s *Scripts, op Op) *passenger {
	x := &passenger{newEar(), op}
	s.Send(&x.op, x)
	return x
}

// sendAcquires sends an acquire for each of n locks.
func sendAcquires(t *testing.T, s *Scripts, n int) []*passenger {
	t.Helper()
	all := make([]*passenger, n)
	for i := range all {
		all[i] = send(s, Acquire(newKeys(t), true, newField(), lease))
	}
	return all
}

// mustHear waits for each one's answer, which is to be the lock.
func mustHear(t *testing.T, all ...*passenger) {
	t.Helper()
	for i, x := range all {
		if got := <-x.heard; got.err != nil || !got.Held {
			t.Fatalf("op %d, %s, hears %+v, %v", i, x.op.kind.names[0], got.Answer, got.err)
		}
	}
}

// inVirtualTime runs a test with a batcher on a gate, in a bubble.
func inVirtualTime(t *testing.T, run func(t *testing.T, s *Scripts, g *gate)) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.Dialer = redistest.Unprobed(o.Dialer) })
		g := newGate(t, rdb)
		run(t, New(rdb), g)
	})
}

// mustLeave fails the test unless so many ops have left in as many batches since the last time.
func (g *gate) mustLeave(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	if got := g.sizes(); !slices.Equal(got, want) {
		t.Fatalf("the batches have %v ops, want %v", got, want)
	}
}

// fillAll holds up the batches that a batcher has for a manyOps too.
func fillAll(t *testing.T, s *Scripts, g *gate) []*passenger {
	t.Helper()
	all := fill(t, s, g)
	for range maxExtra {
		all = append(all, sendAcquires(t, s, manyOps)...)
		g.mustLeave(t, manyOps)
	}
	return all
}

// fill holds up the two batches that a batcher has.
func fill(t *testing.T, s *Scripts, g *gate) []*passenger {
	t.Helper()
	g.close(false)
	var all []*passenger
	for range maxInFlight {
		all = append(all, sendAcquires(t, s, 1)...)
		g.mustLeave(t, 1)
	}
	return all
}
