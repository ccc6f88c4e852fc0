/* The line of the clients that wait for a lock (rules P18 to P37): each of CLIENTS calls Lock once, or more often
 * with AGAIN, while somebody outside has the lock at first. Read the scripts first, as Redis runs them (wait.lua,
 * release.lua, leave.lua); then the network, a client, and what must hold when all is at rest.
 *
 * A hold is a number that is never used twice (P1), client + CLIENTS * round, and so is the ticket of its call's stay
 * in the line. A command is on its way until it arrives, which may be long after its client has stopped waiting for
 * it. So is a message. Budgets bound what goes wrong in one run. docs/model.md says what is left out.
 *
 * TIMERS says which clocks run: 0 none, so that messages alone must do; 1 those of 20 and 100 ms; 2 the looks of a
 * second and more, and leases. A timer of 100 ms goes off when all that live clients have begun is done: a live
 * client that is called is faster than that, unless it is frozen.
 *
 * NAIVE_... are what the rules replace, by the rule that they break. Each must be refuted. */

/* Given with -D by .ci/model, besides CLIENTS and TIMERS: ROUNDS that one client may go, one call after the other,
 * and the budgets: AGAIN rounds after the first, of all clients; MISSES, answers that do not come in time; QUITS,
 * calls whose wait ends; BREAKS of a connection on which messages come; LOST messages; DEATHS and FREEZES of clients;
 * BARGES of somebody in no line who takes the free lock. SILENT ends of its holds that nobody is told of. REDISSON:
 * who is outside may release as Redisson does. ANSWERED: no wait ends while an acquire is under way, so that none
 * enters late. ALONE: the client that dies does so before the other one calls; HOLDING: as it has the lock, and waits for nothing. OUTSIDERS: others wait in no line, and
 * sleep until they are told of a release.
 *
 * Kinds of locks. READERS: a read-write lock (P46 to P53), with a bit for each client that reads; the others write. PERMITS: a
 * semaphore of so many permits (P44). An attempt for either is sent once (P43), so MISSES is 0, their releases bring no ticket, and
 * always look at the line. */
#define T        (CLIENTS * ROUNDS)
#define NONE     255
#define OUTSIDE  254
#define OWNER(h) ((h) % CLIENTS)
#ifdef NAIVE_P18
#define TICKET(h) OWNER(h)
#else
#define TICKET(h) (h)
#endif

/* What is on its way to Redis for a hold, or for a ticket. */
#define ACQUIRE     1
#define ACQUIRE2    2           /* again, after no answer */
#define UNLOCK    128
#define UNLOCK2   256           /* behind, see P3 */
#define LEAVE    1024
short flying[T];
byte arg[T], arg2[T];           /* of an acquire: */
#define TICKETED 1              /* it has a ticket, and enters the line */
#define PLACED   2              /* where it was */
#define LOOKS    4              /* nothing was heard for a while */
byte stale[T] = NONE, stale2[T] = NONE; /* the ticket that was called a while ago */
byte enters[T] = NONE;          /* of an unlock: the ticket that enters again */
bit listed[T];                  /* P3: released again and again */
bit quick[T];                   /* of an unlock: it looks at the line only if the hold is marked (P36) */

/* What a lock of this kind is: which holds have it, and whether it is open to a ticket. */
#if defined(READERS) || defined(PERMITS)
#define KINDS
byte has;                       /* a bit for each hold */
byte holds;                     /* how many they are */
bit written;                    /* the one that has it writes */
#define HAS(h)  ((has >> (h)) & 1)
#define FREE    (field == NONE && has == 0)
#else
#define HAS(h)  (field == (h))
#define FREE    (field == NONE)
#endif
#ifdef READERS
#define READS(t) ((READERS >> OWNER(t)) & 1)
#define OPEN(t) (field == NONE && (has == 0 || !written && READS(t)))
#define BESIDE(c, d) (READS(c) && READS(d))
#elif defined(PERMITS)
#define READS(t) false
#define OPEN(t) (field == NONE && holds < PERMITS)
#define BESIDE(c, d) true
#else
#define OPEN(t) FREE
#define BESIDE(c, d) false
#endif

inline take(h) {
#ifdef KINDS
	has = has | (1 << (h)); holds++;
#ifdef READERS
	written = !READS(h);
#endif
#else
	field = h;
#endif
	marked = 0
}

inline drop(h) {
#ifdef KINDS
	has = has & ~(1 << (h)); holds--; written = 0;
#else
	field = NONE;
#endif
	skip
}

/* Redis: who has the lock, whether somebody has entered the line behind that hold, and the line. A ticket that is absent is
 * not in the line: it keeps the place for when its client comes back after its connection was away (P22). */
byte field = OUTSIDE, line[T], length;
bit marked;
bit absent[T];
#ifdef OUTSIDERS
bit awake;                      /* who waits in no line was told since the lock was taken */
#define WAKE(b) awake = b
#else
#define WAKE(b) skip
#endif

