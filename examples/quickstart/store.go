package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// checkedStore is the storage's side of fencing: it remembers the largest token that it was shown, and refuses a smaller
// one. A read shows its token too: otherwise an older holder could still write between this one's read and its write.
//
//	KEYS[1]  the account: a hash with the fields balance and token
//	ARGV[1]  token
//	ARGV[2]  the new balance; none to read
//	returns  {1 or 0, the largest token, the balance}
const checkedStore = `
local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
local accept = tonumber(ARGV[1]) >= seen
if accept then
  seen = tonumber(ARGV[1])
  redis.call('HSET', KEYS[1], 'token', seen)
  if ARGV[2] then redis.call('HSET', KEYS[1], 'balance', ARGV[2]) end
end
return {accept and 1 or 0, seen, tonumber(redis.call('HGET', KEYS[1], 'balance') or 0)}`

// uncheckedStore accepts every token.
var uncheckedStore = strings.Replace(checkedStore, "tonumber(ARGV[1]) >= seen", "true", 1)

// errStale is a token that the store refused.
var errStale = errors.New("stale token")

// store is an account in Redis. It could as well be a row in a database: UPDATE ... WHERE token <= ?.
type store struct {
	rdb    *redis.Client
	key    string
	script *redis.Script
}

func newStore(rdb *redis.Client, name, script string) store {
	return store{rdb, storeKey(name), redis.NewScript(script)}
}

func storeKey(name string) string { return name + ":balance" }

// read returns the balance. From then on, older tokens are refused.
func (s store) read(ctx context.Context, token int64) (int64, error) { return s.run(ctx, token) }

// write sets the balance.
func (s store) write(ctx context.Context, token, balance int64) error {
	_, err := s.run(ctx, token, balance)
	return err
}

func (s store) run(ctx context.Context, token int64, args ...any) (balance int64, err error) {
	answer, err := s.script.Run(ctx, s.rdb, []string{s.key}, append([]any{token}, args...)...).Int64Slice()
	switch {
	case err != nil:
		return 0, err
	case answer[0] == 0:
		return 0, fmt.Errorf("%w: %d was shown after %d", errStale, token, answer[1])
	}
	return answer[2], nil
}
