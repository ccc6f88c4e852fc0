/* One lock in Redis, two clients that want it, two holders in each, and a network that delivers late, twice or never.
 * Read scripts.pml first, which is what Redis does; then from here: what must hold, the
 * network, time, a call from Lock to Unlock.
 *
 * A hold is a number that is never used twice (P1): holder + N * round. Each command is one bit of what is on its way
 * for a hold, each repeat of it another bit: so both may arrive, in any order, at any later time. Budgets bound what
 * goes wrong in one run. docs/model.md says what is left out.
 *
 * NAIVE_... are the scripts and habits that the rules replace, by the rule that they break. Each must be refuted. */

/* Given with -D by .ci/model: CLIENTS, HOLDERS in each of them, ROUNDS that one holder may go, one hold after the other;
 * LEASE, and the budgets: AGAIN rounds after the first, of all holders; MISSES, answers that do not come in time; DEPTH
 * re-entries; RENEWALS; QUITS, calls whose wait ends; BREAKS of the connection on which messages come; FREEZES of the server. */
#define N    (CLIENTS * HOLDERS)
#define NONE 255
#define HOLDER(hold) ((hold) % N)
#define CLIENT(who)  ((who) / HOLDERS)

/* Time runs only with TIMED, in ticks, LEASE of them for a lease. Redis's clock may be ahead of the clients' by one: that
 * is what the margin is for. */
#ifdef NAIVE_P6_MARGIN
#define TRUST LEASE
#else
#define TRUST (LEASE - 1)
#endif

/* What is on its way to Redis for a hold. */
#define ACQUIRE    1
#define ACQUIRE2   2
#define TRANSFER   4            /* to this hold, from another one */
#define RAISE      8            /* level, for a re-entry */
#define RAISE2    16
#define LOWER     32            /* level, for an inner unlock */
#define LOWER2    64
#define UNLOCK   128
#define UNLOCK2  256
#define RENEW    512
#define TAKES (ACQUIRE | ACQUIRE2 | TRANSFER)

short flying[N * ROUNDS];
byte from[N * ROUNDS] = NONE;   /* the hold that a transfer takes the lock from */
bit listed[N * ROUNDS];         /* P3: released again and again */

/* Redis: the hash, which has one hold at most, its expiry, and the fencing counter. */
byte field = NONE, count, op, ttl, counter;

/* What a holder knows. */
#define YES     1
#define HELD    2
#define GONE    3
#define REVOKED 4               /* the offer of the hold before, which Redis does not answer */

byte hold[N] = NONE;            /* its call or its hold, from the first command to the last */
short asked[N];                 /* the command that it waits for */
byte answer[N];
byte token[N];                  /* in the answer */
byte sent[N];                   /* what would be left of the lease, if that were answered now */
byte level[N];                  /* open levels; 0 while it does not hold */
byte left[N];                   /* of the lease, before its context ends */
byte renewed[N];                /* of the lease, if the renewal under way is answered now */
bit sure[N];                    /* the latest change of the count was confirmed */

/* What a client knows: its line, and the channel. */
#define OFF   0
#define ASKED 1
#define ON    2
byte leader[CLIENTS] = NONE;
byte waiting[CLIENTS];
byte own[CLIENTS] = NONE;       /* its holder that holds */
bit idle[CLIENTS];              /* the leader sleeps, and may be offered the lock */
bit look[CLIENTS];              /* the leader is to look */
byte channel[CLIENTS];

byte again = AGAIN, misses = MISSES, depth = DEPTH, renewals = RENEWALS, quits = QUITS, breaks = BREAKS, freezes = FREEZES;
bit still;                      /* the server stands still: nothing arrives */
bit runs;                       /* a lease is counted down by a client */
byte finished;
byte i, past;                   /* for loops; 0 otherwise, to be no part of a state */

#if defined(TIMED) && !defined(NAIVE_POLL)
#define POLL || field == NONE
#else
#define POLL
#endif

