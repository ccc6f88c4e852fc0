package main

import (
	"fmt"
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
	losesInTime = "P10: a hold that Redis has not got ends within a lease"
	nobodysLock = "P3, P38: no lock is taken that nobody holds"
	nobodySleep = "invariant 8: nobody sleeps on a free lock"
	nothingLeft = "invariant 9: nothing is left"
	itEnds      = "the world ends"
)

// The bounds, where nothing is broken.
const (
	longest    = 3 * time.Minute  // of the leases in plans
	wayThere   = time.Second      // what a call with wait 0 may take, and all others beyond their wait
	unlockMost = 5 * time.Second  // WithUnlockTimeout
	closeMost  = unlockMost + 2*time.Second
	freeMost   = soon             // for how long a lock that is waited for may be free
	askedMost  = silently + soon  // for how long a client may have a lock for a call that waits: its acquire had no answer
	nobodyMost = soon             // and for how long without one
)

// judge reads a history, and returns what is wrong with it.
func judge(p plan, history []event) []violation {
	j := judging{plan: p, clients: make(map[string]*judgedClient), locks: make(map[string]*judgedLock), byID: make(map[string]*judgedClient), holds: make(map[int]*judgedHold)}
	for _, e := range history {
		j.passes(e.At)
		j.reads(e)
	}
	return j.found
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
	settled time.Duration       // from when on the faults that are over no longer count
	losses  []loss
	stopped bool
}

// A loss is when data was lost: of one lock, or of all.
type loss struct {
	at   time.Duration
	lock string
}

type judgedClient struct {
	name, id      string
	redisson      bool
	gone          time.Duration // when it died; 0: it lives
	closes        time.Duration // when Close or Shutdown began; 0: not yet
	closeMost     time.Duration // what that may take
	closed        bool
	closedAt      time.Duration
	ends          map[string]time.Duration // when its last call of each lock was over
}

type judgedLock struct {
	owner   string        // as the servers have it
	since   time.Duration // when they were first seen to
	told    bool          // the violation
	largest *judgedHold   // of the holds whose acquire has returned
	live    []*judgedHold
	waits   map[int]*judgedHold
}

type judgedHold struct {
	client   *judgedClient
	lock     string
	call     int
	asked    time.Duration
	most     time.Duration
	got      time.Duration
	token    int64
	has      bool // the call has returned the lock
	ended    bool // its context has
	unlocks  time.Duration // 0: not yet
	redisson bool
}

func (j *judging) violated(rule, lock, format string, args ...any) {
	j.found = append(j.found, violation{rule, j.now, lock, fmt.Sprintf(format, args...)})
}

func (j *judging) lock(name string) *judgedLock {
	l := j.locks[name]
	if l == nil {
		l = &judgedLock{waits: make(map[int]*judgedHold)}
		j.locks[name] = l
	}
	return l
}

// lostSince tells whether what a server knew of the lock at this time may have been lost since.
func (j *judging) lostSince(lock string, at time.Duration) bool {
	return slices.ContainsFunc(j.losses, func(l loss) bool { return l.at >= at && (l.lock == "" || l.lock == lock) })
}

// reads takes in one event.
func (j *judging) reads(e event) {
	j.now = e.At
	c := j.clients[e.Client]
	switch e.Kind {
	case started:
		c = &judgedClient{name: e.Client, id: e.Text, redisson: j.isRedisson(e.Client), ends: make(map[string]time.Duration)}
		j.clients[e.Client], j.byID[e.Text] = c, c
	case died:
		c.gone = e.At
		for _, h := range j.holds {
			if h.client == c {
				j.forget(h)
			}
		}
	case closes:
		c.closes, c.closeMost = e.At, closeMost
		if e.Text == "Shutdown" {
			c.closeMost += shutdownFor
		}
	case closed:
		if took := e.At - c.closes; took > c.closeMost {
			j.violated(endsInTime, "", "%s took %v to close", e.Client, took)
		}
		c.closed, c.closedAt = true, e.At
	case begins:
		j.broken++
	case ends:
		j.broken--
		j.settled = max(j.settled, e.At+e.For)
	case lost:
		j.losses = append(j.losses, loss{e.At, e.Lock})
	case stops:
		j.stopped = true
	case has:
		l := j.lock(e.Lock)
		l.owner, l.since, l.told = e.Text, e.At, false
	case left:
		j.leftover(e)
	case asks:
		h := &judgedHold{client: c, lock: e.Lock, call: e.Call, asked: e.At, most: e.For, redisson: c.redisson}
		j.holds[e.Call] = h
		j.lock(e.Lock).waits[e.Call] = h
	default:
		if h := j.holds[e.Call]; h != nil {
			j.readsOf(h, e)
		}
	}
}

func (j *judging) isRedisson(name string) bool {
	var place, n int
	_, err := fmt.Sscanf(name, "c%d.%d", &place, &n)
	return err == nil && place < len(j.Clients) && j.Clients[place].Redisson
}

// readsOf takes in one event of a call or its hold.
func (j *judging) readsOf(h *judgedHold, e event) {
	l := j.lock(h.lock)
	switch e.Kind {
	case got:
		delete(l.waits, h.call)
		h.has, h.got, h.token = true, e.At, e.Token
		l.touched(e.At)
		j.inTime(h)
		j.alone(h, l)
		j.grows(h, l, e.Token)
		l.live = append(l.live, h)
	case nested:
		j.grows(&judgedHold{client: h.client, lock: h.lock, call: h.call, asked: h.asked, got: e.At, token: e.Token, redisson: h.redisson}, l, e.Token)
	case refused:
		j.inTime(h)
		j.forget(h)
	case ended:
		h.ended = true
	case counted:
		if e.Count != e.Levels && !j.lostSince(h.lock, h.asked) {
			j.violated(countsOnce, h.lock, "%s, call %d: HoldCount is %d, and %d levels are open", h.client.name, h.call, e.Count, e.Levels)
		}
	case unlocks:
		h.unlocks = e.At
	case unlocked:
		if took := e.At - h.unlocks; took > unlockMost+wayThere && !h.redisson {
			j.violated(endsInTime, h.lock, "%s, call %d: Unlock took %v", h.client.name, h.call, took)
		}
		l.touched(e.At)
		j.forget(h)
	}
}

