package engine

import (
	"context"
	"testing"

	"github.com/fencelock/fencelock/scripts"
)

// BenchmarkFreeAcquire is a lock and an unlock on a store that answers at once: what the client
// alone costs.
func BenchmarkFreeAcquire(b *testing.B) {
	c, store := newFakeClient(b, &fakeBus{live: true}, Limits{})
	store.onSend(nil)
	l := NewLock(c, "l", LockOptions{})
	fast := &fastStore{fakeStore: store}
	c.store, c.commands.Store = fast, fast
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		held, _, err := l.Acquire(ctx, Request{Forever: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(held); err != nil {
			b.Fatal(err)
		}
	}
}

// A fastStore answers at once that the lock is held.
type fastStore struct{ *fakeStore }

func (*fastStore) Send(_ *scripts.Op, caller scripts.Caller) {
	caller.Sending(nil)
	caller.Answered(scripts.Answer{Held: true}, nil)
}