/* Messages on their way to clients: about a ticket, and of a release, on the lock's own channel. */
#define CALLED 1
#define NEAR   2
#define OUT    4
#define WATCH  8
byte told[T], head[T] = NONE;   /* head: whom the second one is to watch */
bit released[CLIENTS];

/* What a client knows. Its channel for calls, and the lock's own. */
#define OFF   0
#define ASKED 1
#define ON    2
byte calls[CLIENTS], shared[CLIENTS];

#define YES     1
#define HELD    2
#define GONE    3
#define TURN    4               /* it is another client's */
#define OUTSIDER 3              /* not in the line */
byte call[CLIENTS] = NONE;      /* the call that waits, by its hold */
byte own[CLIENTS] = NONE;       /* the hold that the client has */
byte round[CLIENTS];
short asked[CLIENTS];           /* the command that it waits for */
byte answer[CLIENTS], before[CLIENTS], first[CLIENTS] = NONE; /* first: in the answer */
short freeing[CLIENTS];         /* the same, for its own hold */
byte freed[CLIENTS];
bit alone[CLIENTS];             /* it listened to no calls when it took its own hold */
bit doubt[CLIENTS], owes[CLIENTS]; /* an acquire had no outcome: of the call, of the own hold */

/* Its place in the line, and what it has heard of that and not heeded yet. */
bit stays[CLIENTS];             /* it has a ticket */
bit place[CLIENTS];             /* and a place, as far as Redis has said */
bit back[CLIENTS];              /* the connection was away since */
bit coming[CLIENTS];            /* the ticket enters with a release */
bit leads[CLIENTS];             /* it is the first */
bit old[CLIENTS];               /* and has been for 20 ms */
bit vain[CLIENTS];              /* the attempt is for having been called */
byte notice[CLIENTS], seen[CLIENTS] = NONE; /* seen: the head of a notice to watch */
bit look[CLIENTS];
byte watched[CLIENTS] = NONE;   /* the ticket of the client that is called, as far as is known */

/* When it is to look by itself. */
#define RETRY 1                 /* after an answer that did not come */
#define SOON  2                 /* after 20 ms */
#define LATE  3                 /* after 100 ms */
#define LONG  4
byte timer[CLIENTS];

#define UP     0
#define FROZEN 1
#define DEAD   2
byte state[CLIENTS];
/* It was frozen, or its connection was away, it missed a call or an answer, or was called in vain. */
bit excused[CLIENTS];

byte again = AGAIN, misses = MISSES, quits = QUITS, breaks = BREAKS, lost = LOST, deaths = DEATHS, freezes = FREEZES, barges = BARGES, silent = SILENT;
byte i, j, one, two, found;     /* for loops and scripts; the same in all states otherwise */
bit heard;

#define MUST(what, rule) if :: what :: else -> printf(rule); assert(what) fi

/* ---- What must hold; and at the end of the file, when all is at rest. */

/* Invariant 1. */
inline sole(c) {
	for (i : 0 .. CLIENTS - 1) { MUST(i == c || own[i] == NONE || freeing[i] != 0 || state[i] == DEAD || BESIDE(c, i), "@X invariant 1: two holders\n") }
	i = 0;
#ifdef PERMITS
	j = 0;
	for (i : 0 .. CLIENTS - 1) { if :: own[i] != NONE && freeing[i] == 0 && state[i] != DEAD -> j++ :: else fi }
	i = 0;
	MUST(j <= PERMITS, "@X invariant 1: more holders than permits\n");
	j = 0
#endif
}

/* P18, P20, P24: a client that lives and waits keeps its place. */
#define STAYS(t) (stays[OWNER(t)] && call[OWNER(t)] != NONE && TICKET(call[OWNER(t)]) == (t))
inline loses(t) {
	MUST(!STAYS(t) || state[OWNER(t)] != UP || excused[OWNER(t)], "@X a client that lives and waits is taken out of the line\n")
}

/* ---- The line, in the scripts. */

inline arrives(h, command) { flying[h] = flying[h] & ~command; printf("@%d>R %d\n", h, command) }

/* The first two. */
inline heads() {
	one = NONE; two = NONE;
	for (i : 0 .. T - 1) {
		if
		:: i < length && !absent[line[i]] && one == NONE -> one = line[i]
		:: i < length && !absent[line[i]] && one != NONE && two == NONE -> two = line[i]
		:: else
		fi
	}
	i = 0
}

/* found: whether the ticket was there. */
inline takeOut(t) {
	found = 0;
	for (i : 0 .. T - 1) {
		if
		:: i < length && line[i] == t && !found -> found = 1
		:: i < length && found -> line[i - 1] = line[i]
		:: else
		fi
	}
	if :: found -> length--; line[length] = 0; found = !absent[t]; absent[t] = 0 :: else fi;
	i = 0
}

inline tell(t, what) {
	if :: calls[OWNER(t)] == ON && state[OWNER(t)] != DEAD -> told[t] = told[t] | what :: else fi
}

