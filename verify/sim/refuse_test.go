package main

import (
	"strings"
	"testing"
)

// A server refuses what Redis 7 refuses.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		of       []*refusal
		commands string // those with a ! are refused
	}{
		{nil, "EVALSHA HSET HDEL PING"},
		{[]*refusal{isReplica}, "PING SUBSCRIBE EVALSHA EXISTS HDEL! HSET! PUBLISH PEXPIRE! ZREM!"},
		{[]*refusal{isFull}, "EVALSHA EXISTS HSET! ZADD! HDEL HSET ZADD EVALSHA HSET! EVAL PUBLISH HINCRBY! PEXPIRE HINCRBY SUBSCRIBE"},
		{[]*refusal{isLoading}, "EVAL! EVALSHA! PING! HDEL! SUBSCRIBE UNSUBSCRIBE PUBLISH INFO TIME HELLO SCRIPT"},
		{[]*refusal{isBusy}, "EVAL! EVALSHA! PING! HDEL! SUBSCRIBE! UNSUBSCRIBE! PUBLISH! INFO! TIME! HELLO SCRIPT"},
		{[]*refusal{isFull, isReplica}, "EVALSHA HDEL! HSET! EXISTS"},
		{[]*refusal{isReplica, isReplica}, "EVALSHA HDEL!"},
	} {
		s := &server{refusing: c.of}
		for i, cmd := range strings.Fields(c.commands) {
			name, refused := strings.CutSuffix(cmd, "!")
			if got := s.refusedBy(name); (got != nil) != refused {
				t.Errorf("%s: command %d, %s: %v", c.commands, i, name, got)
			}
		}
	}
}
