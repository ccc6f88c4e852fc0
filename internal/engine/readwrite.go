package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A read-write lock is two Locks, its sides. Any number of holds read at a time, or one writes.

// ErrUpgrade is the error of a call that would write within a hold of its own holder that reads: it
// would wait for itself.
var ErrUpgrade = errors.New("this holder reads, and would wait for itself to write: unlock the read lock first, or take the write lock in the first place")

// NewReadWrite returns both sides of the read-write lock of this name. It asks no one.
func NewReadWrite(client *Client, name string, options LockOptions) (read, write *Lock) {
	of := func(s scripts.Side) *Lock {
		return newLock(client, holder.Lock{Client: client, Name: name, Side: byte(s)}, side(s), scripts.ReadWriteOf(name, s), options)
	}
	read, write = of(scripts.Reads), of(scripts.Writes)
	read.within = &write.id
	return read, write
}

// side is the kind of one side of a read-write lock.
type side scripts.Side

func (side) refuses(l *Lock) error {
	if l.client.limits.several() {
		return errors.New("a read-write lock needs one Redis, Sentinel or a cluster: a quorum has none; make it with a client of package rlock")
	}
	return plain{}.refuses(l)
}

func (side) shared() bool     { return true }
func (s side) together() bool { return scripts.Side(s) == scripts.Reads }

// the levels are the client's own (P52)
func (side) counts() bool                               { return false }
func (side) field(c *Client, keys *scripts.Keys) string { return c.newSharedField(keys) }

func (side) take(w *waiter, h *hold, _ int) *holder.Lock {
	h.lockState = w.ownState()
	return &w.id
}

func (side) look(bound context.Context, l *Lock, field string) (scripts.State, error) {
	both, err := l.client.readWrites.InspectReadWrite(bound, l.keys, field)
	return both.State, err
}

// Reads tells whether the lock is the side of a read-write lock that reads.
func (l *Lock) Reads() bool { return l.kind == side(scripts.Reads) }

// checkBeside refuses another side, or another kind of lock, of the same name in one All.
func (l *Lock) checkBeside(before *Lock) error {
	switch {
	case before.kind == l.kind:
		return nil
	case before.keys.Side() != scripts.NoSide && l.keys.Side() != scripts.NoSide:
		return fmt.Errorf("both sides of the read-write lock %q: take the write side alone, within which its holder reads too", l.id.Name)
	}
	return fmt.Errorf("a plain lock and a read-write lock are called %q: they are one key, which is of one kind; give one of them another name", l.id.Name)
}

// levelOf returns the nearest level of the lock on ctx's chain, or nil. A level that reads within a
// hold that writes is one of that hold.
func (l *Lock) levelOf(ctx context.Context) *holder.Level {
	lv := holder.LevelOf(ctx, &l.id)
	if lv == nil && l.within != nil {
		lv = holder.LevelOf(ctx, l.within)
	}
	return lv
}

// sideOf is the side of a read-write lock by which the level was taken; NoSide of another lock. A
// level that reads may be one of a hold that writes.
func sideOf(lv *holder.Level) scripts.Side {
	if lv.OtherSide {
		return scripts.Reads
	}
	return holdOfLevel(lv).lock.keys.Side()
}

// mayEnter is ErrUpgrade where the holder reads, and is to write (P52).
func (s side) mayEnter(l *Lock, who *holder.Holder) error {
	if scripts.Side(s) != scripts.Writes || who.Find(&l.id) != nil {
		return nil
	}
	reads := l.id
	reads.Side = byte(scripts.Reads)
	reading := who.Find(&reads)
	if reading == nil {
		return nil
	}
	if err := reading.Err(); err != nil {
		return err
	}
	return ErrUpgrade
}

// mayReenter tells whether the call gets a level of its holder's hold: it is nested in that, or
// that one reads.
func (w *waiter) mayReenter(own *hold) bool {
	return own.lock.kind.together() || own.ReentryCount(w.under) > 0
}

// readBeside asks once, without the queue, for a call that is to read: all calls of a client may
// read at once, and would have their answers one after the other in the queue. It returns neither a
// level nor an error where the call is to wait in the queue.
func (w *waiter) readBeside() (lv *holder.Level, err error) {
	w.lockState.beginTry(w)
	defer func() { w.lockState.endTry(w, lv) }()
	lv, _, again, err := w.askOnce(true)
	if lv != nil {
		return lv, nil
	}
	switch {
	case w.bound.ctx.Err() != nil:
		return nil, w.gaveUp()
	case err != nil && !again:
		return nil, w.client.withDial(err, w.began)
	}
	return nil, nil
}

// errAskBeside has a call that waits to read leave the queue, and ask beside all others, as one of
// them reads now.
var errAskBeside = errors.New("join those that read")

// reenter opens one level more of the hold. Redis is asked where the lease is to be longer alone
// (P52).
func (side) reenter(w *waiter, h *hold) (*holder.Level, error) {
	if !w.mayReenter(h) {
		return nil, errOvertaken
	}
	if w.options.Fenced && h.Token() == 0 {
		return nil, errors.New("the holder has the lock without a token, by package rlock: take it by package fenced in the first place")
	}
	renewed, _ := h.Renewable()
	lv, err := h.Open(w.under, w.holder, w.request.Lease == 0, 0)
	switch {
	case err == ErrUnlocked && h.lock.kind.together():
		return nil, errOvertaken // by another call of the holder, which has unlocked it
	case err != nil:
		return nil, err
	}
	lv.OtherSide = h.lock.keys.Side() != w.keys.Side()
	if w.way = locktrace.Reentry; w.client.set.Trace != nil {
		w.holdNumber = w.client.tracedHolds.number(h)
	}
	if w.request.Lease == 0 && renewed || h.remaining(time.Now()) >= w.lease {
		// not the lease: with the new level there may be something to renew
		w.client.dog.Extend(&h.Lease, watchdog.Now(), 0)
		return lv, nil
	}
	patience := w.client.set.Patience
	if !w.request.waits() {
		patience = min(patience, onceMore)
	}
	if err := h.extend(w.bound.ctx, lv.Context(w.under, w.holder), lv, w.lease, patience); err != nil {
		_ = unlock(w.ctx, lv)
		return nil, err
	}
	return lv, nil
}

// force releases all holds that it sees, of both sides.
func (side) force(bound context.Context, l *Lock) (freed, again bool, err error) {
	said, _, err := command.Repeat(bound, l.client.set.Patience/3, func(ctx context.Context) (scripts.ReadWriteState, error) {
		return l.client.readWrites.InspectReadWrite(ctx, l.keys, "")
	})
	if err != nil || !said.Locked {
		return false, false, err
	}
	for _, field := range said.Fields {
		seen := said.State
		seen.Field = field
		answer, maybeExecuted, err := command.Repeat(bound, l.client.set.Patience/3, func(ctx context.Context) (scripts.Answer, error) {
			sharded := l.client.bus.Sharded(ctx)
			return l.client.store.Do(ctx, l.client.callingFirst(scripts.Unlock(l.keys, field, sharded), "", scripts.NotTheHolder))
		})
		if err != nil {
			return freed, false, err
		}
		l.client.releaseAnswered(answer, l.keys)
		gone := answer.Held || maybeExecuted || answer.Copies > 0
		freed = freed || gone
		ls := l.stateOfHold(field)
		ls.holdForcedOpen(seen, gone)
		ls.removeUser()
	}
	return freed, !freed, nil
}
