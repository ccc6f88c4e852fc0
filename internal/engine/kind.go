package engine

import (
	"context"
	"fmt"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// A kind is what locks differ in: a plain lock (below), a semaphore (semaphore.go), and each side
// of a read-write lock (readwrite.go). Locks of one kind have equal values.
type kind interface {
	// refuses is why no lock of this name and client can be of the kind; nil if it can.
	refuses(l *Lock) error

	// shared tells whether several holds may be there at once, as shares of the lock. Each of them
	// has a state of its own then, as if it were the hold of a plain lock; a claim without an
	// answer gets a new field (P43); and a call that does not wait comes behind those in the line
	// (P45).
	shared() bool

	// together tells whether all calls of a client may have the lock at once, where one of them has
	// it.
	together() bool

	// counts tells whether Redis counts the levels of a hold.
	counts() bool

	// field returns a new claim's field.
	field(c *Client, keys *scripts.Keys) string

	// take is for a hold that the call has got, with this slot. It gives a share its own state, of
	// which it counts a user, and returns the identity of the lock that the holder has.
	take(w *waiter, h *hold, slot int) *holder.Lock

	// mayEnter is why the holder may not ask for the lock at all; nil if it may.
	mayEnter(l *Lock, who *holder.Holder) error

	// reenter adds a level to a hold of the caller's own.
	reenter(w *waiter, h *hold) (*holder.Level, error)

	// look asks Redis who has the lock.
	look(bound context.Context, l *Lock, field string) (scripts.State, error)

	// force releases the holds that it sees, and no others. again: they were gone before the
	// release came.
	force(bound context.Context, l *Lock) (freed, again bool, err error)
}

// asksAnew tells whether the field of an attempt without an answer is not used again (P1, P43).
func (l *Lock) asksAnew() bool { return l.client.limits.several() || l.kind.shared() }

// plain is the kind of a lock that one holder has at a time.
type plain struct{}

func (plain) refuses(l *Lock) error {
	if scripts.IsPermits(l.id.Name) {
		return fmt.Errorf("the name %q stands for the slots of a semaphore: take another one, or NewSemaphore", l.id.Name)
	}
	return nil
}

func (plain) shared() bool                                { return false }
func (plain) together() bool                              { return false }
func (plain) counts() bool                                { return true }
func (plain) field(c *Client, _ *scripts.Keys) string     { return c.newField() }
func (plain) take(w *waiter, _ *hold, _ int) *holder.Lock { return &w.id }
func (plain) mayEnter(*Lock, *holder.Holder) error        { return nil }

func (plain) look(bound context.Context, l *Lock, field string) (scripts.State, error) {
	return l.client.store.Inspect(bound, l.keys, field)
}
