package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A round is one contender in one mode.
type round struct {
	id        int // of all rounds of this program
	contender contender
	mode      mode
	repeat    int
	timing    timing
	addr      string        // where contenders find the server
	addrs     []string      // where they find those of a quorum
	rdb       *redis.Client // the program's own, for INFO and for work inside sections
	nodes     *nodes        // where the mode has a quorum
}

// servers are those that the round puts load on.
func (r round) servers() []*redis.Client {
	switch {
	case r.mode.trouble == dead:
		return r.nodes.rdbs[1:]
	case r.mode.nodes > 0:
		return r.nodes.rdbs
	}
	return []*redis.Client{r.rdb}
}

// read returns what the meters of the servers show that the contender locks with.
func (r round) read(ctx context.Context) (reading, error) {
	if r.contender.server != nil {
		return r.contender.server.read(), nil
	}
	return read(ctx, r.servers())
}

func (r round) dial() (*client, error) {
	if r.mode.kind != "" {
		return r.contender.kinds[r.mode.kind](r.addr)
	}
	if r.mode.nodes > 0 {
		return r.contender.quorum(r.addrs)
	}
	return r.contender.dial(r.addr)
}

// prefix begins the names of the round's keys. It makes the server that is in trouble the home of the first of them.
func (r round) prefix() string {
	prefix := fmt.Sprintf("bench-%d", r.id)
	for try := 1; r.mode.trouble != "" && homeOf(r.mode.keys(prefix)[0], r.addrs) != r.addrs[0]; try++ {
		prefix = fmt.Sprintf("bench-%d-%d", r.id, try)
	}
	return prefix
}

// timing is how long the parts of a round take.
type timing struct {
	warm   time.Duration // load before the window
	window time.Duration // what is measured
	grace  time.Duration // a waiter that has not come back this long after the end of the load hangs
}

// abandon is how long a waiter that hangs has to come back once its context has been cancelled.
const abandon = 2 * time.Second

// A result is what one round gave. Times are in microseconds.
type result struct {
	Contender     string             `json:"contender"`
	Mode          string             `json:"mode"`
	Repeat        int                `json:"repeat"`
	Seconds       float64            `json:"seconds"`
	Pairs         int                `json:"pairs"` // acquires with their unlock
	PairsPerSec   float64            `json:"pairs_per_second"`
	WaitP50       float64            `json:"wait_p50_us"`
	WaitP99       float64            `json:"wait_p99_us"`
	WaitMax       float64            `json:"wait_max_us"`
	UseP50        float64            `json:"use_p50_us"` // from the call until it has unlocked
	UseP99        float64            `json:"use_p99_us"`
	Commands      float64            `json:"commands_per_pair"`
	CommandsBy    map[string]float64 `json:"commands_per_pair_by_name,omitempty"`
	Messages      float64            `json:"messages_per_pair"` // reads of the servers: one may have several commands
	ServerCPU     float64            `json:"server_cpu_us_per_pair"`
	ClientCPU     float64            `json:"client_cpu_us_per_pair"`
	Allocs        float64            `json:"allocs_per_pair"`
	AllocBytes    float64            `json:"alloc_bytes_per_pair"`
	Connections   int                `json:"connections"`
	FairGoroutine float64            `json:"least_over_most_goroutine"`
	FairClient    float64            `json:"least_over_most_client"`
	Overlaps      int64              `json:"overlaps"`
	OutOfOrder    int64              `json:"tokens_out_of_order"`
	Tokens        bool               `json:"has_tokens"`
	Hung          int                `json:"hung_waiters"`
	Stuck         int                `json:"hung_after_cancel"` // of the hung: not even back when cancelled
	Errors        int64              `json:"errors"`
	FirstError    string             `json:"first_error,omitempty"`
}

// run runs the round and returns what it gave.
func (r round) run(ctx context.Context) (result, error) {
	measure := r.contender.run
	if measure == nil {
		measure = measureHere
	}
	if r.mode.nodes > 0 {
		r.nodes.awaitOld(ctx)
		r.addrs = r.nodes.addrs()
	}
	var link *link
	var err error
	switch {
	case r.mode.slow:
		if link, err = startLink(r.addr, slowBy); err == nil {
			r.addr = link.addr
		}
	case r.mode.trouble == far:
		if link, err = startLink(r.addrs[0], farBy); err == nil {
			r.addrs[0] = link.addr
		}
	case r.mode.trouble == dead:
		r.addrs[0], err = closedAddr()
	}
	if err != nil {
		return result{}, err
	}
	if link != nil {
		defer link.close()
	}
	res, err := measure(ctx, r)
	res.Contender, res.Mode, res.Repeat = r.contender.name, r.mode.name(), r.repeat
	for _, rdb := range r.servers() {
		if err == nil {
			err = rdb.FlushAll(ctx).Err()
		}
	}
	if err != nil {
		err = fmt.Errorf("%s in %s: %w", r.contender.name, r.mode.name(), err)
	}
	return res, err
}

// meters fills in what was used for each pair: what was used in a second over the pairs of a second, because a reading
// takes its time under load. The first reading, which is one INFO for each server, counts for nothing: scripts of a quorum ask INFO too.
func (res *result) meters(before, after reading, usedBefore, usedAfter usage) {
	if res.Pairs == 0 {
		return
	}
	server := after.at.Sub(before.at).Seconds() * res.PairsPerSec
	client := (usedAfter.At - usedBefore.At).Seconds() * res.PairsPerSec
	res.CommandsBy = map[string]float64{}
	for name, calls := range after.commands {
		n := calls - before.commands[name]
		if name == "info" {
			n -= after.servers
		}
		if n > 0 {
			res.CommandsBy[name] = float64(n) / server
			res.Commands += float64(n) / server
		}
	}
	res.Messages = float64(after.messages-before.messages-after.servers) / server
	res.ServerCPU = micros(after.cpu-before.cpu) / server
	res.ClientCPU = micros(usedAfter.CPU-usedBefore.CPU) / client
	res.Allocs = float64(usedAfter.Allocs-usedBefore.Allocs) / client
	res.AllocBytes = float64(usedAfter.AllocBytes-usedBefore.AllocBytes) / client
	res.Connections = after.connections
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// closeAll closes the clients, and does not wait for ever: a client with stuck waiters may hang itself.
func closeAll(clients []*client) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range clients {
			c.close()
		}
	}()
	select {
	case <-done:
	case <-time.After(abandon):
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