#define MUST(what, rule) if :: what :: else -> printf(rule); assert(what) fi
#define ALIVE(who) (level[who] > 0 && left[who] > 0)
#define GHOST      (field != NONE && hold[HOLDER(field)] != field)

/* ---- What must hold; and at the end of the file, when all is at rest. */

/* Invariant 1: it is alive, so nobody else is. Only an answer can make somebody alive: it is looked at there. */
inline alone(who) {
	for (i : 0 .. N - 1) {
		MUST(i == who || !ALIVE(i), "@X invariant 1: two holders, and the contexts of both are alive\n")
	}
	i = 0
}

/* Invariant 2: tokens grow in the order in which the lock was taken. They are counted from the latest one that a holder
 * was told, which makes equal what differs by past tokens only. */
inline fenced() {
#ifndef UNFENCED
	MUST(token[me] > 0, "@X invariant 2: the token has not grown\n");
	past = token[me]; counter = counter - past;
	for (i : 0 .. N - 1) {
		token[i] = (token[i] > past -> token[i] - past : 0)
	}
	i = 0; past = 0
#else
	skip
#endif
}

/* Invariant 5: what was sent twice, or arrived late, counts once. */
inline counted() {
	MUST(field != h || !sure[me] || count == level[me], "@X invariant 5: the count in Redis is not the number of open levels\n")
}

#include "scripts.pml"

/* ---- The network: what is on its way for a hold arrives, in any order; and what is sent behind its holder's back. */

#define ARRIVES(command) (flying[h] & command && !still)

proctype network(byte h) {
end:	do
	:: d_step { ARRIVES(ACQUIRE)  -> acquire(h, ACQUIRE) }
	:: d_step { ARRIVES(ACQUIRE2) -> acquire(h, ACQUIRE2) }
	:: d_step { ARRIVES(TRANSFER) -> transfer(h) }
	:: d_step { ARRIVES(RAISE)    -> setLevel(h, RAISE, 2, 1) }
	:: d_step { ARRIVES(RAISE2)   -> setLevel(h, RAISE2, 2, 1) }
	:: d_step { ARRIVES(LOWER)    -> setLevel(h, LOWER, 1, 2) }
	:: d_step { ARRIVES(LOWER2)   -> setLevel(h, LOWER2, 1, 2) }
	:: d_step { ARRIVES(UNLOCK)   -> unlock(h, UNLOCK) }
	:: d_step { ARRIVES(UNLOCK2)  -> unlock(h, UNLOCK2) }
	:: d_step { ARRIVES(RENEW)    -> renew(h) }
	/* P3: until nothing that could take the lock is on its way, and a release after that was confirmed */
	:: d_step { listed[h] && !(flying[h] & UNLOCK) -> flying[h] = flying[h] | UNLOCK; printf("@%d>. %d\n", h, UNLOCK) }
#ifdef NAIVE_P3_HEARD
	/* a lease has passed since the attempt ended, while the server stood still */
	:: d_step { still && listed[h] -> listed[h] = 0; printf("@%d! leaves the list\n", h) }
#endif
	/* the watchdog; no renewal is sent once a release was */
	:: d_step { renewals > 0 && hold[HOLDER(h)] == h && ALIVE(HOLDER(h)) && !(flying[h] & RENEW) ->
		renewals--; flying[h] = flying[h] | RENEW; renewed[HOLDER(h)] = TRUST; runs = 1; printf("@%d>. %d\n", h, RENEW) }
	od
}

#if FREEZES > 0
/* The server stands still, with what was sent in its sockets; and goes on. */
proctype server() {
end:	do
	:: d_step { !still && freezes > 0 -> freezes--; still = 1; printf("@T the server stands still\n") }
	:: d_step { still -> still = 0; printf("@T the server goes on\n") }
	od
}
#endif

