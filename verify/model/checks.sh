# What .ci/model checks, run by it.

# Nothing is lost to time here: a lease does not run out, a waiter is woken by messages alone, and when all is at rest
# the lock must be free, every call over, and nothing on its way.
four=(CLIENTS=2 HOLDERS=2)
holds still-1 rest "${four[@]}" MISSES=1 DEPTH=1
holds still-2 rest "${four[@]}" QUITS=1 BREAKS=1
holds still-3 rest "${four[@]}" ROUNDS=2 AGAIN=1 RENEWALS=1
holds still-4 rest ROUNDS=2 AGAIN=1 MISSES=2 DEPTH=1
holds still-5 rest CLIENTS=1 HOLDERS=2 ROUNDS=2 AGAIN=1 MISSES=2 QUITS=1

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
