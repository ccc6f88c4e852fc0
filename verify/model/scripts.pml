/* The scripts, as Redis runs them: each in one step. h is the hold that a command is about. What each answers goes to
 * the call that waits for it, if it still does. */

inline reply(h, command, verdict) {
	printf("@%d< %d %d\n", h, command, verdict);
	if
	:: hold[HOLDER(h)] == h && asked[HOLDER(h)] == command ->
		answer[HOLDER(h)] = verdict;
		token[HOLDER(h)] = (verdict == YES -> counter : 0)
	:: else
	fi
}

inline arrives(h, command) {
	flying[h] = flying[h] & ~command;
	printf("@%d>R %d\n", h, command)
}

inline take(h) {
	field = h; count = 1; op = 0; counter++;
#ifndef NAIVE_P7
	ttl = LEASE;
#endif
	printf("@R takes the lock\n")
}

inline drop() { field = NONE; count = 0; op = 0; ttl = 0 }

inline acquire(h, command) {
	arrives(h, command);
	if
	:: field == NONE -> take(h); reply(h, command, YES)
	:: field == h -> /* a repeat, at any time */
#ifdef NAIVE_P2_ACQUIRE
		count++; counter++;
#endif
		ttl = LEASE; reply(h, command, YES)
	:: else -> reply(h, command, HELD)
	fi
}

/* Sets the count, if no later change was there before. */
inline setLevel(h, command, n, change) {
	arrives(h, command);
	if
	:: field == h ->
#ifdef NAIVE_P2_ADD
		count = (change == 1 -> count + 1 : count - 1); counter = (change == 1 -> counter + 1 : counter); ttl = LEASE;
#else
		if
		:: op < change ->
			count = n; op = change;
			if :: change == 1 -> counter++; ttl = LEASE :: else fi
		:: else
		fi;
#endif
		reply(h, command, YES)
#ifdef NAIVE_P2_RETAKE
	:: field == NONE && change == 1 -> take(h); reply(h, command, YES)
#endif
	:: else -> reply(h, command, GONE)
	fi
}

/* Passes the lock on. Nobody is told; the old hold's call and the new one's wait for the same answer. */
inline transfer(h) {
	arrives(h, TRANSFER);
	if
	:: field == h || field == from[h] ->
		if
		:: field == h -> ttl = LEASE
		:: else ->
			take(h);
#ifdef NAIVE_TOKEN
			counter--;
#endif
		fi;
		reply(from[h], TRANSFER, YES); reply(h, TRANSFER, YES)
	:: else -> reply(from[h], TRANSFER, GONE); reply(h, TRANSFER, GONE)
	fi;
	from[h] = NONE
}

inline unlock(h, command) {
	arrives(h, command);
	if
#ifdef NAIVE_UNLOCK
	:: field != NONE ->
#else
	:: field == h ->
#endif
		printf("@R releases %d\n", field);
		drop(); tell(); reply(h, command, YES)
	:: else -> reply(h, command, GONE)
	fi;
	if
	:: listed[h] && !(flying[h] & TAKES) -> listed[h] = 0
	:: else
	fi
}

/* The message reaches the clients that are subscribed at this moment. */
inline tell() {
	for (i : 0 .. CLIENTS - 1) { if :: channel[i] == ON -> look[i] = 1 :: else fi }
	i = 0
}

/* The watchdog takes the answer at once: one that comes later confirms less. */
inline renew(h) {
	arrives(h, RENEW);
#ifdef NAIVE_RENEW
	if :: field == NONE -> take(h) :: else fi;
#endif
	if
	:: field == h -> ttl = LEASE;
		if
		:: hold[HOLDER(h)] == h && level[HOLDER(h)] > 0 && left[HOLDER(h)] > 0 && renewed[HOLDER(h)] > left[HOLDER(h)] ->
			left[HOLDER(h)] = renewed[HOLDER(h)]; alone(HOLDER(h))
		:: else
		fi
	:: field != h ->
		if :: hold[HOLDER(h)] == h -> left[HOLDER(h)] = 0 :: else fi
	fi;
	if :: hold[HOLDER(h)] == h -> renewed[HOLDER(h)] = 0 :: else fi
}
