// Package seam is how package fenced reaches the engine in package rlock without rlock showing it to everybody: rlock
// fills New in, fenced calls it. It also names the context keys that both read.
package seam

import (
	"context"
	"time"
)

// New returns the engine of a fenced lock: of what lock, which is a *rlock.Lock, is without tokens.
var New func(lock any, tokens Tokens) Lock

// Tokens says how a lock gives its tokens.
type Tokens struct {
	Stable bool          // a hold keeps its first
	Blocks bool          // several are reserved at once, for handoffs without a round trip
	Floor  bool          // they are at least the server's time in microseconds,
	Expiry time.Duration // and their counter expires so long after the last one; 0: never
}

// Lock is the engine behind a fenced lock.
type Lock interface {
	// Acquire takes the lock.
	Acquire(ctx context.Context, c Call) (context.Context, int64, error)
	// Run runs fn while it holds the lock.
	Run(ctx context.Context, c Call, fn func(context.Context, int64) error) error
	// Token returns the current token of the hold that ctx belongs to.
	Token(ctx context.Context) (int64, error)
}

// A Call is what an acquiring method asks for.
type Call struct {
	Op      string // the method's name, for errors
	Forever bool   // its context alone bounds the wait
	Wait    time.Duration
	Lease   time.Duration // 0: the watchdog's
}

// TokenKey is the context key of the token of the lock with this name. Its value is a func() (int64, bool).
type TokenKey string