/* P10: a connection that comes back subscribes again; each confirmation wakes. */
proctype messages(byte c) {
end:	do
	/* no call's wait ends any more, and no connection: what still could would keep all from being at rest */
	:: d_step { quits + breaks > 0 -> quits = 0; breaks = 0 }
	:: d_step { channel[c] == ASKED -> channel[c] = ON; printf("@C%d subscription confirmed\n", c);
#ifndef NAIVE_P10
		look[c] = 1
#endif
		}
	:: d_step { channel[c] == ON && breaks > 0 -> breaks--; channel[c] = ASKED; printf("@C%d connection lost, subscribes again\n", c) }
	od
}

/* ---- Time. Redis's tick comes before the clients': the other way round would be safe. */

#ifdef TIMED
proctype clock() {
	bit ahead;
end:	do
	:: d_step { !ahead && (ttl > 0 || runs) ->
		ahead = 1; printf("@T a tick of Redis's clock\n");
		if
		:: ttl > 1 -> ttl--
		:: ttl == 1 -> printf("@R expires %d\n", field); drop()
		:: else
		fi }
	:: d_step { ahead ->
		ahead = 0; runs = 0; printf("@T and of the clients'\n");
		for (i : 0 .. N - 1) {
			if :: left[i] > 0 -> left[i]--; if :: left[i] == 0 && level[i] > 0 -> printf("@%d! its context ends: deadline\n", hold[i]) :: else fi :: else fi;
			if :: sent[i] > 0 -> sent[i]-- :: else fi;
			if :: renewed[i] > 0 -> renewed[i]-- :: else fi;
			runs = runs || left[i] > 0 || sent[i] > 0 || renewed[i] > 0
		}
		i = 0 }
	od
}
#endif

/* ---- A holder: its calls, from Lock to Unlock. Each label is a place where it waits, or may be paused. */

#define ME CLIENT(me)

inline ask(command) {
	flying[h] = flying[h] | command; asked[me] = command; answer[me] = 0; token[me] = 0; runs = 1;
	printf("@%d>. %d\n", h, command)
}

inline heard() { asked[me] = 0; answer[me] = 0; token[me] = 0 }

/* No answer in time: what was sent comes late, or never. */
inline miss() {
	misses--;
	if
	:: printf("@%d? %d\n", h, asked[me])
	:: flying[h] & asked[me] -> flying[h] = flying[h] & ~asked[me]; printf("@%d? %d lost\n", h, asked[me])
	fi;
	heard()
}

inline listen() {
#ifdef TIMED
	skip
#else
	if :: channel[ME] == OFF -> channel[ME] = ASKED :: else fi
#endif
}

inline sleep() { heard(); sent[me] = 0; listen(); idle[ME] = 1; printf("@%d! sleeps\n", h) }

inline try() {
	idle[ME] = 0; look[ME] = 0; sent[me] = TRUST;
	if :: doubt -> ask(ACQUIRE2) :: else -> ask(ACQUIRE) fi
}

inline leaveLine() {
	waiting[ME]--; sent[me] = 0;
	if :: leader[ME] == me -> leader[ME] = NONE; idle[ME] = 0 :: else fi;
	if :: waiting[ME] == 0 -> channel[ME] = OFF; look[ME] = 0 :: else fi
}

#ifdef NAIVE_P6_SENT
#define PROMISED TRUST
#else
#define PROMISED sent[me]
#endif

inline begin() {
	level[me] = 1; left[me] = PROMISED; sure[me] = 1; own[ME] = me;
	printf("@%d! holds it\n", h);
#ifdef NAIVE_P7
	flying[h] = flying[h] | RENEW; printf("@%d>. %d\n", h, RENEW);
#endif
	leaveLine(); alone(me); fenced(); counted(); heard()
}

