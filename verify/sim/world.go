package main

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencelock/fencelock/internal/test/virtualtime"
)

// A world is a plan that is played, in a bubble.
type world struct {
	plan
	net     *network
	servers []*server
	began   time.Time

	mu       sync.Mutex
	history  []event
	calls    int
	clients  []*client // by their place in the plan; nil while a process is gone
	everyone []*client
	moved    map[int]bool  // the places in the plan whose processes know the quorum's later members
	stopped  chan struct{} // closed when callers are to begin no more calls
	commands int
	tally    *tally
}

// A result is what is known of a world that is over.
type result struct {
	History  []event
	Calls    int
	Commands int
	Virtual  time.Duration
	Done     map[string]int
}

// play plays the plan. It returns when all that the world has begun is over.
func play(t *testing.T, p plan) result {
	uuid.SetRand(&source{rand.New(rand.NewPCG(p.Seed, 3))})
	defer uuid.SetRand(nil)
	defer virtualtime.Enter()()
	var r result
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p)
		w.run()
		r = result{w.history, w.calls, w.commands, w.now(), w.tally.counts()}
	})
	return r
}

// source makes ids by the seed.
type source struct{ *rand.Rand }

func (s *source) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return len(b), nil
}

func newWorld(p plan) *world {
	w := &world{plan: p, began: time.Now(), moved: make(map[int]bool), stopped: make(chan struct{}), tally: newTally()}
	w.net = &network{seed: p.Seed, far: p.Distance, links: make(map[*link]bool), tally: w.tally}
	for i := range p.Servers + p.spares() {
		w.servers = append(w.servers, newServer(w.net, i))
	}
	w.clients = make([]*client, len(p.Clients))
	return w
}

func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) note(e event) {
	w.mu.Lock()
	w.noteLocked(e)
	w.mu.Unlock()
}

func (w *world) noteLocked(e event) {
	e.At = w.now()
	w.history = append(w.history, e)
}

func (w *world) run() {
	for i := range w.Clients {
		w.start(i)
	}
	watched := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(over)
	}()
	var faults sync.WaitGroup
	for _, f := range w.Faults {
		faults.Go(func() { w.breaks(f) })
	}
	time.Sleep(w.Storm)
	faults.Wait()
	w.note(event{Kind: calm})
	time.Sleep(w.Calm)
	w.note(event{Kind: stops})
	close(w.stopped)
	w.mu.Lock()
	there := slices.Clone(w.everyone)
	w.mu.Unlock()
	for _, c := range there {
		c.callers.Wait()
	}
	time.Sleep(leftFor)
	w.notice()
	time.Sleep(w.owedFor())
	w.noticeReleases()
	for _, c := range there {
		c.close(false)
	}
	time.Sleep(leftFor)
	w.leftovers()
	close(over)
	<-watched
	for _, s := range w.servers {
		w.commands += s.m.CommandCount()
		s.close()
	}
	time.Sleep(time.Minute) // what go-redis has begun ends
}

// lookEach is how often the servers are asked who has the locks.
const lookEach = time.Second

// watch writes down each second who has the locks, as the servers have it.
func (w *world) watch(over chan struct{}) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	before := make(map[string]string)
	for {
		select {
		case <-tick.C:
			w.look(before)
		case <-over:
			return
		}
	}
}

func (w *world) look(before map[string]string) {
	for _, lock := range w.keyNames() {
		owner := w.owner(lock)
		if owner == before[lock] {
			continue
		}
		before[lock] = owner
		w.note(event{Kind: has, Lock: lock, Text: owner})
	}
}

// owner returns the fields by which the lock is taken: on most of the servers.
func (w *world) owner(lock string) string {
	votes := make(map[string]int)
	for _, s := range w.servers {
		owner := s.owner(lock)
		if votes[owner]++; owner != "" && 2*votes[owner] > w.Servers {
			return owner
		}
	}
	return ""
}

var nothing = slog.New(slog.DiscardHandler)
