package redisguard

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
)

// parse reads what the script guarded returns.
func (w Writer) parse(reply any) (any, error) {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return nil, fmt.Errorf("%w: %v: %w", errReply, reply, ErrUnknown)
	}
	text, _ := pair[1].(string)
	switch pair[0] {
	case int64(1):
		return reaction(pair[1])
	case int64(0):
		if seen, err := strconv.ParseInt(text, 10, 64); err == nil {
			return nil, &guard.StaleError{Resource: w.resource, Token: w.token, Seen: seen}
		}
	case int64(2):
		known, rest, err := decode(text)
		if err != nil || rest != "" {
			return nil, fmt.Errorf("the operation %q was done before, but its reply was not kept: %w", w.id, errReply)
		}
		return reaction(known)
	}
	return nil, fmt.Errorf("%w: %v: %w", errReply, reply, ErrUnknown)
}

// reaction is a reply as a plain command gives it.
func reaction(reply any) (any, error) {
	if reply == nil {
		return nil, redis.Nil
	}
	return reply, nil
}

// decode reads what encode in guard.lua has written, and returns what comes behind it.
func decode(s string) (reply any, rest string, err error) {
	head, rest, found := strings.Cut(s, ";")
	if !found || head == "" {
		return nil, "", errReply
	}
	if head == "n" {
		return nil, rest, nil
	}
	n, err := strconv.ParseInt(head[1:], 10, 64)
	if err != nil {
		return nil, "", err
	}
	switch {
	case head[0] == 'i':
		return n, rest, nil
	case head[0] == 's' && n >= 0 && n <= int64(len(rest)):
		return rest[:n], rest[n:], nil
	case head[0] == 'a' && n >= 0 && n <= int64(len(rest)):
		list := make([]any, n)
		for i := range list {
			if list[i], rest, err = decode(rest); err != nil {
				return nil, "", err
			}
		}
		return list, rest, nil
	}
	return nil, "", errReply
}