/* The first client that somebody listens for is called, and the second one told of it. heard: there is one. */
inline callFirst() {
	heads(); heard = 0;
	do
	:: one != NONE && calls[OWNER(one)] != ON -> printf("@R takes out %d, which does not listen\n", one);
		loses(one);
		if :: STAYS(one) -> absent[one] = 1 :: else -> takeOut(one) fi;
		heads()
	:: one != NONE && calls[OWNER(one)] == ON -> heard = 1; printf("@R calls %d\n", one);
		tell(one, CALLED);
#ifndef NAIVE_P23
		if :: two != NONE && calls[OWNER(two)] == ON && state[OWNER(two)] != DEAD -> told[two] = told[two] | WATCH; head[two] = one :: else fi;
#endif
		break
	:: else -> break
	od
}

inline enter(t, placed) {
	found = 0;
	for (i : 0 .. T - 1) { if :: i < length && line[i] == t -> found = 1 :: else fi }
	i = 0;
	if
	:: found && !absent[t]
	:: found && absent[t] && placed -> absent[t] = 0; printf("@R %d has its place again\n", t)
	:: else -> takeOut(t); line[length] = t; length++; printf("@R enters %d\n", t)
	fi;
	found = 0
}

/* How many are before it in found, 2 for more. */
inline rank(t) {
	found = 0;
	for (i : 0 .. T - 1) {
		if
		:: i >= length || line[i] == t -> break
		:: i < length && line[i] != t && !absent[line[i]] && found < 2 -> found++
		:: else
		fi
	}
	i = 0
}

inline reply(h, command, verdict, a) {
	printf("@%d< %d %d\n", h, command, verdict);
	if
	:: state[OWNER(h)] != DEAD && call[OWNER(h)] == h && asked[OWNER(h)] == command ->
		answer[OWNER(h)] = verdict; first[OWNER(h)] = j;
		if
		:: a & TICKETED -> rank(TICKET(h)); before[OWNER(h)] = found
		:: else -> before[OWNER(h)] = OUTSIDER
		fi
	:: else
	fi
}

inline clean() { one = NONE; two = NONE; found = 0; heard = 0 }

/* ---- The scripts, as Redis runs them: each in one step. */

/* Who enters behind a hold: its release is to look at the line (P36). */
inline mark() {
#ifdef NAIVE_P36
	skip
#else
	marked = 1
#endif
}

#define MINE(h, a) ((a & TICKETED) && one == TICKET(h))

/* Who has taken the lock as the first in the line: the lock may be open to the next one (P44, P49). */
inline onward(h) {
#if defined(KINDS) && !defined(NAIVE_P44) && !defined(NAIVE_P49)
	heads();
	if
	:: one != NONE && OPEN(one) -> callFirst()
	:: one != NONE && !OPEN(one) && READS(h) -> nearly()
	:: else
	fi
#else
	skip
#endif
}

/* The first two are told where they are. */
inline nearly() {
	heads();
	if :: one != NONE -> printf("@R tells %d that it is near\n", one); tell(one, NEAR) :: else fi;
	if :: two != NONE -> tell(two, NEAR) :: else fi
}

inline wait(h, command, a, s) {
	arrives(h, command);
#ifndef NAIVE_P22
	if :: !HAS(h) && (a & TICKETED) && (a & PLACED) -> enter(TICKET(h), PLACED) :: else fi;
#endif
	heads();
	if
	:: HAS(h) -> /* a repeat */
		if :: a & TICKETED -> takeOut(TICKET(h)) :: else fi;
		reply(h, command, YES, a)
	:: !HAS(h) ->
		if
		:: one != NONE && !MINE(h, a) && OPEN(one) ->
			j = (a & LOOKS) != 0; /* whether the first one is called */
#ifndef NAIVE_P28
			j = j || two == NONE;
#endif
#if !defined(NAIVE_P22) && !defined(NAIVE_P24_SECOND)
			j = j || (a & TICKETED) && two == TICKET(h);
#endif
			if
			:: one == s -> printf("@R takes out %d, which was called and did not come\n", one);
				loses(one); tell(one, OUT);
				if :: STAYS(one) && calls[OWNER(one)] != ON -> absent[one] = 1 :: else -> takeOut(one) fi; /* it has not heard of that */
				heads()
			:: else
			fi;
			if :: one != NONE && !MINE(h, a) && OPEN(one) && j -> callFirst() :: else fi
		:: else
		fi;
		if
		:: OPEN(TICKET(h)) && (one == NONE || MINE(h, a)) -> take(h); WAKE(0); printf("@R takes the lock\n");
			if :: a & TICKETED -> takeOut(TICKET(h)) :: else fi;
			j = NONE;
			reply(h, command, YES, a);
			if :: one != NONE -> onward(h) :: else fi
		:: else -> j = (one != NONE && OPEN(one) -> one : NONE);
			if
			:: (a & TICKETED) && j == NONE -> mark(); enter(TICKET(h), a & PLACED)
			:: (a & TICKETED) && j != NONE -> enter(TICKET(h), a & PLACED)
			:: else
			fi;
			reply(h, command, (j != NONE -> TURN : HELD), a)
		fi
	fi;
	j = 0; clean()
}

