package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A reading is what the servers' meters show at one moment, added up.
type reading struct {
	at          time.Time
	servers     int
	commands    map[string]int // executed by the servers, those inside of scripts too
	messages    int            // that the servers read from their connections
	connections int            // to the servers, without the program's own
	cpu         time.Duration
}

func read(ctx context.Context, servers []*redis.Client) (reading, error) {
	all := reading{servers: len(servers), commands: map[string]int{}}
	asked := time.Now()
	for _, rdb := range servers {
		info, err := rdb.Info(ctx, "all").Result()
		if err != nil {
			return reading{}, fmt.Errorf("the server's INFO: %w", err)
		}
		r := parseInfo(info)
		for name, calls := range r.commands {
			all.commands[name] += calls
		}
		all.messages += r.messages
		all.cpu += r.cpu
		all.connections += r.connections - int(rdb.PoolStats().TotalConns)
	}
	all.at = asked.Add(time.Since(asked) / 2)
	return all, nil
}

// parseInfo takes what is needed out of the answer to INFO.
func parseInfo(info string) reading {
	r := reading{commands: map[string]int{}}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_sys", name == "used_cpu_user":
			seconds, _ := strconv.ParseFloat(value, 64)
			r.cpu += time.Duration(seconds * float64(time.Second))
		case name == "connected_clients":
			r.connections, _ = strconv.Atoi(value)
		case name == "total_reads_processed":
			r.messages, _ = strconv.Atoi(value)
		case strings.HasPrefix(name, "cmdstat_"):
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			r.commands[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.Atoi(calls)
		}
	}
	return r
}
