// Package rlocktest is for tests of code that takes locks of rlock and fenced: does the code notice that it has lost its lock, does its
// storage refuse what comes too late, do its locks come in one order? It needs no Redis, and opens a port for [Server.Addr] alone.
//
//	func TestDeposit(t *testing.T) {
//		s := rlocktest.New(t)
//		lock := fenced.NewLock(s.Client(), "account:42")
//		held, err := lock.Lock(t.Context())
//		if err != nil {
//			t.Fatal(err)
//		}
//		s.Steal("account:42") // somebody else has the lock now
//		if err := lock.Unlock(held); !errors.Is(err, rlock.ErrLost) {
//			t.Errorf("got %v", err)
//		}
//	}
//
// [Server.Client] is one process of yours, [Server.Hold] somebody else's. [Server.Steal], [Server.Expire] and [Server.Forget] take locks
// away; [Server.HoldSlots] and [SlotName] are for semaphores, [AsReader] and [AsWriter] for read-write locks; [Server.Pause], [Server.Refuse], [Server.Stop] and [Server.Kill] are faults of servers and networks. [AtEachStep] runs a piece of
// code again and again, with its lock stolen before each of its steps.
//
// A Server works in a testing/synctest bubble, where leases end by the clock of the bubble, and outside of one. In a bubble a test of
// a lease of 30 s takes no time. Make the Server in the bubble then. When the test ends the Server fails it where a lock is still held, or
// waited for, where locks were taken in two orders, so that two holders can wait for each other, and where a context has ended that a
// lock was taken with, before its Unlock.
//
// The server is a miniredis, which is no Redis: it has no persistence, no replicas, no cluster and no access control lists, and
// package quorum takes no lock on it. Nothing in a program imports this package, other than its tests.
package rlocktest
