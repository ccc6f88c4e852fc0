package rlocktest

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// SlotName returns the name of the lock of this slot of a semaphore (fenced.NewSemaphore), such as "{jobs}:3": that of its permit. All that a
// Server does with a lock it does with a slot by this name: [Server.Hold], [Server.Steal], [Server.Expire], [Server.Holder], and the like. [AtEachStep]
// steals that slot's permit.
func SlotName(semaphore string, slot int) string {
	return scripts.PermitsOf(semaphore, 1).SlotName(slot)
}

// AnySlot returns the name that stands for all slots of a semaphore: [Server.WaitForWaiters] and [Server.Waiters] take it for the calls that wait
// for a permit, and [Server.RequireOrder] for those that take one.
func AnySlot(semaphore string) string { return scripts.PermitsOf(semaphore, 1).Lock }

// HoldSlots makes m others take a permit of the semaphore each: those of the lowest slots that are free. So of five permits
// HoldSlots("jobs", 5) leaves none. Where clients hold none, the i-th of the others has slot i.
func (s *Server) HoldSlots(semaphore string, m int, opts ...HoldOption) []*Other {
	s.t.Helper()
	if semaphore == "" {
		s.t.Fatalf("rlocktest: HoldSlots: the semaphore's name is empty: give it one")
	}
	var all []*Other
	for slot := 0; slot < scripts.MostPermits && len(all) < m; slot++ {
		if o, _ := s.take("HoldSlots", SlotName(semaphore, slot), false, opts); o.token != 0 {
			all = append(all, o)
		}
	}
	if m < 1 || len(all) < m {
		s.t.Fatalf("rlocktest: HoldSlots: %d slots: %q has %d free ones", m, semaphore, len(all))
	}
	return all
}

// free releases the lock, whoever has it, and wakes who waits for it. Of the lock of a slot that is who waits for a permit, too.
func (s *Server) free(name string) error {
	if s.hash(name)["mode"] != "" {
		rw := rlock.NewRWLock(s.admin, name)
		_, err := rw.Read().ForceUnlock(context.Background())
		_, why := rw.Write().ForceUnlock(context.Background())
		return errors.Join(err, why)
	}
	if _, err := rlock.NewLock(s.admin, name).ForceUnlock(context.Background()); err != nil {
		return err
	}
	if of, slot, is := scripts.SlotOf(name); is {
		engine.NewSemaphore(engine.ClientOf(s.admin), of, slot+1, engine.LockOptions{}).CallFirst()
	}
	return nil
}
