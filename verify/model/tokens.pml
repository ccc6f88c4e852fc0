/* The tokens of package quorum, as a model for Spin: three servers of which two decide, and two acquires. What quorum/doc.go
 * says of them under "Tokens" is checked: they are unique, and whoever begins when another acquire is complete gets a
 * larger one.
 *
 * A vote may take a node from another hold at any moment, as if that had been released or its lease were over: so what is
 * said of tokens holds without a word of who has the lock. Any answer may be missing. A node may restart and forget
 * everything, RESTARTS times in all, and then counts again after DELAY ticks; or forget everything while it runs, FLUSHES
 * times. Clocks are SKEW ticks ahead or behind; that of WRONG of the nodes says anything.
 *
 * An acquire takes ROUND ticks at most. AHEAD is what a proposal is ahead of the time where a node has no counter. In the code
 * ROUND is half a lease, DELAY the longest lease and a second, AHEAD a quarter of that.
 *
 * Wrong variants: NAIVE_COUNTERS (no clock), NAIVE_LATEST_CLOCK (the largest of the clocks, not the middle one), NAIVE_YOUNG
 * (a node that has just started counts), NAIVE_NOT_AHEAD (AHEAD is 0), NAIVE_ACCEPT (a node accepts whatever it is told),
 * NAIVE_MINORITY (a token counts when one node has accepted it).
 */
#define ATTEMPTS 2
#define NODES 3
#define MOST 2
#define LAST (DELAY + ROUND) /* the last tick: the first attempt begins at once, before that there is nothing to forget */
#define TICK (ATTEMPTS + 1)      /* so many tokens: in the code a microsecond is shorter than any acquire */
#define FAR 2                    /* so many ticks is a wrong clock behind and ahead of all others */

#define MUST(what, rule) if :: what :: else -> printf(rule); assert(what) fi

byte now = SKEW + FAR;           /* the time, in ticks; no clock shows less than 0 */
byte field[NODES];               /* the attempt that has the lock there, and 1 */
byte counter[NODES] = OLD;     /* 1: the lock was used long ago */
byte young[NODES];               /* it does not count before this tick */
byte skew[NODES];                /* of its clock, and SKEW */
byte restarts = RESTARTS, flushes = FLUSHES, wrong, told, left = ATTEMPTS;
byte until[ATTEMPTS];            /* its round lasts until the end of this tick */
byte done[ATTEMPTS];             /* the token of a complete acquire */

inline forget(n) { field[n] = 0; counter[n] = 0 }
inline grow(n) { if :: young[n] == now -> young[n] = 0 :: else fi }
inline restart(n) { restarts--; forget(n); young[n] = now + DELAY; printf("@N%d restarts empty\n", n) }
inline flush(n) { flushes--; forget(n); printf("@N%d forgets everything\n", n) }

#define HAS_TIME(a) (until[a] == 0 || now < until[a]) /* it gives up before its time is over */
#define OVER (left == 0)
#define KNOWS(n) (!OVER && (field[n] || counter[n])) /* it makes no difference to other nodes */

active proctype world() {
	/* clocks that are right stay as they are; so does which of them are not */
	atomic {
		if :: SKEW > 0 -> skew[0] = 2 * SKEW :: true fi;
		if :: SKEW > 0 -> skew[1] = 2 * SKEW :: true fi;
		if :: SKEW > 0 -> skew[2] = 2 * SKEW :: true fi;
		if :: wrong = 0 :: WRONG == 1 -> wrong = 1 :: WRONG == 1 -> wrong = 2 fi;
		told = 1
	}
end:
	do
	:: d_step { now < SKEW + FAR + LAST && !OVER && HAS_TIME(0) && HAS_TIME(1) -> now++; grow(0); grow(1); grow(2); printf("@T the time is %d\n", now) }
	:: d_step { restarts > 0 && KNOWS(0) -> restart(0) }
	:: d_step { restarts > 0 && KNOWS(1) -> restart(1) }
	:: d_step { restarts > 0 && KNOWS(2) -> restart(2) }
	:: d_step { flushes > 0 && KNOWS(0) -> flush(0) }
	:: d_step { flushes > 0 && KNOWS(1) -> flush(1) }
	:: d_step { flushes > 0 && KNOWS(2) -> flush(2) }
	od
}

#ifdef NAIVE_YOUNG
#define COUNTS(n) true
#else
#define COUNTS(n) (young[n] == 0)
#endif
#ifdef NAIVE_ACCEPT
#define ACCEPTS true
#else
#define ACCEPTS (field[node] == me + 1 && token > counter[node])
#endif
#ifdef NAIVE_MINORITY
#define ENOUGH 1
#else
#define ENOUGH MOST
#endif

