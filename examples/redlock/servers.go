package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// A node is a Redis inside the program. What it says of itself is what a real one says: how long its run has lasted.
type node struct {
	*miniredis.Miniredis
	honest bool
	run    string
	began  time.Time
}

type servers []*node

func startServers(n int, honest bool) (servers, error) {
	var all servers
	for i := range n {
		s := &node{Miniredis: miniredis.NewMiniRedis(), honest: honest, run: fmt.Sprintf("first-%d", i+1), began: time.Now().Add(-24 * time.Hour)}
		s.ClockTTL(true) // leases run out by the clock, as in a real Redis
		if err := s.Start(); err != nil {
			all.close()
			return nil, fmt.Errorf("a Redis inside the program does not start: %w", err)
		}
		s.tellUptime()
		all = append(all, s)
	}
	return all, nil
}

// tellUptime answers INFO server, which miniredis does not.
func (s *node) tellUptime() {
	run, began := s.run, s.began
	s.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if cmd != "INFO" || len(args) != 1 || !strings.EqualFold(args[0], "server") {
			return false
		}
		c.WriteBulk(fmt.Sprintf("run_id:%s\r\nuptime_in_seconds:%d\r\n", run, int(time.Since(began).Seconds())))
		return true
	})
}

// cutOff makes the server unreachable. It forgets nothing.
func (s *node) cutOff() { s.Close() }

// reconnect makes it reachable again.
func (s *node) reconnect() error {
	err := s.Restart()
	s.tellUptime()
	return err
}

// restartEmpty is a crash and a start without persistence.
func (s *node) restartEmpty() error {
	s.Close()
	s.FlushAll()
	s.run = "second-" + s.run
	if s.honest {
		s.began = time.Now()
	}
	return s.reconnect()
}

// clients returns clients of the servers, as one process would have them.
func (all servers) clients() []redis.UniversalClient {
	var rdbs []redis.UniversalClient
	for _, s := range all {
		rdbs = append(rdbs, redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1}))
	}
	return rdbs
}

func (all servers) close() {
	for _, s := range all {
		s.Close()
	}
}

// have says which servers have the key.
func (all servers) have(key string) string {
	var names []string
	for i, s := range all {
		if s.Exists(key) {
			names = append(names, fmt.Sprint(i+1))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}
