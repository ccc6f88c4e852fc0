package scripts

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// ErrGone tells of a renewal that found the hold gone.
var ErrGone = errors.New("the hold is gone from Redis")

// errReply tells of a reply that none of the scripts gives: something that is not Redis, or not these scripts.
var errReply = errors.New("scripts: unexpected reply")

// replyError is an error reply inside a reply.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks it as go-redis marks its own.
func (replyError) RedisError() {}

func parseAnswer(reply any) (Answer, error) {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return Answer{}, fmt.Errorf("%w: %v", errReply, reply)
	}
	verdict, err := integer(pair[0])
	if err != nil {
		return Answer{}, err
	}
	value, err := integer(pair[1])
	if err != nil {
		return Answer{}, err
	}
	switch verdict {
	case 1:
		return Answer{Held: true, Token: value}, nil
	case 0:
		return Answer{TTL: ttl(value)}, nil
	case -2:
		return Answer{}, nil
	}
	return Answer{}, fmt.Errorf("%w: %v", errReply, reply)
}

func parseReleased(reply any) (bool, error) {
	n, err := integer(reply)
	if err != nil || n < 0 || n > 1 {
		return false, fmt.Errorf("%w: %v", errReply, reply)
	}
	return n == 1, nil
}

func parseState(reply any) (State, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != 4 {
		return State{}, fmt.Errorf("%w: %v", errReply, reply)
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = integer(list[i]); err != nil {
			return State{}, err
		}
	}
	field, ok := list[3].(string)
	if !ok {
		return State{}, fmt.Errorf("%w: %v", errReply, reply)
	}
	return State{Locked: n[0] == 1, Count: int(n[1]), TTL: ttl(n[2]), Field: field}, nil
}

func parseRenewed(reply any, holds []Renewal) error {
	list, ok := reply.([]any)
	if !ok {
		return fmt.Errorf("%w: %v", errReply, reply)
	}
	for _, entry := range list {
		pair, ok := entry.([]any)
		if !ok || len(pair) != 2 {
			return fmt.Errorf("%w: %v", errReply, reply)
		}
		i, err := integer(pair[0])
		why, ok := pair[1].(string)
		if err != nil || !ok || i < 1 || i > int64(len(holds)) {
			return fmt.Errorf("%w: %v", errReply, reply)
		}
		hold := &holds[i-1]
		if why == "" {
			hold.Err = ErrGone
		} else {
			hold.Err = explain(hold.Keys, replyError(why))
		}
	}
	return nil
}

// integer reads a number that Redis sends as an integer, or, as the value of a key, as a string.
func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: %v is not an integer", errReply, v)
}

// ttl reads a PTTL reply.
func ttl(ms int64) time.Duration {
	if ms < 0 {
		return time.Duration(ms)
	}
	return time.Duration(min(ms, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}