/* P3: what may still take the lock, or has it, is released behind until it cannot matter. */
inline behind() {
#ifdef NAIVE_P3
	flying[h] = flying[h] | UNLOCK; printf("@%d>. %d\n", h, UNLOCK)
#elif defined(NO_LIST)
	skip
#else
	listed[h] = 1; printf("@%d! goes on the list\n", h)
#endif
}

inline over(owes) {
	if :: owes -> behind() :: else fi;
	if
	:: own[ME] == me -> own[ME] = NONE; if :: waiting[ME] > 0 -> look[ME] = 1 :: else fi
	:: else
	fi;
	heard(); level[me] = 0; left[me] = 0; sent[me] = 0; renewed[me] = 0; sure[me] = 0; doubt = 0; heir = 0; hold[me] = NONE;
	if
	:: again > 0 && h / N + 1 < ROUNDS -> again--;
#ifndef NAIVE_P1
		h = h + N;
#endif
		goto start
	:: finished++; goto end
	fi
}

inline giveUp(owes) { printf("@%d! gives up\n", h); leaveLine(); over(owes) }

/* P15: the lock goes to the leader of the own line. */
inline offer() {
	heir = leader[ME]; idle[ME] = 0;
	from[hold[heir]] = h; flying[hold[heir]] = flying[hold[heir]] | TRANSFER;
	asked[heir] = TRANSFER; sent[heir] = TRUST; runs = 1; asked[me] = TRANSFER;
	printf("@%d>. %d %d\n", h, TRANSFER, hold[heir])
}

