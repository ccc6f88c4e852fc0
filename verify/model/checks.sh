# What .ci/model checks, run by it.

# Nothing is lost to time here: a lease does not run out, a waiter is woken by messages alone, and when all is at rest
# the lock must be free, every call over, and nothing on its way.
four=(CLIENTS=2 HOLDERS=2)
holds still-1 rest "${four[@]}" MISSES=1 DEPTH=1
holds still-2 rest "${four[@]}" QUITS=1 BREAKS=1
holds still-3 rest "${four[@]}" ROUNDS=2 AGAIN=1 RENEWALS=1
holds still-4 rest ROUNDS=2 AGAIN=1 MISSES=2 DEPTH=1
holds still-5 rest CLIENTS=1 HOLDERS=2 ROUNDS=2 AGAIN=1 MISSES=2 QUITS=1
holds still-6 rest MISSES=2 QUITS=1 FREEZES=1
holds still-7 rest CLIENTS=1 HOLDERS=2 MISSES=2 QUITS=1 FREEZES=1

# With time. A renewal or a re-entry can extend a lease of three ticks only: one of two is trusted for one.
holds timed-1 time "${four[@]}" TIMED
holds timed-2 time TIMED ROUNDS=2 AGAIN=1 MISSES=1
holds timed-3 time TIMED LEASE=3 DEPTH=1 RENEWALS=1
holds timed-4 time TIMED LEASE=3 MISSES=1 RENEWALS=1
holds timed-5 time TIMED LEASE=3 MISSES=1 DEPTH=1
holds timed-6 time CLIENTS=1 HOLDERS=2 TIMED LEASE=3 MISSES=1 DEPTH=1

# Every hold that nobody has ends, even if nothing is released behind; and every call comes to an end.
holds ends-1 ends TIMED LEASE=3 NO_LIST MISSES=1 RENEWALS=1
holds ends-2 ends CLIENTS=1 HOLDERS=2 TIMED NO_LIST MISSES=1
holds served-1 served TIMED MISSES=1
holds served-2 served CLIENTS=1 HOLDERS=2 TIMED MISSES=1

refuted NAIVE_P1 "invariant 2" "A number for the holder, used for each of its holds, as a thread's id is: an acquire is taken for a repeat of the one before." ROUNDS=2 AGAIN=1 MISSES=1
refuted NAIVE_P1 "invariant 1" "The same on a lock without tokens: a release that was late meets the next hold of the same number." UNFENCED ROUNDS=2 AGAIN=1 MISSES=1
refuted NAIVE_P2_ACQUIRE "invariant 5" "An acquire that finds its own field increments it: its repeat is counted as a re-entry." MISSES=1
refuted NAIVE_P2_ADD "invariant 5" "Levels are added and subtracted, without a number of the change." MISSES=1 DEPTH=1
refuted NAIVE_P2_RETAKE "all is at rest, and the lock is held" "A re-entry that finds the lock free takes it: its late copy does, after the last unlock." MISSES=1 DEPTH=1
refuted NAIVE_P3 "all is at rest, and the lock is held" "What got no answer is released once: the release may arrive first." MISSES=1
refuted NAIVE_P3_HEARD "all is at rest, and the lock is held" "What got no answer is released for a lease, which passes while the server stands still with the acquire and the release in its sockets." MISSES=1 FREEZES=1
refuted NAIVE_P6_SENT "invariant 1" "The lease is counted from the answer, not from before the command was sent." TIMED
refuted NAIVE_P6_MARGIN "invariant 1" "The deadline has no margin, and Redis's clock is a little faster." TIMED
refuted NAIVE_P7 "all is at rest, and the lock is held" "The expiry is set by a command of its own, after the answer to the first." TIMED NO_LIST MISSES=1
refuted NAIVE_P10 "invariant 8" "The confirmation of a subscription wakes nobody: a release between the try and the confirmation is not heard."
refuted NAIVE_P15 "all is at rest, and the lock is held" "After a transfer without an answer only the old hold is released behind, not the one that was to get the lock." CLIENTS=1 HOLDERS=2 MISSES=1
refuted NAIVE_TOKEN "invariant 2" "A transfer takes no token." CLIENTS=1 HOLDERS=2
refuted NAIVE_UNLOCK "invariant 1" "An unlock deletes the lock without a look at whose it is." ROUNDS=2 AGAIN=1 MISSES=1
refuted NAIVE_RENEW "all is at rest, and the lock is held" "A renewal sets the field where it is gone (invariant 10)." RENEWALS=1