/* A node that has another hold, does not count, or does not answer, is left out. Nodes are asked in the order of their
 * numbers: which of them is wrong, or restarts, is open. */
#define MAY_VOTE (node < NODES && COUNTS(node))
#define MAY_ACCEPT (node < NODES && asked[node] && ACCEPTS)
#define IS_WRONG (node >= wrong && node < wrong + WRONG)

inline vote(clock) {
	asked[node] = 1; field[node] = me + 1; yes++; time[node] = clock;
	if :: counter[node] > largest -> largest = counter[node] :: else fi;
	none = none || counter[node] == 0;
	printf("@%d! node %d: yes, counter %d, time %d\n", me, node, counter[node], time[node]);
	node++
}

/* middle is the middle one of the times, where the client's is the third if two nodes have told theirs. */
inline propose(client) {
	if :: yes == 2 -> for (i : 0 .. NODES - 1) { if :: asked[i] == 0 -> time[i] = client :: else fi } :: else fi;
	if
	:: time[0] <= time[1] && time[1] <= time[2] || time[2] <= time[1] && time[1] <= time[0] -> middle = time[1]
	:: time[1] <= time[0] && time[0] <= time[2] || time[2] <= time[0] && time[0] <= time[1] -> middle = time[0]
	:: else -> middle = time[2]
	fi;
#ifdef NAIVE_LATEST_CLOCK
	for (i : 0 .. NODES - 1) { if :: time[i] > middle -> middle = time[i] :: else fi };
#endif
#ifndef NAIVE_NOT_AHEAD
	if :: none -> middle = middle + AHEAD :: else fi;
#endif
	token = largest + 1;
#ifndef NAIVE_COUNTERS
	if :: middle * TICK > token -> token = middle * TICK :: else fi;
#endif
	for (i : 0 .. NODES - 1) { time[i] = 0 };
	i = 0; middle = 0; largest = 0; none = 0; yes = 0; node = 0;
	printf("@%d! proposes %d\n", me, token)
}

active [ATTEMPTS] proctype attempt() {
	byte me = _pid - 1, node, i, least, largest, token, yes, accepted, middle;
	bool none;
	bool asked[NODES]; /* it has voted for this attempt */
	byte time[NODES];  /* that it told */

	d_step { /* who has the smaller number begins first */
		told > me && (me > 0 || now == SKEW + FAR) -> told++; until[me] = now + ROUND;
		for (i : 0 .. ATTEMPTS - 1) { if :: done[i] > least -> least = done[i] :: else fi };
		i = 0;
		printf("@%d! begins\n", me)
	}
	do
	:: d_step { MAY_VOTE && !IS_WRONG -> vote(now + skew[node] - SKEW) }
	:: d_step { MAY_VOTE && IS_WRONG -> vote(1) }
	:: d_step { MAY_VOTE && IS_WRONG -> vote(SKEW + FAR + LAST + SKEW + FAR) }
	:: d_step { node < NODES -> node++ }
	:: yes >= MOST -> break
	:: goto over
	od;
	if
	:: d_step { true -> propose(now - SKEW) }
	:: d_step { SKEW > 0 && yes == 2 -> propose(now + SKEW) }
	fi;
	do
	:: d_step { MAY_ACCEPT && COUNTS(node) -> counter[node] = token; accepted++; printf("@%d! node %d accepts %d\n", me, node, token); node++ }
	:: d_step { MAY_ACCEPT -> counter[node] = token; printf("@%d! node %d accepts %d, its answer does not come\n", me, node, token); node++ }
	:: d_step { node < NODES -> node++ }
	:: accepted >= ENOUGH -> break
	:: goto over
	od;
	skip;
	d_step {
		printf("@%d! has token %d\n", me, token);
		MUST(token > least, "@X tokens grow\n");
		for (i : 0 .. ATTEMPTS - 1) { MUST(done[i] != token, "@X tokens are unique\n") };
		i = 0;
		done[me] = token
	}
over:
	skip;
	d_step { /* what is not looked at again is the same in all states */
		left--; until[me] = 0; least = 0; largest = 0; yes = 0; none = 0; token = 0; accepted = 0; node = 0;
		for (i : 0 .. NODES - 1) {
			asked[i] = 0; time[i] = 0;
			if :: field[i] == me + 1 -> field[i] = 0 :: else fi
		};
		i = 0
	}
}
