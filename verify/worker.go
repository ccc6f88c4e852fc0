package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// workerFlag, as the only argument, makes this program a worker of another one of it.
const workerFlag = "-worker"

// What all clients are set to. The poll is short so that faults that need it show within a round.
const (
	clientLease   = time.Second
	longestLease  = clientLease
	pollInterval  = 200 * time.Millisecond // where the scenario has none
	maxPolls      = 10                     // that a waiter sleeps at most: see rlock.WithPollInterval
	unlockTimeout = 2 * time.Second
	answerTimeout = time.Second
	poolSize      = 20
	maxGrowth     = 16 << 20 // bytes that a process may have more in the end than before its clients began
)

// orders are the first line that a worker reads. Then come "shift N" (its clock shows so many nanoseconds more), "stop"
// (end the load), and "close"; in the scenario line also "come" (back at once from now on).
type orders struct {
	Process int           `json:"process"`
	Seed    uint64        `json:"seed"`
	Addr    string        `json:"addr"`  // of the locks' server, if there is but one
	Store   string        `json:"store"` // of the server behind the guard
	Locks   []string      `json:"locks"`
	Clients int           `json:"clients"`
	Stable  bool          `json:"stable"`
	Floor   bool          `json:"floor"`
	Lease   time.Duration `json:"lease"` // of all holds; 0: of some
	Wait    time.Duration `json:"wait"`  // of all calls; 0: of less
	Long    bool          `json:"long"`
	Poll    time.Duration `json:"poll"`
	Rest    time.Duration `json:"rest"` // after a hold, half of it at least; 0: a moment
	Churn   bool          `json:"churn"`
	Stays   int           `json:"stays"` // of 100 holds, how many stay for more than their lease
	Line    bool          `json:"line"`  // short sections, and nothing else

	Sentinels []string `json:"sentinels,omitempty"` // that know where the locks are
	Nodes     []string `json:"nodes,omitempty"`     // of a cluster that has them
	Quorum    []node   `json:"quorum,omitempty"`    // the servers of a quorum that has them
	User      string   `json:"user,omitempty"`      // of these servers, with userPassword; "": the one who may do everything
}

// A node is a server of a quorum.
type node struct {
	Addr string `json:"addr"`
	Link string `json:"link"` // the way to it
}

// A report is a line that a worker writes.
type report struct {
	Op   *op      `json:"op,omitempty"`
	Idle bool     `json:"idle,omitempty"` // the load has ended
	Left []string `json:"left,omitempty"` // what is left in the process

	Churned int64 `json:"churned,omitempty"` // calls that were not written down
}

// work is a worker process.
func work(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return fmt.Errorf("no orders: %w", lines.Err())
	}
	var o orders
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return err
	}
	put := json.NewEncoder(out)
	rec := &recorder{process: o.Process, put: func(x op) {
		if put.Encode(report{Op: &x}) != nil {
			os.Exit(1) // nobody listens any more
		}
	}}
	store := dial(o.Store)
	lease := clientLease
	if o.Lease > 0 {
		lease = o.Lease
	}
	client, locks, hangUp, err := o.connect(rlock.WithLease(lease), rlock.WithPollInterval(o.Poll), rlock.WithUnlockTimeout(unlockTimeout), rlock.WithLocalHandoffs(16*(o.Process%2)))
	if err != nil {
		return err
	}
	guard, err := redisguard.New(store)
	if err != nil {
		return err
	}
	before := heap()
	var churned atomic.Int64
	var rests resting
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range o.Clients {
		c := &caller{
			number: o.Process*10 + i, rec: rec, orders: o, client: client, locks: locks, guard: guard, stop: stop, churned: &churned, resting: &rests,
			rng: rand.New(rand.NewPCG(o.Seed, uint64(o.Process*10+i))),
		}
		all.Go(c.run)
	}
	for lines.Scan() {
		switch word, n, _ := strings.Cut(lines.Text(), " "); word {
		case "shift":
			by, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				return err
			}
			shiftClock(time.Duration(by))
		case "come":
			rests.never.Store(true)
		case "stop":
			close(stop)
			go func() {
				all.Wait()
				rec.mu.Lock()
				defer rec.mu.Unlock()
				_ = put.Encode(report{Idle: true})
			}()
		case "close":
			all.Wait()
			left := leave(client)
			if after := heap(); after > before+maxGrowth {
				left = append(left, fmt.Sprintf("%d MiB of memory, and %d before", after>>20, before>>20))
			}
			hangUp()
			_ = store.Close()
			return put.Encode(report{Left: left, Churned: churned.Load()})
		}
	}
	return nil // who started this is gone
}

func dial(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize, DialTimeout: answerTimeout, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout})
}

// connect returns a client of the locks' servers, how it makes locks, and what ends its connections.
func (o orders) connect(opts ...rlock.Option) (shutter, func(string, ...fenced.Option) *fenced.Lock, func(), error) {
	if len(o.Quorum) == 0 {
		rdb := o.dial()
		client, err := rlock.New(rdb, opts...)
		return client, func(name string, opts ...fenced.Option) *fenced.Lock { return fenced.NewLock(client, name, opts...) }, func() { _ = rdb.Close() }, err
	}
	var nodes []redis.UniversalClient
	password := ""
	if o.User != "" {
		password = userPassword
	}
	for _, n := range o.Quorum {
		nodes = append(nodes, redis.NewClient(&redis.Options{
			Addr: n.Addr, Username: o.User, Password: password, PoolSize: poolSize, DialTimeout: answerTimeout, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout,
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, network, n.Link)
			},
		}))
	}
	client, err := quorum.New(nodes, opts...)
	hangUp := func() {
		for _, rdb := range nodes {
			_ = rdb.Close()
		}
	}
	return client, func(name string, opts ...fenced.Option) *fenced.Lock { return fenced.NewLock(client, name, opts...) }, hangUp, err
}

// shutter is a client of either kind.
type shutter interface {
	Shutdown(ctx context.Context) error
}

// leave closes the client and returns what it has left.
func leave(client shutter) (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := client.Shutdown(ctx); err != nil {
		left = append(left, err.Error())
	}
	var stacks []string
	for range 500 {
		if stacks = libraryStacks(); len(stacks) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, stack := range stacks {
		left = append(left, "a goroutine of a closed client:\n"+stack)
	}
	return left
}

// heap is how much memory is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools have kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const library = "github.com/fencelock/fencelock/"

// libraryStacks returns the stacks of the goroutines that run code of the library.
func libraryStacks() []string {
	buf := make([]byte, 4<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		ours := strings.Contains(stack, "\n"+library+"verify.") || strings.Contains(stack, "\n"+library+"internal/test/redistest.")
		if strings.Contains(stack, "\n"+library) && !ours {
			found = append(found, stack)
		}
	}
	return found
}