inline publish() {
	WAKE(1);
	for (i : 0 .. CLIENTS - 1) { if :: shared[i] == ON && state[i] != DEAD -> released[i] = 1 :: else fi }
	i = 0
}

/* Where more than one are in the line those in no line are told only now and then (P37): here never. */
inline forLine() {
	heads(); j = (two != NONE);
	callFirst();
	if :: heard && j :: else -> publish() fi;
	j = 0
}

inline release(h, command) {
	arrives(h, command);
	if
	:: HAS(h) -> printf("@R releases %d\n", h);
		drop(h);
		if :: command == UNLOCK && enters[h] != NONE -> enter(enters[h], 0) :: else fi;
		if
		:: command == UNLOCK && quick[h] && !marked -> publish()
#ifdef READERS
		:: has != 0 /* others read */
#endif
		:: else -> forLine()
		fi;
		marked = 0;
		if :: own[OWNER(h)] == h && freeing[OWNER(h)] == command -> freed[OWNER(h)] = YES :: else fi
	:: else -> printf("@%d< %d %d\n", h, command, GONE);
		if :: own[OWNER(h)] == h && freeing[OWNER(h)] == command -> freed[OWNER(h)] = GONE :: else fi
	fi;
	if :: command == UNLOCK -> enters[h] = NONE; quick[h] = 0 :: else fi;
	if :: command == UNLOCK2 && !(flying[h] & (ACQUIRE | ACQUIRE2)) -> listed[h] = 0 :: else fi;
	clean()
}

inline leave(t) {
	arrives(t, LEAVE);
	takeOut(t);
	if :: found -> printf("@R takes out %d\n", t); loses(t) :: else fi;
	j = found; heads(); heard = 0;
#ifdef NAIVE_P49_LEAVE
	if :: one != NONE && FREE -> callFirst() :: else fi;
#else
	if :: one != NONE && OPEN(one) -> callFirst() :: else fi;
#endif
	if
#ifndef NAIVE_P37
	:: !heard && FREE -> publish()
#endif
#ifndef NAIVE_P31
	:: !heard && !FREE && j -> nearly()
#endif
	:: else
	fi;
	j = 0; clean()
}

proctype network(byte h) {
end:	do
	:: d_step { flying[h] & ACQUIRE  -> wait(h, ACQUIRE, arg[h], stale[h]); arg[h] = 0; stale[h] = NONE }
	:: d_step { flying[h] & ACQUIRE2 -> wait(h, ACQUIRE2, arg2[h], stale2[h]); arg2[h] = 0; stale2[h] = NONE }
	:: d_step { flying[h] & UNLOCK   -> release(h, UNLOCK) }
	:: d_step { flying[h] & LEAVE    -> leave(h) }
#if defined(KINDS) && TIMERS == 2
	:: d_step { HAS(h) && state[OWNER(h)] == DEAD -> printf("@S the lease of %d runs out\n", h); drop(h); WAKE(1) }
#endif
	od
}

/* P3: until nothing that could take the lock is on its way, and a release after that was confirmed. */
proctype releaser(byte h) {
end:	do
	:: d_step { flying[h] & UNLOCK2 -> release(h, UNLOCK2) }
	:: d_step { listed[h] && !(flying[h] & UNLOCK2) -> flying[h] = flying[h] | UNLOCK2; printf("@%d>. %d\n", h, UNLOCK2) }
	od
}

/* ---- Somebody outside the line. */

proctype outside() {
end:	do
	:: d_step { field == OUTSIDE -> printf("@S a client in no line releases\n"); field = NONE; publish(); if :: marked -> callFirst() :: else fi; marked = 0; clean() }
#ifdef OUTSIDERS
	:: d_step { field == OUTSIDE && marked -> printf("@S a client in no line releases, for the line\n"); field = NONE; forLine(); marked = 0; clean() }
#endif
#ifdef REDISSON
	:: d_step { field == OUTSIDE -> printf("@S a Redisson client releases\n"); field = NONE; marked = 0; publish() }
#endif
	:: d_step { field == OUTSIDE && silent > 0 -> silent--; printf("@S the lock's key is deleted\n"); field = NONE; marked = 0; WAKE(1) } /* at the end of the lease that they know */
	:: d_step { FREE && barges > 0 -> barges--; printf("@S somebody in no line takes the lock\n"); field = OUTSIDE; marked = 1; WAKE(0) }
	/* nothing more goes wrong: what else could would keep all from being at rest */
	:: d_step { quits + breaks + lost + deaths + freezes + barges + silent > 0 -> quits = 0; breaks = 0; lost = 0; deaths = 0; freezes = 0; barges = 0; silent = 0 }
#if TIMERS == 2 && !defined(KINDS)
	:: d_step { field < T && state[OWNER(field)] == DEAD -> printf("@S the lease of %d runs out\n", field); field = NONE; marked = 0; WAKE(1) }
#endif
	od
}