// touched notes that the lock was taken, or released: the servers are looked at once a second only.
func (l *judgedLock) touched(at time.Duration) {
	if l.owner == "" {
		l.since, l.told = at, false
	}
}

// forget drops a call that is over, or whose process is gone.
func (j *judging) forget(h *judgedHold) {
	l := j.lock(h.lock)
	delete(l.waits, h.call)
	delete(j.holds, h.call)
	h.client.ends[h.lock] = j.now
	l.live = slices.DeleteFunc(l.live, func(o *judgedHold) bool { return o == h })
}

// inTime requires that a call ends with its wait.
func (j *judging) inTime(h *judgedHold) {
	if h.most < 0 || h.redisson || j.stopped {
		return
	}
	if took := j.now - h.asked; took > h.most+wayThere {
		j.violated(endsInTime, h.lock, "%s, call %d took %v, and should have %v at most", h.client.name, h.call, took, h.most)
	}
}

// alone requires that no other hold of the lock is alive.
func (j *judging) alone(h *judgedHold, l *judgedLock) {
	for _, o := range l.live {
		if o.ended || o.unlocks > 0 || o.redisson || h.redisson || j.lostSince(h.lock, o.asked) {
			continue
		}
		j.violated(oneHolder, h.lock, "%s, call %d, got it with token %d while %s, call %d, has it with token %d since %v", h.client.name, h.call, h.token, o.client.name, o.call, o.token, o.got)
	}
}

// grows requires that the token is larger than those of acquires that had returned when this one was called.
func (j *judging) grows(h *judgedHold, l *judgedLock, token int64) {
	if before := l.largest; before != nil && before.got < h.asked && token <= before.token {
		if !j.lostSince(h.lock, before.asked) || j.Floor && !j.clockSet() && !h.redisson && !before.redisson {
			if !(j.Stable && before.call == h.call) {
				j.violated(tokensGrow, h.lock, "%s, call %d, got token %d, after %s, call %d, had got %d", h.client.name, h.call, token, before.client.name, before.call, before.token)
			}
		}
	}
	if before := l.largest; before == nil || token > before.token || j.lostSince(h.lock, before.asked) {
		kept := *h
		l.largest = &kept
	}
}

// clockSet tells whether the plan has a server's clock set, or Redisson's tokens, which have no floor.
func (j *judging) clockSet() bool {
	return slices.ContainsFunc(j.Faults, func(f fault) bool { return f.Kind == "clock" }) ||
		slices.ContainsFunc(j.Clients, func(c clientPlan) bool { return c.Redisson })
}

// passes lets time go on to this moment: what lasted too long by then is a violation.
func (j *judging) passes(to time.Duration) {
	j.now = to
	if j.broken > 0 || j.stopped {
		return
	}
	for _, name := range j.lockNames() {
		l := j.locks[name]
		if l == nil || l.told {
			continue
		}
		if l.owner == "" {
			j.sleeps(name, l)
		} else {
			j.nobodys(name, l)
		}
	}
}

// sleeps requires that a free lock is taken by who waits for it.
func (j *judging) sleeps(name string, l *judgedLock) {
	var first *judgedHold // which has begun to wait first
	for _, h := range l.waits {
		if h.most != 0 && !h.redisson && h.client.gone == 0 && h.client.closes == 0 && (first == nil || h.asked < first.asked) {
			first = h
		}
	}
	if first == nil {
		return
	}
	from := max(l.since, j.settled, first.asked)
	if free := j.now - from; free > freeMost {
		l.told = true
		j.violated(nobodySleep, name, "%s, call %d, waits for it, and it has been free for %v", first.client.name, first.call, free)
	}
}

// nobodys requires that who has a lock has it for a call.
func (j *judging) nobodys(name string, l *judgedLock) {
	id, _, _ := strings.Cut(l.owner, ":")
	c := j.byID[id]
	if c == nil || c.redisson {
		return
	}
	most, from := nobodyMost, l.since
	for _, h := range j.holds {
		if h.client != c || h.lock != name {
			continue
		}
		if h.has {
			return
		}
		most = askedMost
	}
	switch {
	case c.gone > 0:
		from = max(from, c.gone+longest)
	case c.closed:
		from = max(from, c.closedAt+longest)
	case c.closes > 0:
		return
	}
	from = max(from, j.settled, c.ends[name])
	if taken := j.now - from; taken > most {
		l.told = true
		j.violated(nobodysLock, name, "%s has it by %s, and no call of its own, for %v", c.name, l.owner, taken)
	}
}

// leftover requires that nothing is left.
func (j *judging) leftover(e event) {
	if e.Lock == "" {
		j.violated(nothingLeft, "", "%s", e.Text)
		return
	}
	id, _, _ := strings.Cut(e.Text, ":")
	c := j.byID[id]
	if c == nil || c.redisson || c.gone > 0 && j.now < c.gone+longest || c.closed && j.now < c.closedAt+longest {
		return
	}
	j.violated(nothingLeft, e.Lock, "%s has it by %s after the last Unlock", c.name, e.Text)
}
