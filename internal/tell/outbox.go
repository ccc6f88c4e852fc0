package tell

import (
	"sync"
	"time"
)

// An Outbox calls what the user has given to be told by (a log's handler, functions of a trace), in order, on a goroutine that is there
// while there is something to call. Nothing of the client waits for it but the end of Close. The zero Outbox is ready.
type Outbox struct {
	mu      sync.Mutex
	calls   []func()
	running bool
}

// maxCalls bounds the calls that wait for one that does not return.
const maxCalls = 4096

// Add has the function called; false where too many wait, and it is left out.
func (o *Outbox) Add(call func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) >= maxCalls {
		return false
	}
	o.addLocked(call)
	return true
}

func (o *Outbox) addLocked(call func()) {
	o.calls = append(o.calls, call)
	if !o.running {
		o.running = true
		go o.run()
	}
}

// run makes the calls until there are none. A call that ends the goroutine (runtime.Goexit) ends its own alone.
func (o *Outbox) run() {
	done := false
	defer func() {
		if !done {
			go o.run()
		}
	}()
	for {
		o.mu.Lock()
		if len(o.calls) == 0 {
			o.running, o.calls, done = false, nil, true
			o.mu.Unlock()
			return
		}
		call := o.calls[0]
		o.calls = o.calls[1:]
		o.mu.Unlock()
		call()
	}
}

// Flush waits until all that was added before has been called, no longer than flushTime.
func (o *Outbox) Flush() {
	called := make(chan struct{})
	o.mu.Lock()
	o.addLocked(func() { close(called) })
	o.mu.Unlock()
	t := time.NewTimer(flushTime)
	defer t.Stop()
	select {
	case <-called:
	case <-t.C:
	}
}

// flushTime bounds how long Close waits for the user's functions.
const flushTime = time.Second
