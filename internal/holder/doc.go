// Package holder is who holds locks, and the contexts by which that is seen. It knows no Redis, no script, no client and no queue: package
// engine says when a hold begins, has one level more, or is lost. docs/protocol.md has the rules by number.
//
// # State
//
// A Holder has the holds that are not unlocked. A Hold has the open levels of one lock, its lease, its latest token, and why it is over. A
// Level has one context, which an acquire has returned, and what that was taken with. A context changes nothing of these, but one thing:
// where it finds that the lease has run out, it tells the owner of the lease (watchdog.Owner.Lost), which calls Hold.End.
//
// # Rules that live here
//
//	P4   The clean-up of a dropped context hangs on the Holder. What the watchdog refers to leads to no Holder: a Hold points to it weakly
//	     from Weaken or Renewed on, and Level.parent is a context from below all holds, or a signal.
//	P5   Err of a context looks at the clocks itself, once for all holds that it is nested in.
//	P11  A lease is renewed while an open level was taken without a lease, and the context above that level lives. An Unlock closes its
//	     context's own level (LevelOf), or the newest one (Newest).
//
// # How contexts and levels hang together
//
// The call of Lock with ctx0 has returned A, that with A has returned B, and that with ctx1, which the user has derived from B, has
// returned C.
//
//	contexts                levels                 signals
//
//	ctx0  the user's ───────────────────────────┐  (parent: from ctx0, or the one that NewHolder was called with)
//	  │                                         ▼
//	  A ──────────────────▶ a ────────────▶ signal of a
//	  │                     ▲ outer             │  parent: A ends with this signal, and not before
//	  │                     │                   ▼
//	  B ──────────────────▶ b ────────────▶ signal of b
//	  │                     ▲ outer
//	ctx1  WithCancel(B) ┄┄┄┄│┄┄┄┄┄ link ┄┄┄┄┄┄┄┄┐  ctx1 may end before the signal of b does
//	  │                     │                   ▼
//	  C ──────────────────▶ c ────────────▶ signal of c
//
// outer leads from a level to the nearest one, of any lock, on the chain of the context that it was taken with. below is the Done channel of
// ctx0, the user's context below all holds, and is the same for a, b and c.
//
// A signal is a context of package context, and leads to no holder. It ends when its level does, or with its parent. It is made when
// somebody asks for Done, and at once where it needs a link. It needs one where the user has put a context of their own between two levels:
// ctx1 leads to the holder, so that it cannot be the parent. A link ends the signal of c with ctx1. ctx1 alone refers to the link, and the
// level has a weak pointer to it.
//
// # The order of mutexes
//
// A goroutine that holds a mutex may take those to the right of it, and no others of this package.
//
//	Hold.mu    Level.mu
//	Holder.mu, Level.mu: none
//
// No mutex is held while the owner of a lease is told. The watchdog has its own mutex while it asks for Hold.Renewed: nothing here takes
// that one. Level.mu is held while contexts of the user are asked (Err, Done, Value) or told to end.
package holder
