// Package room is the core of a client's waiting for one lock, as a state machine: Step takes an
// event and the time, and has a Shell do what is to be done, in order. A room has no context, no
// mutex, no clock and no goroutine, and knows neither Redis nor whoever calls. internal/engine is
// its shell; in the tests the shell is a search, which plays rooms against a model of the scripts.
//
// # Words
//
//	call      an acquiring call that waits; a room has a queue of them
//	claim     the field that takes the lock next for the head of the queue, and on what terms
//	attempt   one command that may take the lock for a claim; a pass is one, too
//	pass      a command by which the client's own hold gives the lock to its next call; a local pass
//	          takes none
//	grant     the answer that gives a claim the lock
//	place     the client's place in the line (package line)
//	look      an attempt for which there is no other reason than the time
//	over      of a hold: it has been unlocked, lost or forced open
//
// # States
//
// They are those of the head of the queue. table_test.go has stories that go through them.
//
//	        a call joins                          Redis gives the lock,
//	        the empty queue                       or an error that does not pass
//	resting ───────────────▶ asking ───────────────────────────────────▶ granted
//	   ▲                     ▲   │                                        ▲   │
//	   │   called, a release │   │ refused, or an error                   │   │
//	   │   was told, time to │   │ that passes                            │   │
//	   │   look, own hold    │   ▼                                        │   │
//	   │   over             watching ── own hold passes the lock ──▶ passing  │
//	   │                     ▲   │      (also from yielding)                  │
//	   │                     │   │ called, while a client listens             │
//	   │                5 ms │   ▼ that is in no line                         │
//	   │              asking ◀── yielding                                     │
//	   │                                                                      │
//	   └── the last call leaves ◀──────────── the head leaves ◀───────────────┘
//	                                          with its outcome; the next leads
//
// In these states:
//
//   - resting: nothing is under way. A room without calls rests.
//   - watching: the head waits for a message, or for its own look when it is due. While the client's
//     own hold has the lock, messages wait too.
//   - yielding: the client was called, and leaves the lock to outsiders for 5 ms (P27).
//   - asking: an attempt is under way. Its answer is of no use from due on.
//   - passing: the own hold passes the lock on. It ends as asking does, or at once where Unlock has
//     waited long enough (P15).
//   - granted: the head has its outcome, and is about to leave. By a local pass it has the own hold
//     itself: Redis is not told. Where it leaves without that, the hold is abandoned.
//
// Where the head leaves during an attempt, a next call on the same terms waits for that answer. The
// room takes back an attempt older than 100 ms, and asks anew with the same claim. A claim that the
// next call does not ask for is abandoned, and so is each claim of a kind that asks once.
//
// # What holds after each Step
//
//   - One attempt at most is waited for. Of the answers to others the room heeds that to a pass, for
//     which an Unlock waits, and to one in the line, for what became of its ticket.
//   - Where somebody waits, Due is set or the head is granted: no room sleeps for ever.
//   - A claim ends in one of two ways: by Grant and then Left with its field, or by Abandon.
//   - A ticket ends in an attempt that takes the lock, or in LeaveLine.
//   - Each Unlocking is followed by one Passed or Release for its hold.
package room
