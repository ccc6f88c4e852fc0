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
	serverAt    time.Time      // of what the server says
	clientAt    time.Time      // of what is this process's
	commands    map[string]int // executed by the server, those inside of scripts too
	connections int            // to the server, without those of rdb
	serverCPU   time.Duration
	clientCPU   time.Duration // of this whole process
	allocs      uint64
	allocBytes  uint64
}

func read(ctx context.Context, rdb *redis.Client) (reading, error) {
	asked := time.Now()
	info, err := rdb.Info(ctx, "all").Result()
	if err != nil {
		return reading{}, fmt.Errorf("the server's INFO: %w", err)
	}
	r := parseInfo(info)
	r.clientAt = time.Now()
	r.serverAt = asked.Add(r.clientAt.Sub(asked) / 2)
	r.connections -= int(rdb.PoolStats().TotalConns)
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return reading{}, err
	}
	r.clientCPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r.allocs, r.allocBytes = mem.Mallocs, mem.TotalAlloc
	return r, nil
}

// parseInfo takes what is needed out of the answer to INFO. The reading's own command is left out.
func parseInfo(info string) reading {
	r := reading{commands: map[string]int{}}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_sys", name == "used_cpu_user":
			seconds, _ := strconv.ParseFloat(value, 64)
			r.serverCPU += time.Duration(seconds * float64(time.Second))
		case name == "connected_clients":
			r.connections, _ = strconv.Atoi(value)
		case strings.HasPrefix(name, "cmdstat_") && name != "cmdstat_info":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			r.commands[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.Atoi(calls)
		}
	}
	return r
}
