package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// A reading is what the meters of both sides show at one moment.
type reading struct {
	at        time.Time
	serverCPU time.Duration
	clientCPU time.Duration
	commands  map[string]int // by name, those inside of scripts too
}

func read(ctx context.Context, rdb *redis.Client) (reading, error) {
	info, err := rdb.Info(ctx, "all").Result()
	if err != nil {
		return reading{}, fmt.Errorf("the server's INFO: %w", err)
	}
	r := reading{at: time.Now(), commands: map[string]int{}}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_sys", name == "used_cpu_user":
			seconds, _ := strconv.ParseFloat(value, 64)
			r.serverCPU += time.Duration(seconds * float64(time.Second))
		case strings.HasPrefix(name, "cmdstat_") && name != "cmdstat_info":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			r.commands[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.Atoi(calls)
		}
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return reading{}, err
	}
	r.clientCPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	return r, nil
}

// A span is what happened between two readings.
type span struct {
	took     time.Duration
	server   float64 // share of a core
	client   float64
	commands map[string]int
	total    int // commands that clients sent
}

func between(a, b reading) span {
	took := b.at.Sub(a.at)
	s := span{
		took:     took,
		server:   float64(b.serverCPU-a.serverCPU) / float64(took),
		client:   float64(b.clientCPU-a.clientCPU) / float64(took),
		commands: map[string]int{},
	}
	for name, n := range b.commands {
		if n -= a.commands[name]; n > 0 {
			s.commands[name] = n
		}
	}
	for _, name := range []string{"evalsha", "eval", "ping", "subscribe", "unsubscribe"} {
		s.total += s.commands[name]
	}
	return s
}

// watch reads the meters before and after a while.
func watch(ctx context.Context, rdb *redis.Client, d time.Duration) (span, error) {
	before, err := read(ctx, rdb)
	if err != nil {
		return span{}, err
	}
	if err := pause(ctx, d); err != nil {
		return span{}, err
	}
	after, err := read(ctx, rdb)
	return between(before, after), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// memory is what this process uses.
type memory struct {
	heap, stack int64
	goroutines  int
}

func readMemory() memory {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()}
}

func (m memory) since(before memory) memory {
	return memory{m.heap - before.heap, m.stack - before.stack, m.goroutines - before.goroutines}
}

// per is bytes for each of n.
func per(bytes int64, n int) float64 { return float64(bytes) / float64(n) }
