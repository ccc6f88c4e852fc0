package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A violation is something that must not be. An episode counts once.
type violation struct {
	Rule string
	At   time.Duration
	Lock string
	Text string
}

// The rules, by the numbers of docs/protocol.md.
const (
	oneHolder   = "invariant 1: one live context at a time"
	tokensGrow  = "invariant 2: tokens grow in real time"
	countsOnce  = "invariant 5: a command counts once"
	endsInTime  = "invariants 6, 7: a call ends with its wait"
	contextEnds = "invariant 3: a context ends before its lease"
	losesInTime = "P10: a hold that Redis has not got ends within a lease"
	extendKept  = "P42: a lease lasts for as long as Extend has said"
	tellsWaited = "P41: Waited tells of those who wait, and of nobody else"
	staysHeld   = "P11: a hold is not lost for nothing"
	closeEnds   = "P12: Close ends the holds, and none begins after it"
	nobodysLock = "P3, P38: no lock is taken that nobody holds"
	nobodySleep = "invariant 8: nobody sleeps on a free lock"
	nothingLeft = "invariant 9: nothing is left"
	itEnds      = "the world ends"
)

// The bounds, where nothing is broken.
const (
	longest     = 3 * time.Minute // of the leases in plans
	wayThere    = time.Second     // what a call with wait 0 may take, and all others beyond their wait
	unlockMost  = 5 * time.Second // WithUnlockTimeout
	closeMost   = unlockMost + 2*time.Second
	freeMost    = soon                   // for how long a lock that is waited for may be free,
	lookMost    = 10*time.Second + soon  // and for how long behind two clients that are gone: who is the third in the line looks by itself (P32)
	askedMost   = silently + soon        // for how long a client may have a lock for a call that waits: its acquire had no answer
	nobodyMost  = soon                   // and for how long without one
	wakeMost    = 100 * time.Millisecond // for how long calls go on to wait that Close or Shutdown ends
	remainsMost = 20 * time.Millisecond  // what is lost of a lease on the way
	signsMost   = 10 * time.Second       // for how long a client asks for a lock that it has released, with each sign of another server (P38)
)

// judge reads a history, and returns what is wrong with it.
func judge(p plan, history []event) ([]violation, shares) {
	j := judging{plan: p, clients: make(map[string]*judgedClient), locks: make(map[string]*judgedLock), byID: make(map[string]*judgedClient), holds: make(map[int]*judgedHold)}
	for _, e := range history {
		j.passes(e.At)
		j.reads(e)
	}
	return j.found, j.shares
}

// judging is what is known at one moment of the history.
type judging struct {
	plan
	found   []violation
	now     time.Duration
	clients map[string]*judgedClient // by their names
	byID    map[string]*judgedClient
	locks   map[string]*judgedLock
	holds   map[int]*judgedHold // and the calls that wait
	broken  int                 // faults that are there
	harmed  []harm              // by faults, also by those that are over
	settled time.Duration       // from when on the faults that are over no longer count
	losses  []loss
	unlined time.Duration // until when clients do without the line, as servers do not count who listens (P33)
	clock   bool          // a server's clock was set
	stopped bool
	stops   time.Duration

	lossBeside time.Duration // until when other faults were there, as of the last loss
	shares     shares
	deadLinks  bool // links have died without a word
}

// A loss is when data was lost: of one lock, or of all.
type loss struct {
	at     time.Duration
	lock   string
	tokens bool // the counter of tokens too
	young  bool // by the restart of a node of a quorum
}

type judgedClient struct {
	name, id  string
	redisson  bool
	gone      time.Duration // when it died; 0: it lives
	closes    time.Duration // when Close or Shutdown began; 0: not yet
	closing   bool          // one is under way
	shuts     bool          // it is Shutdown: calls in a hold go on
	closeMost time.Duration // what that may take
	closed    bool
	closedAt  time.Duration
	hindered  bool                     // something was broken while it closed
	had       map[string]bool          // which locks it had as it closed
	ends      map[string]time.Duration // when the last call that may have taken each lock was over
	wanted    map[string]time.Duration // until when a call waited for each lock
	asked     time.Duration            // when its last call began
	heard     time.Duration            // when its first call after a loss began
}