# The two properties of runs that never end can fail, too. These have no picture.
loops NAIVE_P7 ends "As above." TIMED NO_LIST MISSES=1
loops NAIVE_POLL served "A waiter that only listens: no message comes for a lease that ran out." TIMED MISSES=1

# The tokens of a quorum. DELAY exceeds AHEAD, ROUND and twice SKEW together, and AHEAD exceeds twice SKEW where a node may
# forget while it runs.
holds tokens-1 tokens MODEL=tokens RESTARTS=3
holds tokens-2 tokens MODEL=tokens RESTARTS=1 WRONG=1
holds tokens-3 tokens MODEL=tokens RESTARTS=1 SKEW=1 DELAY=4
holds tokens-4 tokens MODEL=tokens RESTARTS=1 ROUND=1 DELAY=3
holds tokens-5 tokens MODEL=tokens WRONG=3
holds tokens-6 tokens MODEL=tokens FLUSHES=1 OLD=1
holds tokens-7 tokens MODEL=tokens FLUSHES=1 OLD=1 SKEW=1 DELAY=1 AHEAD=3
refuted NAIVE_COUNTERS "tokens grow" "Tokens of a quorum by the counters alone: the one node that both majorities share has forgotten." MODEL=tokens RESTARTS=1
refuted NAIVE_LATEST_CLOCK "tokens grow" "The largest clock, not the middle one: it was wrong when the first token was taken." MODEL=tokens RESTARTS=1 WRONG=1
refuted NAIVE_YOUNG "tokens are unique" "A node that has just started counts." MODEL=tokens RESTARTS=1
refuted NAIVE_NOT_AHEAD "tokens are unique" "A node forgot while it ran, and no token is ahead of the time: the next one is the time again." MODEL=tokens FLUSHES=1 OLD=1
refuted NAIVE_ACCEPT "tokens are unique" "A node accepts whatever it is told, also from a hold that it has not got." MODEL=tokens
refuted NAIVE_MINORITY "tokens are unique" "A token counts when one node has accepted it." MODEL=tokens

# The line of clients. By messages alone; then with the timers of 20 and 100 ms; then with leases and the long looks.
holds line-1 line MODEL=line ROUNDS=2 AGAIN=1 QUITS=1
holds line-2 line MODEL=line ROUNDS=2 AGAIN=1 MISSES=1
holds line-3 line MODEL=line MISSES=2 QUITS=1
holds line-4 line MODEL=line BARGES=1 QUITS=1
holds line-5 line MODEL=line DEATHS=1 ALONE
holds line-6 line MODEL=line CLIENTS=3 QUITS=2 OUTSIDERS
holds line-7 line MODEL=line BREAKS=2
holds line-8 line MODEL=line BREAKS=1 MISSES=1
holds line-9 line MODEL=line CLIENTS=3 BREAKS=1
holds line-10 line MODEL=line CLIENTS=3 TIMERS=1 DEATHS=1
holds line-11 line MODEL=line TIMERS=1 DEATHS=1 QUITS=1
holds line-12 line MODEL=line TIMERS=1 DEATHS=1 BREAKS=1
holds line-13 line MODEL=line TIMERS=1 BREAKS=1 QUITS=1
holds line-14 line MODEL=line TIMERS=1 FREEZES=1 QUITS=1
holds line-15 line MODEL=line TIMERS=1 FREEZES=1 MISSES=1
holds line-16 line MODEL=line TIMERS=1 LOST=1
holds line-17 line MODEL=line TIMERS=1 BARGES=1 REDISSON
holds line-18 line MODEL=line TIMERS=1 BREAKS=1 REDISSON
holds line-19 line MODEL=line TIMERS=1 QUITS=1 REDISSON ANSWERED
holds line-20 line MODEL=line CLIENTS=3 TIMERS=2 LOST=1
holds line-21 line MODEL=line TIMERS=2 LOST=1 DEATHS=1 SILENT=1 REDISSON
holds line-22 line MODEL=line TIMERS=2 DEATHS=1 QUITS=1 MISSES=1
holds line-23 line MODEL=line TIMERS=2 DEATHS=1 QUITS=1 REDISSON
holds line-24 line MODEL=line TIMERS=2 SILENT=1 BREAKS=2
holds line-25 line MODEL=line TIMERS=2 LOST=1 BREAKS=1 QUITS=1 OUTSIDERS
holds line-30 line MODEL=line QUITS=2 MISSES=1 OUTSIDERS
holds line-26 served MODEL=line QUITS=1
holds line-27 served MODEL=line BREAKS=1
holds line-28 served MODEL=line TIMERS=1 FREEZES=1 QUITS=1
holds line-29 served MODEL=line TIMERS=2 DEATHS=1 QUITS=1 REDISSON

