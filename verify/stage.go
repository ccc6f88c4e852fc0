package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/internal/test/weave"
)

// A stage is what a round plays on: the servers, the links, the workers. Its methods panic with a stageError where the
// machine does not do what it should; nothing is learned from such a round.
type stage struct {
	dir      string
	program  string // of the workers
	bug      int    // that is on in the program; 0 for none
	cleanups []func()
	rng      *rand.Rand

	locks   *redistest.Server // where the locks are; with a topology of several servers, some or all of them
	store   *redistest.Server // behind the guard
	replica *redistest.Server // of locks; nil without a promotion
	clock   *serverClock      // of locks; nil for the machine's
	workers []*worker
	java    *redisson // nil without

	watched   *redistest.Sentinels // nil without
	clustered *redistest.Cluster   // nil without
	nodes     []*redistest.Server  // of a quorum; none without

	mu    sync.Mutex // also of workers, where they are read while faults come
	ops   map[int64]op
	trial trial
}

type stageError string

func (e stageError) Error() string { return string(e) }

// A stage is the owner of the servers: redistest.Owner.

func (s *stage) Helper()                           {}
func (s *stage) Cleanup(f func())                  { s.cleanups = append(s.cleanups, f) }
func (s *stage) Failed() bool                      { return false }
func (s *stage) Logf(string, ...any)               {}
func (s *stage) Fatalf(format string, args ...any) { panic(stageError(fmt.Sprintf(format, args...))) }

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "server")
	s.must(err)
	return dir
}

func (s *stage) must(err error) {
	if err != nil {
		s.Fatalf("%v", err)
	}
}

// strike takes the stage down.
func (s *stage) strike() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	_ = os.RemoveAll(s.dir)
}

// direct returns a client that is not behind a link.
func (s *stage) direct(server *redistest.Server) *redis.Client {
	return server.Client(func(o *redis.Options) { o.MaxRetries = 5 })
}

// A worker is a process with clients.
type worker struct {
	orders
	link  *link   // to the server of the locks
	store *link   // to that of the guard
	ways  []*link // to the nodes of a quorum
	cmd   *exec.Cmd
	stdin io.WriteCloser
	idle  chan struct{} // closed when its load has ended
	gone  chan struct{} // closed when nothing more comes of it
	last  report        // after gone
	ended bool          // it said what it has left; after gone
	said  *strings.Builder
}

// enter starts a worker.
func (s *stage) enter(o orders) *worker {
	w := &worker{orders: o, idle: make(chan struct{}), gone: make(chan struct{}), said: new(strings.Builder)}
	var err error
	w.link, err = newLink(s.locks.Addr())
	s.must(err)
	w.store, err = newLink(s.store.Addr())
	s.must(err)
	w.Addr, w.Store, w.Quorum = w.link.addr(), w.store.addr(), nil
	for _, server := range s.nodes {
		way, err := newLink(server.Addr())
		s.must(err)
		w.ways = append(w.ways, way)
		w.Quorum = append(w.Quorum, node{server.Addr(), way.addr()})
	}
	w.cmd = exec.Command(s.program, workerFlag)
	w.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", weave.Switch, s.bug))
	w.cmd.Stderr = w.said
	w.stdin, err = w.cmd.StdinPipe()
	s.must(err)
	out, err := w.cmd.StdoutPipe()
	s.must(err)
	s.must(w.cmd.Start())
	s.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.gone
		w.link.close()
		w.store.close()
		for _, way := range w.ways {
			way.close()
		}
	})
	go s.listen(w, out)
	first, err := json.Marshal(w.orders)
	s.must(err)
	w.tell(string(first))
	s.mu.Lock()
	s.workers = append(s.workers, w)
	s.mu.Unlock()
	return w
}

// listen takes what a worker says.
func (s *stage) listen(w *worker, out io.Reader) {
	defer close(w.gone)
	lines := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	for {
		var r report
		if lines.Decode(&r) != nil {
			break
		}
		switch {
		case r.Op != nil:
			s.mu.Lock()
			s.ops[r.Op.ID] = *r.Op
			s.mu.Unlock()
		case r.Idle:
			close(w.idle)
		default:
			w.last, w.ended = r, true
		}
	}
	_ = w.cmd.Wait()
}

func (w *worker) tell(line string) { _, _ = fmt.Fprintln(w.stdin, line) }

func (w *worker) signal(sig syscall.Signal) { _ = w.cmd.Process.Signal(sig) }

// dead tells whether the process was killed.
func (w *worker) dead() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// kill kills the process, and notes when it was gone.
func (s *stage) kill(w *worker) {
	_ = w.cmd.Process.Kill()
	<-w.gone
	s.note(func(t *trial) {
		if t.Killed == nil {
			t.Killed = make(map[int]int64)
		}
		t.Killed[w.Process] = now()
	})
}

// called waits for a second until a client is called that waits in a line, does this to its process before the message gets
// there, which it does if do returns true, and returns the process; nil: none was called.
func (s *stage) called(do func(w *worker) bool) *worker {
	var taken atomic.Bool
	found := make(chan *worker, 1)
	living := s.living()
	for _, w := range living {
		ask := func() bool {
			if !taken.CompareAndSwap(false, true) {
				return true
			}
			keep := do(w)
			found <- w
			return keep
		}
		w.ask(&ask)
	}
	defer func() {
		for _, w := range living {
			w.ask(nil)
		}
	}()
	select {
	case w := <-found:
		return w
	case <-time.After(time.Second):
	}
	if taken.CompareAndSwap(false, true) {
		return nil
	}
	return <-found
}

// ask sets what is asked before a message that calls a client of the worker: see link.called.
func (w *worker) ask(ask *func() bool) {
	for _, l := range slices.Concat(w.ways, []*link{w.link}) {
		l.called.Store(ask)
	}
}

// living are the workers that were not killed.
func (s *stage) living() []*worker {
	return slices.DeleteFunc(slices.Clone(s.workers), (*worker).dead)
}

// someone is a worker, by the seed: every second time one of those that want several locks, if only some do.
func (s *stage) someone() *worker {
	living := s.living()
	if len(living) == 0 {
		s.Fatalf("no process is left, and the first said:\n%s", s.workers[0].said)
	}
	several := slices.DeleteFunc(slices.Clone(living), func(w *worker) bool { return len(w.Locks) == 1 })
	if n := len(several); n > 0 && n < len(living) && s.rng.IntN(2) == 0 {
		living = several
	}
	return living[s.rng.IntN(len(living))]
}

// within waits for a channel.
func within(ch <-chan struct{}, d time.Duration) bool {
	select {
	case <-ch:
		return true
	case <-time.After(d):
		return false
	}
}