/* ---- A client: a call from Lock to Unlock. What it does when it has heard of something it does at once: to be late
 * it has the messages and the commands that are on their way. */

#define LIVE(c) (calls[c] == ON)
#define IN(c)   (stays[c] && place[c] && !back[c])

inline fresh(c) {
	if
	:: !stays[c] -> stays[c] = 1; place[c] = 0; leads[c] = 0; old[c] = 0; back[c] = 0; coming[c] = 0; notice[c] = 0; seen[c] = NONE
	:: else
	fi;
	notice[c] = notice[c] & ~(CALLED | OUT)
}

#ifdef NAIVE_P20
#define ENTERS(c) (calls[c] != OFF)
#else
#define ENTERS(c) LIVE(c)
#endif

inline ask(c, looks, s) {
	timer[c] = 0; look[c] = 0;
	asked[c] = (doubt[c] -> ACQUIRE2 : ACQUIRE);
	j = looks;
	if
	:: ENTERS(c) -> fresh(c); j = j | TICKETED; if :: back[c] && place[c] -> j = j | PLACED :: else fi
	:: else
	fi;
	flying[call[c]] = flying[call[c]] | asked[c];
	if
	:: doubt[c] -> arg2[call[c]] = j; stale2[call[c]] = s
	:: else -> arg[call[c]] = j; stale[call[c]] = s
	fi;
	j = 0;
	printf("@%d>. %d\n", call[c], asked[c])
}

/* Where no timer goes off but the one after an answer that did not come, no other one replaces it. */
inline later(c, when) {
#if TIMERS == 0
	if :: timer[c] != RETRY -> timer[c] = when :: else fi
#else
	timer[c] = when
#endif
}

/* What was heard is heeded, unless an answer comes first, or the client has the lock itself. */
inline heed(c) {
	if
	:: call[c] != NONE && asked[c] == 0 && own[c] == NONE ->
		if
		:: notice[c] & CALLED -> notice[c] = 0; seen[c] = NONE; vain[c] = 1; ask(c, 0, NONE)
		:: !(notice[c] & CALLED) && ((notice[c] & OUT) || look[c]) ->
			if :: !(notice[c] & OUT) && (notice[c] & WATCH) -> watched[c] = seen[c] :: else fi;
			notice[c] = 0; seen[c] = NONE; ask(c, 0, NONE)
		:: !(notice[c] & (CALLED | OUT)) && !look[c] && (notice[c] & WATCH) -> watched[c] = seen[c]; later(c, LATE); notice[c] = 0; seen[c] = NONE
		:: !(notice[c] & (CALLED | OUT | WATCH)) && !look[c] && (notice[c] & NEAR) -> later(c, SOON); notice[c] = 0
		:: else
		fi
	:: else
	fi
}

inline listen(c) { if :: shared[c] == OFF -> shared[c] = ASKED :: else fi }
inline deaf(c) { shared[c] = OFF; released[c] = 0 }

/* The call has not got the lock. */
inline refused(c) {
	asked[c] = 0;
	if
	:: before[c] == OUTSIDER ->
		if :: answer[c] == TURN -> watched[c] = first[c] :: else fi;
		if
		:: LIVE(c) -> look[c] = 1 /* enters the line */
#ifdef NAIVE_P20
		:: calls[c] == OFF -> calls[c] = ASKED; look[c] = 1
#else
		:: calls[c] == OFF -> calls[c] = ASKED; timer[c] = LATE
#endif
		:: else -> timer[c] = LATE
		fi
	:: else ->
		place[c] = 1; back[c] = 0; coming[c] = 0;
		if :: before[c] == 0 -> leads[c] = 1 :: else -> leads[c] = 0; old[c] = 0 fi;
		if
		:: before[c] == 0 && answer[c] == HELD ->
#ifndef NAIVE_P25
			if :: vain[c] || old[c] -> listen(c) :: else fi;
#endif
			timer[c] = (vain[c] || old[c] -> LONG : SOON)
		:: else -> deaf(c); timer[c] = LONG
		fi;
		excused[c] = excused[c] || vain[c] && answer[c] == HELD;
		vain[c] = 0;
		if
		:: answer[c] == TURN && before[c] < 2 -> watched[c] = first[c]; timer[c] = LATE
		:: else -> watched[c] = NONE
		fi
	fi;
	answer[c] = 0; before[c] = 0; first[c] = NONE;
	heed(c)
}

/* The call is over, and nobody waits in the client any more. */
inline over(c) {
	if :: stays[c] -> flying[TICKET(call[c])] = flying[TICKET(call[c])] | LEAVE; printf("@%d>. %d\n", TICKET(call[c]), LEAVE) :: else fi;
	if :: absent[TICKET(call[c])] -> takeOut(TICKET(call[c])); found = 0 :: else fi;
	forget(c)
}

