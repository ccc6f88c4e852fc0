package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// now is the time on the clock that all processes of a machine share, and that nobody can set.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // there is no such machine
	}
	return ts.Nano()
}

// forever is when a call returns that never did.
const forever = int64(1) << 62

// The kinds of an op.
const (
	acquire = "acquire" // Token, Value: the wait in ns
	reenter = "reenter" // Token
	alive   = "alive"   // of a hold, from the answer to its acquire to the last moment at which its context was alive; Value: the lease in ns
	unlock  = "unlock"
	read    = "read"  // of the guarded register: Value
	write   = "write" // of Value, under Token; Value: what was read before, and 1
	count   = "count" // HoldCount; Value: what it says, Want: how many levels are open
)

// The outcomes of an op.
const (
	open    = ""        // it did not return: the process was killed, or is still at it
	done    = "done"    // it has an effect, or its answer is true
	refused = "refused" // the answer is no: another holder has the lock, the token is stale
	failed  = "failed"  // an error that says that it has none
	unknown = "unknown" // nobody knows, now or later
)

// An op is one call of a client, as it saw it.
type op struct {
	ID      int64  `json:"id"`
	Client  int    `json:"client"` // process*10 + number
	Kind    string `json:"kind"`
	Lock    string `json:"lock"`
	Hold    int64  `json:"hold,omitempty"` // the ID of the acquire that began it
	Token   int64  `json:"token,omitempty"`
	Value   int64  `json:"value,omitempty"`
	Want    int64  `json:"want,omitempty"`
	Call    int64  `json:"call"`   // see now
	Return  int64  `json:"return"` // 0: open
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

func (o op) took() time.Duration { return time.Duration(o.Return - o.Call) }

func (o op) String() string {
	return fmt.Sprintf("client %d %s hold %d token %d [%.3f ms to %.3f ms]", o.Client, o.Kind, o.Hold, o.Token, float64(o.Call)/1e6, float64(o.Return)/1e6)
}

// A recorder gives ops their IDs and passes them on, also when they begin, so that one that is open when the process is
// killed is known.
type recorder struct {
	process int
	ids     atomic.Int64
	mu      sync.Mutex
	put     func(op)
}

// begin records the call of an op.
func (r *recorder) begin(o op) op {
	o.ID = int64(r.process)<<32 | r.ids.Add(1)
	o.Call = now()
	r.emit(o)
	return o
}

// end records its return.
func (r *recorder) end(o op, outcome string, err error) op {
	o.Return, o.Outcome = now(), outcome
	if err != nil {
		o.Error = err.Error()
	}
	r.emit(o)
	return o
}

func (r *recorder) emit(o op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(o)
}
