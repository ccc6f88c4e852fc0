package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// NoError requires that err is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got the error %v, want none", err)
	}
}

// IsError requires that err is each of the targets, as errors.Is has it.
func IsError(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("got the error %v, want %v", err, target)
		}
	}
}

// IsNotError requires that err is none of the targets, as errors.Is has it. An err of nil is none of them.
func IsNotError(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Fatalf("got the error %v, want one that is not %v", err, target)
		}
	}
}

// ErrorSays requires an error whose text has each of the words.
func ErrorSays(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("got the error %v, want one that says %q", err, w)
		}
	}
}

// A Reply is an error that go-redis takes for an error reply of Redis.
type Reply string

// Error implements error.
func (r Reply) Error() string { return string(r) }

// RedisError implements redis.Error.
func (Reply) RedisError() {}

// NoToken is what an acquire of a fenced lock returns, without the token.
func NoToken(held context.Context, _ int64, err error) (context.Context, error) { return held, err }