inline forget(c) {
	call[c] = NONE; asked[c] = 0; answer[c] = 0; before[c] = 0; first[c] = NONE; doubt[c] = 0;
	stays[c] = 0; place[c] = 0; back[c] = 0; coming[c] = 0; leads[c] = 0; old[c] = 0; vain[c] = 0; notice[c] = 0; seen[c] = NONE;
	look[c] = 0; watched[c] = NONE; timer[c] = 0;
	deaf(c)
}

inline took(c) {
	own[c] = call[c]; owes[c] = doubt[c]; alone[c] = (calls[c] == OFF); printf("@%d! holds it\n", call[c]);
	sole(c);
	if :: before[c] != OUTSIDER -> stays[c] = 0 :: else fi;
	over(c)
}

/* No answer in time: what was sent comes late, or never. */
inline miss(c) {
	misses--; doubt[c] = 1; excused[c] = 1; answer[c] = 0; before[c] = 0; first[c] = NONE; timer[c] = RETRY;
	printf("@%d? %d\n", call[c], asked[c]);
	asked[c] = 0;
	heed(c)
}

inline giveUp(c) {
	quits--; printf("@%d! gives up\n", call[c]);
	if :: asked[c] != 0 || doubt[c] -> listed[call[c]] = 1 :: else fi;
	over(c)
}

inline closes(c) {
	calls[c] = OFF;
	for (i : 0 .. ROUNDS - 1) { told[c + i * CLIENTS] = 0; head[c + i * CLIENTS] = NONE }
	i = 0
}

#ifdef NAIVE_P35
#define IS_CALLED(c, confirmed) (confirmed == YES && IN(c) || coming[c])
#else
#define IS_CALLED(c, confirmed) (confirmed == YES && IN(c))
#endif

/* The client has the lock no longer. */
inline left(c, confirmed) {
	if :: owes[c] || !confirmed -> listed[own[c]] = 1 :: else fi;
	own[c] = NONE; owes[c] = 0; alone[c] = 0; freeing[c] = 0; freed[c] = 0;
	if
	:: call[c] != NONE && IS_CALLED(c, confirmed) -> look[c] = 0 /* when it is its turn */
	:: call[c] != NONE && !IS_CALLED(c, confirmed) -> look[c] = 1
	:: else
	fi;
	heed(c)
}

inline die(c) {
	deaths--;
	j = calls[c];
	if :: call[c] != NONE && absent[TICKET(call[c])] -> takeOut(TICKET(call[c])); found = 0 :: else fi;
	forget(c); closes(c);
	for (i : 0 .. ROUNDS - 1) { listed[c + i * CLIENTS] = 0 }
	i = 0;
	calls[c] = j; j = 0;
	state[c] = DEAD; own[c] = NONE; freeing[c] = 0; freed[c] = 0; owes[c] = 0; alone[c] = 0; excused[c] = 0; round[c] = ROUNDS
}

#if ROUNDS == 1
#define MAIL(c) (told[c])
#elif ROUNDS == 2
#define MAIL(c) (told[c] || told[(c) + CLIENTS])
#endif
#define WAITS(c, which) (state[c] == UP && call[c] != NONE && asked[c] == 0 && timer[c] == which)
#define BUSY(c) (state[c] == UP && (asked[c] || freeing[c] || calls[c] == ASKED || shared[c] == ASKED || released[c] || MAIL(c)) || WAITS(c, SOON))
#if CLIENTS == 2
#define QUIET (!BUSY(0) && !BUSY(1))
#define SLEEP (!WAITS(0, LATE) && !WAITS(1, LATE))
#else
#define QUIET (!BUSY(0) && !BUSY(1) && !BUSY(2))
#define SLEEP (!WAITS(0, LATE) && !WAITS(1, LATE) && !WAITS(2, LATE))
#endif

inline rings(c, s) { printf("@%d! looks\n", call[c]); if :: leads[c] -> old[c] = 1 :: else fi; ask(c, LOOKS, s) }

#ifdef ANSWERED
#define MAY_QUIT(c) (asked[c] == 0 && !doubt[c])
#else
#define MAY_QUIT(c) true
#endif
#ifdef ALONE
#define MAY_DIE(c) (round[1 - (c)] == 0)
#elif defined(HOLDING)
#define MAY_DIE(c) (own[c] != NONE && call[c] == NONE && freeing[c] == 0)
#else
#define MAY_DIE(c) true
#endif