proctype holder(byte me) {
	byte h = me, heir;
	bit doubt;              /* an attempt to take the lock had no outcome */

start:	atomic { true; hold[me] = h; waiting[ME]++ }
inLine:	atomic {
		if
		:: leader[ME] == NONE -> leader[ME] = me;
			if
			:: own[ME] != NONE -> sleep(); goto asleep /* it was taken from here: its end is soon enough */
			:: else -> try()
			fi
		:: quits > 0 -> quits--; giveUp(0)
		fi }

trying:	atomic {
		if
		:: answer[me] == YES && PROMISED > 0 -> begin(); goto held
		:: answer[me] == YES && PROMISED == 0 -> goto late
		:: answer[me] == HELD -> sleep(); goto asleep
		:: misses > 0 -> miss(); doubt = 1; goto unknown
		:: quits > 0 -> quits--; giveUp(1)
		fi }

late:	atomic {
		doubt = 1; printf("@%d! too late\n", h);
		if
		:: misses > 0 -> misses--; heard()
		:: giveUp(1)
		fi }

unknown: atomic {
		if
		:: !(flying[h] & ACQUIRE2) -> try(); goto trying /* again, with the same number */
		:: giveUp(doubt)
		fi }

asleep:	atomic {
		if
		:: asked[me] == TRANSFER -> goto offered
		:: asked[me] == 0 && look[ME] -> look[ME] = 0;
			if
			:: own[ME] == NONE -> try(); goto trying
			:: else -> goto asleep
			fi
		/* the poll, where no message comes: for a lease that ran out, and for what its own late copy has taken */
		:: asked[me] == 0 && (field == h POLL) -> try(); goto trying
		:: asked[me] == 0 && quits > 0 -> quits--; giveUp(doubt)
		fi }

offered: atomic { /* the lock is on its way from the hold before */
		if
		:: answer[me] == YES && PROMISED > 0 -> begin(); goto held
		:: answer[me] == YES && PROMISED == 0 -> goto late
		:: answer[me] == GONE -> sleep(); goto asleep
		:: answer[me] == REVOKED -> heard(); printf("@%d? %d\n", h, TRANSFER);
#ifndef NAIVE_P15
			doubt = 1;
#endif
			goto unknown
		:: quits > 0 -> quits--; giveUp(1)
		fi }

held:	atomic {
		if
		/* its Unlock says ErrLost; a renewal without an answer may have kept the hold in Redis */
		:: !ALIVE(me) -> over(1)
		:: ALIVE(me) && level[me] == 1 && sure[me] && depth > 0 && !(flying[h] & (RAISE | LOWER)) ->
			depth--; sent[me] = TRUST; ask(RAISE)
		:: ALIVE(me) && level[me] == 2 -> level[me] = 1; sure[me] = 0; ask(LOWER); goto lowering
		:: ALIVE(me) && level[me] == 1 -> level[me] = 0; left[me] = 0; renewed[me] = 0; sure[me] = 0; printf("@%d! unlocks\n", h);
			if /* to the next one in line here, or to anybody: a series is bounded */
			:: idle[ME] && !(flying[hold[leader[ME]]] & TRANSFER) -> offer(); goto passing
			:: ask(UNLOCK); goto freeing
			fi
		fi }

raising: atomic {
		if
		:: answer[me] == YES && ALIVE(me) ->
			printf("@%d! re-entered\n", h); level[me] = 2; sure[me] = 1; fenced(); counted();
			if :: sent[me] > left[me] -> left[me] = sent[me]; alone(me) :: else fi;
			sent[me] = 0; heard(); goto held
		:: answer[me] == GONE || !ALIVE(me) -> over(1)
		:: answer[me] == 0 && misses > 0 && asked[me] == RAISE -> miss(); ask(RAISE2); goto raising
		/* given up: the count is set right behind it, and nobody waits for that */
		:: answer[me] == 0 && misses > 0 -> miss(); sent[me] = 0; sure[me] = 0; flying[h] = flying[h] | LOWER; printf("@%d>. %d\n", h, LOWER); goto held
		fi }

lowering: atomic {
		if
		:: answer[me] == YES -> sure[me] = 1; counted(); heard(); printf("@%d! one level unlocked\n", h); goto held
		:: answer[me] == GONE || !ALIVE(me) -> over(1)
		:: answer[me] == 0 && misses > 0 && asked[me] == LOWER -> miss(); ask(LOWER2); goto lowering
		:: answer[me] == 0 && misses > 0 -> miss(); goto held
		fi }

passing: atomic {
		if
		:: answer[me] == YES -> over(doubt)
		:: answer[me] == GONE -> heard(); ask(UNLOCK)
		:: answer[me] == 0 && misses > 0 -> misses--; heard(); printf("@%d? %d\n", h, TRANSFER);
			if :: hold[heir] != NONE && asked[heir] == TRANSFER -> answer[heir] = REVOKED :: else fi;
			ask(UNLOCK)
		fi }

freeing: atomic {
		if
		:: answer[me] == YES || answer[me] == GONE -> over(doubt)
		:: answer[me] == 0 && misses > 0 && asked[me] == UNLOCK -> miss(); ask(UNLOCK2); goto freeing
		:: answer[me] == 0 && misses > 0 -> miss(); over(1)
		fi }
end:	skip
}

/* ---- When all is at rest: nobody sleeps on a free lock (invariant 8), and no hold is left that nobody has. */

proctype rest() {
end:	atomic { timeout ->
		MUST(field == NONE, "@X all is at rest, and the lock is held by a hold that nobody has\n");
		MUST(finished == N, "@X invariant 8: all is at rest, and a waiter sleeps on a free lock\n") }
}

#ifdef ENDS
/* With time: every hold that nobody has ends. */
ltl ends { [] (GHOST -> <> !GHOST) }
#endif
#ifdef SERVED
/* With time: every call comes to an end, for it is polled where no message comes. */
ltl served { <> (finished == N) }
#endif

init {
	atomic {
		for (i : 0 .. N - 1) { run holder(i) }
		for (i : 0 .. N * ROUNDS - 1) { run network(i) }
		for (i : 0 .. CLIENTS - 1) { run messages(i) }
#ifdef TIMED
		run clock();
#endif
#if FREEZES > 0
		run server();
#endif
		run rest()
	}
}
