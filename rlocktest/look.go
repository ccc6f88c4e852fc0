package rlocktest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/scripts"
)

// Holder returns the id of the client that has the lock, of a read-write lock that of one of them, as rlock.Client.ID has it; "" for a free lock. Others have ids of their own.
func (s *Server) Holder(name string) string {
	s.t.Helper()
	id, _, _ := strings.Cut(s.field(name), ":")
	return id
}

// HoldCount returns how often the holder has acquired the lock without unlocking it; 0 for a free lock. Of a read-write lock it is how many hold it: how
// often each has acquired it is known to its client alone.
func (s *Server) HoldCount(name string) int {
	s.t.Helper()
	hash := s.hash(name)
	if hash["mode"] != "" {
		return len(holders(hash))
	}
	count, _ := strconv.Atoi(hash[s.field(name)])
	return count
}

// LastToken returns the largest fencing token that was given for the lock; 0 for none.
func (s *Server) LastToken(name string) int64 {
	s.t.Helper()
	token, err := s.own.Get(context.Background(), scripts.KeysOf(name).Token).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("rlocktest: LastToken: %v", err)
	}
	return token
}

// Waiters returns how many calls of the clients wait for the lock. Those of a killed client do not count.
func (s *Server) Waiters(name string) int {
	n := 0
	for _, m := range s.alive() {
		waiting, _ := engine.ClientOf(m.client).InQueue(name)
		n += waiting
	}
	return n
}

// WaitForWaiters returns when so many calls of the clients wait for the lock, and are told of its release.
func (s *Server) WaitForWaiters(name string, n int) {
	s.t.Helper()
	s.Wait(strconv.Itoa(n)+" waiters of "+strconv.Quote(name), func() bool {
		for _, m := range s.alive() {
			if waiting, settled := engine.ClientOf(m.client).InQueue(name); waiting > 0 && !settled {
				return false
			}
		}
		return s.Waiters(name) == n
	})
}

// field returns the field of a hold that has the lock; "" for none.
func (s *Server) field(name string) string {
	if all := s.fields(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// fields returns the fields of all holds that have the lock: only a read-write lock has several.
func (s *Server) fields(name string) []string { return holders(s.hash(name)) }

// holders are the fields of the holds in the hash of a lock, in order.
func holders(hash map[string]string) (all []string) {
	for field := range hash {
		if !strings.HasSuffix(field, "#") && field != "mode" && field != "phase" {
			all = append(all, field)
		}
	}
	slices.Sort(all)
	return all
}

func (s *Server) hash(name string) map[string]string {
	s.t.Helper()
	fields, err := s.own.HGetAll(context.Background(), name).Result()
	if err != nil {
		s.t.Fatalf("rlocktest: %q: %v", name, err)
	}
	return fields
}