proctype client(byte c) {
end:	do
	:: d_step { state[c] == UP && call[c] == NONE && (round[c] == 0 || round[c] < ROUNDS && again > 0) ->
		if :: round[c] > 0 -> again-- :: else fi;
		call[c] = c + CLIENTS * round[c]; round[c]++;
		if
		:: own[c] != NONE -> listen(c); timer[c] = LONG; printf("@%d! waits\n", call[c])
		:: else -> ask(c, 0, NONE)
		fi }
	:: d_step { state[c] == UP && asked[c] != 0 && answer[c] == YES -> took(c) }
	:: d_step { state[c] == UP && asked[c] != 0 && answer[c] > YES -> refused(c) }
	:: d_step { state[c] == UP && asked[c] == ACQUIRE && misses > 0 -> miss(c) }
	:: d_step { state[c] == UP && asked[c] == ACQUIRE && (flying[call[c]] & ACQUIRE) && misses > 0 ->
		flying[call[c]] = flying[call[c]] & ~ACQUIRE; arg[call[c]] = 0; stale[call[c]] = NONE; miss(c) }
	:: d_step { state[c] == UP && call[c] != NONE && quits > 0 && MAY_QUIT(c) -> giveUp(c) }
	:: d_step { state[c] == UP && call[c] != NONE && quits > 0 && MAY_QUIT(c) && (TIMERS > 0 || !MAIL(c)) -> giveUp(c); closes(c) }
	/* Unlock: who else waits here enters the line again */
	:: d_step { state[c] == UP && own[c] != NONE && freeing[c] == 0 ->
		freeing[c] = UNLOCK; flying[own[c]] = flying[own[c]] | UNLOCK;
#ifndef KINDS
		if :: call[c] != NONE && !IN(c) && LIVE(c) -> fresh(c); coming[c] = 1; enters[own[c]] = TICKET(call[c]) :: else fi;
#endif
#ifndef KINDS
		quick[own[c]] = (alone[c] && enters[own[c]] == NONE && shared[c] != ON);
#endif
		printf("@%d! unlocks\n", own[c]); printf("@%d>. %d\n", own[c], UNLOCK) }
	:: d_step { state[c] == UP && freeing[c] != 0 && freed[c] != 0 ->
		if :: freed[c] == YES && coming[c] -> place[c] = 1; coming[c] = 0 :: else fi;
		left(c, freed[c]) }
	:: d_step { state[c] == UP && freeing[c] != 0 && misses > 0 -> misses--; printf("@%d? %d\n", own[c], UNLOCK); left(c, 0) }
	:: d_step { state[c] == UP && freeing[c] != 0 && (flying[own[c]] & UNLOCK) && misses > 0 ->
		misses--; printf("@%d? %d lost\n", own[c], UNLOCK); flying[own[c]] = flying[own[c]] & ~UNLOCK; enters[own[c]] = NONE; quick[own[c]] = 0; left(c, 0) }
	/* the timers */
	:: d_step { WAITS(c, RETRY) && own[c] == NONE -> rings(c, NONE) }
	/* of a call that its own late copy has served */
	:: d_step { WAITS(c, timer[c]) && timer[c] > 0 && own[c] == NONE && HAS(call[c]) -> rings(c, NONE) }
#if TIMERS > 0
	:: d_step { WAITS(c, SOON) -> rings(c, NONE) }
#ifdef NAIVE_P24
	:: d_step { WAITS(c, LATE) -> rings(c, watched[c]) }
#else
	:: d_step { WAITS(c, LATE) && QUIET -> rings(c, watched[c]) }
#endif
#endif
#if TIMERS > 1 && !defined(NAIVE_P32)
	:: d_step { WAITS(c, LONG) && QUIET && SLEEP && OPEN(call[c]) -> rings(c, NONE) }
#endif
	/* what goes wrong */
	:: d_step { state[c] == UP && freezes > 0 && call[c] != NONE -> freezes--; state[c] = FROZEN; excused[c] = 1; printf("@C%d is frozen\n", c) }
	:: d_step { state[c] == FROZEN -> state[c] = UP; printf("@C%d goes on\n", c) }
#if !defined(ALONE) && !defined(HOLDING)
	:: d_step { state[c] == UP && deaths > 0 && (call[c] != NONE || own[c] != NONE) -> printf("@C%d dies, its connections stay\n", c); die(c) }
#endif
	:: d_step { state[c] == UP && deaths > 0 && (call[c] != NONE || own[c] != NONE) && MAY_DIE(c) -> printf("@C%d dies\n", c); die(c); calls[c] = OFF }
	od
}

/* ---- Messages. */

inline hear(t, what) {
	told[t] = told[t] & ~what;
	if
	:: STAYS(t) ->
		if
		:: what == CALLED -> printf("@C%d is called\n", OWNER(t)); notice[OWNER(t)] = (notice[OWNER(t)] | CALLED) & ~WATCH; seen[OWNER(t)] = NONE;
			if :: !leads[OWNER(t)] -> leads[OWNER(t)] = 1; old[OWNER(t)] = 0 :: else fi
		:: what == NEAR -> notice[OWNER(t)] = notice[OWNER(t)] | NEAR
		:: what == OUT -> printf("@C%d is out of the line\n", OWNER(t)); notice[OWNER(t)] = notice[OWNER(t)] | OUT; place[OWNER(t)] = 0; back[OWNER(t)] = 0
		:: what == WATCH -> printf("@C%d is to watch\n", OWNER(t)); notice[OWNER(t)] = notice[OWNER(t)] | WATCH; seen[OWNER(t)] = head[t]
		fi;
		heed(OWNER(t))
	:: else ->
#ifndef NAIVE_P19
		if :: what == CALLED -> printf("@C%d is called, has no such ticket\n", OWNER(t));
			flying[t] = flying[t] | LEAVE; printf("@%d>. %d\n", t, LEAVE) :: else fi
#else
		skip
#endif
	fi;
	if :: what == WATCH -> head[t] = NONE :: else fi
}

