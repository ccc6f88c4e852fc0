package rlock_test

import (
	"context"
	"sync"
	"testing"
)

// section counts who believes to be in the section (Inv1), and sees the tokens grow (Inv2).
type section struct {
	mu     sync.Mutex
	who    map[context.Context]int64
	tokens []int64
	most   int64
}

// enter notes a holder; leave must be called before its Unlock. A token of 0 is none.
func (in *section) enter(t testing.TB, held context.Context, token int64) (leave func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for other, theirs := range in.who {
		if other.Err() == nil && held.Err() == nil {
			t.Errorf("Inv1: token %d has the lock, and token %d is alive", token, theirs)
		}
	}
	if in.who == nil {
		in.who = map[context.Context]int64{}
	}
	in.who[held] = token
	if token != 0 {
		if token <= in.most {
			t.Errorf("Inv2: token %d after %d", token, in.most)
		}
		in.most = token
		in.tokens = append(in.tokens, token)
	}
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.who, held)
	}
}