type judgedLock struct {
	kind    kind
	owner   string                  // as the servers have it; of a semaphore: anything where no slot is free
	fields  map[string]*judgedField // those of the owner
	reads   time.Duration           // since when all who have it read; 0 where they do not
	wrote   time.Duration           // until when a call has waited to write
	since   time.Duration           // when they were first seen to
	seen    time.Duration           // the same, whatever calls say since
	told    bool                    // that somebody sleeps
	largest *judgedHold             // of the holds whose acquire has returned
	live    []*judgedHold
	waits   map[int]*judgedHold
	freed   time.Duration // when it was released last; 0 where it was taken since, or what became of it was judged
	freedBy *judgedHold   // and by whom
	idle    time.Duration // the same; 0 where a call has begun since
	run     *judgedClient // which took the lock last, but among its calls,
	runs    time.Duration // and when
	left    time.Duration // when a call that may wait was over last

	deadCalled int           // how often a client was called that is gone
	empty      time.Duration // when the line was seen to be empty last: a client of the library has released the lock, and no call waited for it
}

// A judgedField is that of one who has a lock, as the servers have it.
type judgedField struct {
	since time.Duration
	told  bool // that it is nobody's
}

type judgedHold struct {
	client   *judgedClient
	lock     string
	key      string // the lock that the servers have: that of the slot of a permit; "" where that is not known
	reads    bool
	call     int
	asked    time.Duration
	most     time.Duration
	got      time.Duration
	within   bool          // it was asked for in a hold of another lock
	all      bool          // DoAll asks for it: nobody sees when it begins to wait, or has it, before it has all
	lease    time.Duration // of the call; 0: renewed
	leased   time.Duration // when the lease began, at the earliest
	reenters bool
	before   map[string]*judgedHold // by each key: with the largest token that was known when its last acquire began
	token    int64
	field    string        // as the servers have it; "" where that is not known
	has      bool          // the call has returned the lock
	ended    bool          // its context has
	unlocks  time.Duration // 0: not yet
	told     bool          // the violation
	lost     bool          // its loss was judged
	redisson bool

	extending time.Duration // the Extend that is under way asks for so long
	extendsAt time.Duration // when it began
	extended  time.Duration // the longest that an Extend has asked for
	kept      time.Duration // until when the lease lasts by an Extend that has succeeded,
	mayLast   time.Duration // and by those that may have

	imports  *judgedHold // the call imports this one's; nil for another call
	exported bool        // another call may have imported it

	watching time.Duration // since when it is to say whether somebody waits; 0 where it is not, or has said so
	beside   bool          // another call has waited for the lock meanwhile, or shortly before

	idle      bool          // the lock was free when the call began, and nobody else wanted it
	headed    time.Duration // since when it has been the first of its client's calls that wait
	overtaken int           // so many later calls of other clients had the lock before this one
}

// isAt tells whether the client has the place in the plan.
func (c *judgedClient) isAt(place string) bool {
	return place != "" && strings.HasPrefix(c.name, place+".")
}

func (j *judging) violated(rule, lock, format string, args ...any) {
	j.found = append(j.found, violation{rule, j.now, lock, fmt.Sprintf(format, args...)})
}

func (j *judging) lock(name string) *judgedLock {
	l := j.locks[name]
	if l == nil {
		l = &judgedLock{kind: j.kind(name), waits: make(map[int]*judgedHold)}
		j.locks[name] = l
	}
	return l
}

// lostSince tells whether what a server knew of the lock at this time may have been lost since.
func (j *judging) lostSince(lock string, at time.Duration) bool {
	return slices.ContainsFunc(j.losses, func(l loss) bool { return l.isOf(lock, at) })
}

// forgottenSince is lostSince where the server may have given the lock to another since. A node of a quorum that has started anew does not count
// until what it has forgotten is over.
func (j *judging) forgottenSince(lock string, at time.Duration) bool {
	return slices.ContainsFunc(j.losses, func(l loss) bool { return l.isOf(lock, at) && !l.young })
}

// isOf tells whether it was of this lock, at this time or later.
func (l loss) isOf(lock string, at time.Duration) bool {
	return l.at >= at && (l.lock == "" || l.lock == lockOfKey(lock))
}