proctype messages(byte t) {
end:	do
	:: d_step { state[OWNER(t)] == UP && (told[t] & CALLED) -> hear(t, CALLED) }
	:: d_step { state[OWNER(t)] == UP && (told[t] & NEAR) -> hear(t, NEAR) }
	:: d_step { state[OWNER(t)] == UP && (told[t] & OUT) -> hear(t, OUT) }
	:: d_step { state[OWNER(t)] == UP && (told[t] & WATCH) -> hear(t, WATCH) }
	:: d_step { lost > 0 && (told[t] & CALLED) -> lost--; if :: STAYS(t) -> excused[OWNER(t)] = 1 :: else fi; told[t] = told[t] & ~CALLED; printf("@C%d a message to it is lost\n", OWNER(t)) }
	:: d_step { lost > 0 && (told[t] & NEAR) -> lost--; told[t] = told[t] & ~NEAR; printf("@C%d a message to it is lost\n", OWNER(t)) }
	:: d_step { lost > 0 && (told[t] & OUT) -> lost--; told[t] = told[t] & ~OUT; printf("@C%d a message to it is lost\n", OWNER(t)) }
	:: d_step { lost > 0 && (told[t] & WATCH) -> lost--; told[t] = told[t] & ~WATCH; head[t] = NONE; printf("@C%d a message to it is lost\n", OWNER(t)) }
	od
}

/* The connection was away, or is back: a client that is in the line enters it again. */
inline away(c) {
	if :: call[c] != NONE -> look[c] = 1; if :: stays[c] -> notice[c] = notice[c] | OUT; back[c] = place[c] :: else fi :: else fi;
	heed(c)
}

proctype connection(byte c) {
end:	do
	:: d_step { state[c] == UP && calls[c] == ASKED -> calls[c] = ON; printf("@C%d hears calls\n", c); away(c) }
	:: d_step { state[c] == UP && shared[c] == ASKED -> shared[c] = ON; printf("@C%d hears releases\n", c); look[c] = 1; heed(c) }
	:: d_step { state[c] == UP && released[c] -> released[c] = 0;
		if
		:: stays[c] && (place[c] || coming[c]) && !back[c] && !leads[c]
		:: else -> look[c] = 1; heed(c)
		fi }
	:: d_step { state[c] == UP && breaks > 0 && calls[c] == ON -> breaks--; printf("@C%d its connection is lost\n", c);
		closes(c); calls[c] = ASKED; if :: shared[c] == ON -> shared[c] = ASKED :: else fi; released[c] = 0;
		if :: call[c] != NONE -> excused[c] = 1 :: else fi;
		away(c) }
	od
}

/* ---- When all is at rest: nobody who lives waits for a free lock (invariant 8), and no hold is left that nobody has. */

proctype rest() {
end:	atomic { timeout ->
		heads(); /* who waits behind one to whom the lock is not open waits its turn */
		for (j : 0 .. CLIENTS - 1) {
			MUST(state[j] == DEAD || call[j] == NONE || !OPEN(call[j]) || one != NONE && !OPEN(one), "@X invariant 8: all is at rest, and a client waits for a free lock\n")
		}
#ifdef OUTSIDERS
		MUST(!FREE || awake, "@X invariant 8: all is at rest, and who waits in no line sleeps on a free lock\n");
#endif
#ifdef KINDS
		for (j : 0 .. T - 1) { MUST(!HAS(j) || state[OWNER(j)] == DEAD, "@X all is at rest, and the lock is held by a hold that nobody has\n") }
		MUST(field == NONE, "@X all is at rest, and the lock is held by nobody\n") }
#else
		MUST(field == NONE || field < T && state[OWNER(field)] == DEAD, "@X all is at rest, and the lock is held by a hold that nobody has\n") }
#endif
}

#ifdef SERVED
/* Every call comes to an end, and every hold. */
#define SERVES(c) (state[c] == DEAD || round[c] > 0 && call[c] == NONE && own[c] == NONE)
ltl served { <> [] (FREE && SERVES(0) && SERVES(1)) }
#endif

init {
	atomic {
		for (i : 0 .. T - 1) { run network(i); run releaser(i); run messages(i) }
		for (i : 0 .. CLIENTS - 1) { run client(i); run connection(i) }
		i = 0;
		run outside();
		run rest()
	}
}
