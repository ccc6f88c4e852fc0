package main

import (
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The users who lack the right to the line have the right to the lock.
func TestUsersWithoutTheRightToTheLine(t *testing.T) {
	server := redistest.Real(t, lineless...)
	const line = "fencelock_line:{" + hotLock + "}"
	for user, refused := range map[string][][]any{
		noCommands: {{"ZADD", line, 1, "x"}, {"ZRANGE", line, 0, -1}},
		noKeys:     {{"ZADD", line, 1, "x"}, {"EXISTS", line}, {"PUBLISH", line + ":x", "c"}},
	} {
		rdb := server.Client(func(o *redis.Options) { o.Username, o.Password = user, userPassword })
		for _, args := range refused {
			if err := rdb.Do(t.Context(), args...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: %v: %v", user, args, err)
			}
		}
		for _, args := range [][]any{
			{"HSET", hotLock, "x", 1}, {"INCR", "redisson_lock_token:{" + hotLock + "}"}, {"GET", "fencelock:quorum"},
			{"PUBLISH", "redisson_lock__channel:{" + hotLock + "}", "0"},
		} {
			if err := rdb.Do(t.Context(), args...).Err(); err != nil && err != redis.Nil {
				t.Errorf("%s: %v: %v", user, args, err)
			}
		}
	}
}

// More than half of the faults of a node meet the one that most of those listen to who wait for the hot lock.
func TestFaultsMeetTheHome(t *testing.T) {
	s := &stage{dir: t.TempDir(), rng: rand.New(rand.NewPCG(1, 0))}
	defer s.strike()
	for range 3 {
		s.nodes = append(s.nodes, redistest.Real(s))
	}
	home := s.nodes[1]
	for i, channels := range [][]string{{"redisson_lock__channel:{hot}"}, {"redisson_lock__channel:{hot}:1", "fencelock_line:{hot}:x"}, {"fencelock_line:{a}:x"}} {
		sub := s.direct(s.nodes[i]).Subscribe(t.Context(), channels...)
		s.Cleanup(func() { _ = sub.Close() })
		for range channels {
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	met := make(map[*redistest.Server]int)
	for range 60 {
		met[s.node()]++
	}
	if len(met) != 3 || met[home] <= 30 {
		t.Errorf("of 60 faults %d meet the home, and the others %v", met[home], met)
	}
}