// reads takes in one event.
func (j *judging) reads(e event) {
	j.now = e.At
	c := j.clients[e.Client]
	switch e.Kind {
	case started:
		c = &judgedClient{name: e.Client, id: e.Text, redisson: j.isRedisson(e.Client), ends: make(map[string]time.Duration), wanted: make(map[string]time.Duration)}
		j.clients[e.Client], j.byID[e.Text] = c, c
	case died:
		c.gone = e.At
		for _, h := range j.holds {
			if h.client == c {
				j.forget(h)
			}
		}
	case closes:
		if c.closed {
			return // a client that is closed twice
		}
		c.closing, c.closes, c.closeMost = true, e.At, closeMost
		c.hindered, c.had = j.hinders(c), make(map[string]bool)
		for _, h := range j.holds {
			if h.client == c && (h.has || h.all) {
				c.had[h.key] = true
			}
		}
		if e.Text == "Shutdown" {
			c.shuts = true
			c.closeMost += shutdownFor
		}
	case closed:
		if !c.closed {
			c.closing, c.closed, c.closedAt = false, true, e.At
			c.hindered = c.hindered || j.hinders(c)
			j.closesSoon(c)
		}
	case begins:
		j.broken++
		j.deadLinks = j.deadLinks || strings.HasPrefix(e.Text, "dead:") || strings.HasPrefix(e.Text, uncounts+":") // its links were cut while nobody looked
		j.harms(e)
	case ends:
		j.broken--
		j.settles(e)
		j.settled = max(j.settled, e.At+e.For)
	case lost:
		clock := strings.HasPrefix(e.Text, "time:")
		j.clock = j.clock || clock
		young := j.Servers > 1 && strings.HasPrefix(e.Text, restarts)
		j.losses = append(j.losses, loss{e.At, e.Lock, e.Lock == "" && !clock, young})
		if j.lossBeside = j.settled; j.broken > 1 {
			j.lossBeside = e.At
		}
	case stops:
		j.stopped, j.stops = true, e.At
	case has:
		j.owned(j.lock(e.Lock), e)
	case left:
		j.leftover(e)
	case asks:
		h := &judgedHold{client: c, lock: e.Lock, call: e.Call, asked: e.At, most: e.For, within: e.Levels > 1 || e.All, all: e.All, reads: e.Reads, before: make(map[string]*judgedHold), redisson: c.redisson}
		if h.imports = j.holds[e.Import]; e.Import > 0 && h.imports == nil {
			h.imports = &judgedHold{ended: true}
		}
		for _, key := range j.keysOf(e.Lock) {
			h.before[key] = j.lock(key).largest
		}
		if slices.ContainsFunc(j.losses, func(l loss) bool { return l.at >= c.asked }) {
			c.heard = e.At
		}
		c.asked = e.At
		j.holds[e.Call] = h
		l := j.lock(e.Lock)
		l.meets(h)
		l.waits[e.Call] = h
		l.heads(e.At)
		h.idle, l.idle = l.idle > 0 && e.At > l.idle+idleAfter, 0
	default:
		if h := j.holds[e.Call]; h != nil {
			j.readsOf(h, e)
		}
	}
}

func (j *judging) isRedisson(name string) bool {
	place, ok := placeOf(name)
	return ok && place < len(j.Clients) && j.Clients[place].Redisson
}

// readsOf takes in one event of a call or its hold.
func (j *judging) readsOf(h *judgedHold, e event) {
	l := j.lock(h.lock)
	switch e.Kind {
	case got:
		l.leaves(h, j.now)
		for _, w := range l.waits {
			w.idle = false
		}
		of := j.slot(h, e.Slot)
		h.has, h.got, h.lease, h.leased, h.told = true, e.At, e.For, e.At, false
		if h.client.closing {
			h.client.had[h.key] = true
		}
		if j.broken > 0 || h.asked < j.settled || h.all {
			h.leased = h.asked // the answer may have been late
		}
		l.touched(e.At)
		if l.idle = 0; len(l.live)+1 >= max(int(l.kind), 1) || l.freedBy != nil && l.freedBy.key == h.key {
			l.freed = 0
		}
		j.overtakes(h, l)
		j.open(h)
		j.alone(h, of)
		j.grows(h, of, e.Token)
		if l.live = append(l.live, h); of != l {
			of.live = append(of.live, h)
		}
	case nested:
		h.reenters = true
		if (j.Stable || l.kind == pages) && !h.redisson {
			j.same(h, e.Token)
		} else {
			j.grows(h, l, e.Token)
		}
	case failed:
		j.levels(h, e)
	case extends:
		h.extending, h.extendsAt, h.extended = e.For, e.At, max(h.extended, e.For)
	case extended:
		j.extends(h, e)
	case exports:
		h.exported = true
	case remains:
		j.remains(h, e)
	case watches:
		h.watching = e.At
	case waited:
		j.saysWaited(h, l)
	case refused:
		j.answers(h, l, e.Text)
		if l.freed > 0 && j.Distance > 0 { // it may have been called, and its client passes that on from far away
			l.freed = e.At
		}
		j.forget(h)
	case ended:
		if h.ended = true; h.exported {
			l.standsAnew(h, e.At)
		}
		j.keeps(h, e)
	case counted:
		if e.Count != e.Levels && !h.redisson && !j.lostSince(h.lock, h.asked) {
			j.violated(countsOnce, h.lock, "%s, call %d: HoldCount is %d, and %d levels are open", h.client.name, h.call, e.Count, e.Levels)
		}
	case unlocks:
		h.unlocks = e.At
	case unlocked:
		j.keeps(h, e)
		j.unlocksSoon(h, e.Text)
		if h.reads {
			l.standsAnew(h, e.At)
		}
		l.touched(e.At)
		if j.forget(h); e.Text == "" {
			j.isFreed(h, l)
			j.isEmptied(h, l)
		}
	}
}