# Read-write locks and semaphores: what the line is where a lock is open to several.
holds kinds-1 line MODEL=line CLIENTS=3 READERS=3 QUITS=1
holds kinds-2 line MODEL=line CLIENTS=3 READERS=3 DEATHS=1 QUITS=1 HOLDING
holds kinds-3 line MODEL=line CLIENTS=3 READERS=1
holds kinds-4 line MODEL=line READERS=1 ROUNDS=2 AGAIN=1 QUITS=1
holds kinds-5 line MODEL=line READERS=1 TIMERS=1 BREAKS=1 QUITS=1
holds kinds-6 line MODEL=line READERS=1 TIMERS=1 QUITS=1 REDISSON ANSWERED
holds kinds-7 line MODEL=line READERS=3 TIMERS=1 DEATHS=1 QUITS=1
holds kinds-8 line MODEL=line READERS=2 TIMERS=2 LOST=1 BREAKS=1 QUITS=1 OUTSIDERS
holds kinds-9 line MODEL=line READERS=1 TIMERS=2 SILENT=1 BREAKS=1 QUITS=1
holds kinds-10 line MODEL=line CLIENTS=3 PERMITS=2 QUITS=1
holds kinds-11 line MODEL=line CLIENTS=3 PERMITS=2 DEATHS=1 QUITS=1 HOLDING
holds kinds-12 line MODEL=line PERMITS=2 TIMERS=2 DEATHS=1 QUITS=1
holds kinds-13 served MODEL=line READERS=1 QUITS=1
refuted NAIVE_P44 "invariant 8" "Who takes a permit calls nobody: two slots have come free at once, and one of the two that wait was called." MODEL=line PERMITS=2 DEATHS=1 HOLDING
refuted NAIVE_P49 "invariant 8" "Who takes the lock to read calls nobody: the next one that waits to read sleeps, as long as the first one reads." MODEL=line READERS=3 DEATHS=1 HOLDING
refuted NAIVE_P49_LEAVE "invariant 8" "Who leaves the line calls the next one only where the lock is free: who waits to read sleeps behind a writer that has gone." MODEL=line CLIENTS=3 READERS=3 DEATHS=1 QUITS=1 HOLDING
refuted NAIVE_P18 "a client that lives" "A client has one ticket, for each of its stays in the line: a late leave takes out the next one." MODEL=line ROUNDS=2 AGAIN=1 QUITS=1
refuted NAIVE_P19 "invariant 8" "A client that is called for a ticket that it has not got does nothing: an acquire that came after its leave has entered." MODEL=line QUITS=1
refuted NAIVE_P20 "a client that lives" "A client enters as soon as it has asked for its channel." MODEL=line
refuted NAIVE_P22 "invariant 8" "Who comes back to its old place enters after the heads are read, and the second calls nobody: each of the two is told that it is the other one's turn." MODEL=line BREAKS=1
refuted NAIVE_P23 "invariant 8" "The second is not told that the first is called, which has died." MODEL=line TIMERS=1 DEATHS=1
refuted NAIVE_P24 "a client that lives" "Who finds the lock free takes out the first one at once." MODEL=line TIMERS=1
refuted NAIVE_P24_SECOND "a client that lives" "The second calls nobody: it comes back to a lock whose key was deleted, and is told who is the first one, which it takes out later." MODEL=line TIMERS=2 SILENT=1 BREAKS=1
refuted NAIVE_P25 "invariant 8" "The first one does not listen on the lock's own channel: a Redisson client calls nobody." MODEL=line TIMERS=1 REDISSON
refuted NAIVE_P28 "invariant 8" "A newcomer does not call the only other client in the line of a free lock, which has died." MODEL=line DEATHS=1 ALONE
refuted NAIVE_P31 "invariant 8" "A leave tells nobody while the lock is held: the next one does not know that it is the first, and listens to no Redisson client." MODEL=line TIMERS=1 QUITS=1 REDISSON ANSWERED
refuted NAIVE_P32 "invariant 8" "Clients do not look by themselves, and the lock's key is deleted." MODEL=line TIMERS=2 SILENT=1
refuted NAIVE_P35 "invariant 8" "A release gets no answer, and the next call of its client waits to be called: the release that entered it was lost." MODEL=line ROUNDS=2 AGAIN=1 MISSES=1
refuted NAIVE_P36 "invariant 8" "Who enters the line does not mark the hold that has the lock: its release does not look at the line." MODEL=line
refuted NAIVE_P37 "invariant 8" "A release was for the line alone, and all clients in it leave: the last one tells nobody." MODEL=line QUITS=2 OUTSIDERS
