package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// The permits of a semaphore. An acquire has the lock of the slot that it got, and without one the name that stands for all slots. So the rules of locks
// are about each slot, but for who waits: that is everybody who asks for a permit.

const (
	semaphoreName = "jobs"
	slotBase      = "{" + semaphoreName + "}:"
	anySlot       = slotBase + "*"
	permits       = 5
	// permitProcesses want permits alone: with those that want locks, too, there are more than seven clients for each permit.
	permitProcesses = 6
	// permitWait is for how long these wait at least, where all calls have one wait: who gives up soon repeats no attempt.
	permitWait = 5 * time.Second
)

// enterPermits starts the processes that want permits alone.
func (s *stage) enterPermits(o orders) {
	o.Locks, o.Clients = []string{anySlot}, clients
	if o.Wait > 0 {
		o.Wait = max(o.Wait, permitWait)
	}
	for range permitProcesses {
		o.Process = len(s.workers)
		s.enter(o)
	}
}

// semaphore is the semaphore, with the tokens of this caller's locks.
func semaphore(client *rlock.Client, opts ...fenced.Option) *fenced.Semaphore {
	return fenced.NewSemaphore(client, semaphoreName, permits, opts...)
}

// takePermit takes any permit, whose hold is one of the lock of its slot.
func (p *possession) takePermit(wait, lease time.Duration, opts []fenced.Option) error {
	permit, err := semaphore(p.client.(*rlock.Client), opts...).Acquire(context.Background(), rlock.Wait(wait), rlock.Lease(lease))
	if err != nil {
		return err
	}
	p.lock, p.held, p.token, p.unlock = p.locks(permit.Name(), opts...), permit.Context(), permit.Token(), permit.Unlock
	return nil
}

// permitRules requires that no slot is free for longer than the bound while somebody waits for a permit, that there are no other slots, and where
// Redis keeps its data that no more permits were alive at once than there are. An attempt without an answer may have taken another slot than
// the one that its call got at last: what is owed is owed of all slots, when the faults are over.
func (t trial) permitRules(locks map[string][]op, bound, owed time.Duration) (found []violation, gaps []time.Duration) {
	var all []op
	for lock, ops := range locks {
		if number, is := strings.CutPrefix(lock, slotBase); is {
			all = append(all, ops...)
			if slot, err := strconv.Atoi(number); lock != anySlot && (err != nil || slot < 0 || slot >= permits) {
				found = append(found, violation{rulePermits, lock, fmt.Sprintf("of %d permits: %v", permits, ops[0])})
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if n := atOnce(all); t.promise.exclusive && n > permits {
		found = append(found, violation{rulePermits, anySlot, fmt.Sprintf("%d of %d permits were alive at once", n, permits)})
	}
	for slot := range permits {
		name := slotBase + strconv.Itoa(slot)
		ops := slices.Clone(locks[name])
		for _, o := range all {
			if o.Kind != acquire || o.Lock == name {
				continue
			}
			if o.Outcome == done { // of another slot
				o.Outcome = refused
			}
			o.Lock = name
			ops = append(ops, o)
		}
		more, free := woken(ops, t.Calm+int64(owed), t.End, bound, owed, t.Killed)
		found, gaps = append(found, more...), append(gaps, free...)
	}
	return found, gaps
}

// atOnce is how many of the holds were alive at once at most.
func atOnce(ops []op) (most int) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, o := range ops {
		if o.Kind == alive && o.Return > o.Call {
			changes = append(changes, change{o.Call, 1}, change{o.Return, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, c := range changes {
		n += c.by
		most = max(most, n)
	}
	return most
}

// permitsSeen is how many permits there were, and how many at once, for who looks at the rounds; nothing where there were none.
func (t trial) permitsSeen() string {
	of := slices.DeleteFunc(slices.Clone(t.Ops), func(o op) bool { return !strings.HasPrefix(o.Lock, slotBase) })
	n := 0
	for _, o := range of {
		if o.Kind == acquire && o.Outcome == done {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d permits, %d at once", n, atOnce(of))
}