// isEmptied notes that the release of the hold has found nobody in the line: who is gone and was in the line was taken out by then.
func (j *judging) isEmptied(h *judgedHold, l *judgedLock) {
	waits := slices.ContainsFunc(slices.Collect(maps.Values(l.waits)), func(w *judgedHold) bool { return w.most != 0 })
	if !waits && !h.redisson && !j.deadLinks && j.harmedUntil(h.client, h.lock, true) < h.unlocks {
		l.empty = h.unlocks
	}
}

// touched notes that the lock was taken, or released: the servers are looked at once a second only.
func (l *judgedLock) touched(at time.Duration) {
	if l.owner == "" {
		l.since, l.told = at, false
	}
}

// leaves notes that the call does not wait any longer.
func (l *judgedLock) leaves(h *judgedHold, at time.Duration) {
	if l.waits[h.call] != nil && h.most != 0 {
		h.client.wanted[h.lock], l.left = at, at
		if !h.reads {
			l.wrote = at
		}
	}
	delete(l.waits, h.call)
	l.heads(at)
}

// forget drops a call that is over, or whose process is gone.
func (j *judging) forget(h *judgedHold) {
	l := j.lock(h.lock)
	l.leaves(h, j.now)
	delete(j.holds, h.call)
	for _, key := range j.keysOf(h.lock) {
		of := j.lock(key)
		if h.has && key == h.key || j.mayHave(h, of) { // a call that began later, and was refused, has not taken it
			h.client.ends[key] = j.now
		}
		of.live = slices.DeleteFunc(of.live, func(o *judgedHold) bool { return o == h })
	}
	l.live = slices.DeleteFunc(l.live, func(o *judgedHold) bool { return o == h })
}

// passes lets time go on to this moment: what lasted too long by then is a violation.
func (j *judging) passes(to time.Duration) {
	for _, name := range j.lockNames() {
		if l := j.locks[name]; l != nil && !j.stopped {
			j.counts(name, l, to)
		}
	}
	for _, h := range j.holds {
		if j.Servers > 1 && h.lives() && !j.stopped {
			j.shares.Lived.over(j.now, to, j.allWellFrom(h.client, h.lock))
		}
	}
	j.now = to
	for _, name := range j.lockNames() {
		if l := j.locks[name]; l != nil {
			j.handsOver(name, l)
			j.hearsWaited(name, l)
		}
	}
	j.overdue()
	if j.stopped {
		return
	}
	for _, name := range j.lockNames() {
		if l := j.locks[name]; l != nil && !l.told {
			j.sleeps(name, l)
		}
	}
	for _, name := range j.keyNames() {
		if l := j.locks[name]; l != nil {
			for _, field := range slices.Sorted(maps.Keys(l.fields)) {
				j.nobodys(name, l, field)
			}
		}
	}
}

// slot takes in the slot that the hold has, and returns its lock; that of the hold where it has no slot.
func (j *judging) slot(h *judgedHold, slot string) *judgedLock {
	if h.key = h.lock; slot != "" {
		h.key = slot
	}
	if !slices.Contains(j.keysOf(h.lock), h.key) {
		j.violated(oneHolder, h.lock, "%s, call %d, got %s, and there are %d permits", h.client.name, h.call, h.key, j.kind(h.lock))
	}
	return j.lock(h.key)
}

// mayHave tells whether what the client has of the lock, as the servers have it, may be of the call.
func (j *judging) mayHave(h *judgedHold, l *judgedLock) bool {
	for field, f := range l.fields {
		if j.clientOf(field) == h.client && h.asked <= f.since {
			return true
		}
	}
	return false
}

// mustTake tells whether the call waits for the lock, and has to take it when it is free.
func (h *judgedHold) mustTake() bool {
	return h.most != 0 && !h.redisson && !h.all && h.client.gone == 0 && h.client.closes == 0
}

// openTo tells since when the lock has been open to the call, as the servers have it; what others read is, where nobody waits to write.
func (l *judgedLock) openTo(h *judgedHold) (since time.Duration, open bool) {
	if l.owner == "" {
		return l.since, true
	}
	for _, w := range l.waits {
		if !w.reads && w.most != 0 {
			return 0, false
		}
	}
	return max(l.reads, l.wrote), h.reads && l.reads > 0
}

// sleeps requires that a free lock is taken by who waits for it.
func (j *judging) sleeps(name string, l *judgedLock) {
	var first *judgedHold // of those that sleep, which has begun to wait first
	var free time.Duration
	for _, h := range l.waits {
		if !h.mustTake() || first != nil && first.asked < h.asked {
			continue
		}
		since, open := l.openTo(h)
		if !open {
			continue
		}
		from := max(since, h.asked, j.wellFrom(h.client, name))
		if j.now-from > lookMost || l.owner == "" && j.now-max(from, j.allWellFrom(h.client, name)) > freeMost && j.now-j.loneFrom(name) > freeMost {
			first, free = h, j.now-from
		}
	}
	if first != nil {
		l.told = true
		j.violated(nobodySleep, name, "%s, call %d, waits for it, and it has been free for %v", first.client.name, first.call, free)
	}
}

// goneClients is how many clients are gone that may have a place in the line of the lock still: nobody takes it out by their word.
func (j *judging) goneClients(lock string) int {
	n := 0
	for _, c := range j.byID {
		if j.leftPlace(c, lock) {
			n++
		}
	}
	return n
}

// leftPlace tells whether the client may have a place in the line of the lock, and is gone: it has said goodbye to no server, as far as is known.
func (j *judging) leftPlace(c *judgedClient, lock string) bool {
	at := c.gone
	if c.closed && c.hindered {
		at = c.closedAt
	}
	wanted, ever := c.wanted[lock]
	return at > j.lock(lock).empty && ever && at < max(wanted, j.harmedUntil(c, lock, true))+soon
}

// clientOf is the client with this field; nil for who is no client at all.
func (j *judging) clientOf(field string) *judgedClient {
	id, _, _ := strings.Cut(field, ":")
	return j.byID[id]
}

// nobodys requires that who has a lock has it for a call.
func (j *judging) nobodys(name string, l *judgedLock, field string) {
	c, f := j.clientOf(field), l.fields[field]
	if c == nil || c.redisson || f.told { // who is no client at all has been told of
		return
	}
	most := nobodyMost
	for _, h := range j.holds {
		if h.client != c || h.lock != lockOfKey(name) || h.has && h.key != name || h.asked > f.since { // a call that began later has not taken it
			continue
		}
		if h.has || h.all {
			return
		}
		most = askedMost
	}
	from, is := j.nobodysFrom(c, name, f)
	if taken := j.now - from; is && taken > most {
		f.told = true
		j.violated(nobodysLock, name, "%s has it by %s, and no call of its own, for %v", c.name, field, taken)
	}
}

// nobodysFrom is from when on the client may not have the lock without a call; never where it is none.
func (j *judging) nobodysFrom(c *judgedClient, name string, f *judgedField) (from time.Duration, is bool) {
	well := j.harmedUntil(c, name, false)
	from = max(f.since, well, c.ends[name], c.heard)
	switch {
	case c.gone > 0:
		from = max(from, c.gone+longest, well+longest) // what it has sent may arrive when its network is back
	case c.closed && (c.hindered && well > c.closes+unlockMost || c.had[name]):
		from = max(from, c.closedAt+longest)
	case c.closed:
		from = max(from, c.closedAt)
	case c.closes > 0:
		return 0, false
	}
	if kind := j.kind(lockOfKey(name)); kind != plain && j.lostSince(name, max(f.since-lookEach, j.now-longest)) { // a release that was forgotten is not sent again (P38, P43)
		return 0, false
	}
	switch {
	case j.lostSince(name, c.asked): // a client that has asked nothing since does not know that a server has forgotten a release (P38)
		return 0, false
	case j.lossBeside > c.ends[name] && c.heard > c.ends[name]+signsMost: // it has asked for the lock at a sign of another server before, and soon asks no more (P38)
		return 0, false
	}
	return from, true
}
