package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// renewed is the lease of a hold that the watchdog renews.
const renewed = 30 * time.Second

// renewedLease is the lease of holds that the client's watchdog renews.
func (j *judging) renewedLease(c *judgedClient) time.Duration {
	if place, ok := placeOf(c.name); ok && place < len(j.Clients) && j.Clients[place].Lease > 0 {
		return j.Clients[place].Lease
	}
	return renewed
}

// redisPatience is the default of rlock.WithPatience.
const redisPatience = 10 * time.Second

// promised is the longest lease that was promised to the hold.
func (h *judgedHold) promised() time.Duration {
	if h.lease > 0 && !h.reenters {
		return max(h.lease, h.extended)
	}
	return max(h.lease, h.extended, renewed)
}

// lives tells whether the context of the hold lives.
func (h *judgedHold) lives() bool { return h.has && !h.ended && h.unlocks == 0 }

// open requires that the client that has taken the lock is open.
func (j *judging) open(h *judgedHold) {
	if c := h.client; c.closed && c.closedAt < j.now && !h.redisson {
		h.told = true
		j.violated(closeEnds, h.lock, "%s, call %d, got it, and the client is closed since %v", c.name, h.call, c.closedAt)
	}
}

// alone requires that no other hold of the lock is alive, but for those that read where this one does. A hold whose data is gone may live for its lease, and one whose answer was late may
// begin after its data is gone.
func (j *judging) alone(h *judgedHold, l *judgedLock) {
	if j.forgottenSince(h.lock, h.leased) {
		return
	}
	for _, o := range l.live {
		if !o.lives() || o.exported || o.redisson || o.reads && h.reads || j.forgottenSince(h.lock, max(o.asked, j.now-o.promised()-wayThere)) {
			continue
		}
		j.violated(oneHolder, h.lock, "%s, call %d, got it while %s, call %d, has it with token %d since %v", h.client.name, h.call, o.client.name, o.call, o.token, o.got)
	}
}

// grows requires that the token is larger than those of acquires that had returned when this one was called.
func (j *judging) grows(h *judgedHold, l *judgedLock, token int64) {
	if j.Plain && l.kind <= 0 && h.key == h.lock {
		return
	}
	if b := h.before[h.key]; b != nil && (token < b.token || token == b.token && !(h.reads && b.reads)) && !j.tokensLost(h, b) {
		j.violated(tokensGrow, h.lock, "%s, call %d, got token %d, after %s, call %d, had got %d", h.client.name, h.call, token, b.client.name, b.call, b.token)
	}
	h.token = token
	if b := l.largest; b == nil || token > b.token || j.tokensLost(h, b) {
		kept := *h
		kept.before = nil
		l.largest = &kept
	}
	h.before[h.key] = l.largest
}

// same requires that a re-entry has its hold's token.
func (j *judging) same(h *judgedHold, token int64) {
	if token != h.token {
		j.violated(tokensGrow, h.lock, "%s, call %d, has token %d, and its re-entry got %d WithStableToken", h.client.name, h.call, h.token, token)
	}
}

// tokensLost tells whether the counter of tokens may have been lost between these two. Who deletes a lock leaves its counter, and so does who
// sets a clock. Nodes of a quorum that start anew have their clocks in its place.
func (j *judging) tokensLost(h, before *judgedHold) bool {
	if j.Floor && !j.clock && !h.redisson && !before.redisson {
		return false
	}
	return slices.ContainsFunc(j.losses, func(l loss) bool { return l.tokens && (!l.young || j.clock) && l.at >= before.asked })
}

// owned takes in who has the lock, as the servers have it.
func (j *judging) owned(l *judgedLock, e event) {
	l.owner, l.since, l.seen, l.told = e.Text, e.At, e.At, false
	before, writes := l.fields, false
	l.fields = make(map[string]*judgedField)
	for _, field := range strings.Fields(e.Text) {
		writes = writes || strings.HasSuffix(field, ":write")
		c := j.clientOf(field)
		if c == nil {
			j.violated(nobodysLock, e.Lock, "%s has it, and is no client's", field)
		}
		if l.fields[field] = before[field]; before[field] == nil {
			l.fields[field] = &judgedField{since: e.At}
		}
		for _, h := range l.live {
			if h.client == c && h.field == "" && !h.reads {
				h.field = field
			}
		}
	}
	switch reads := l.kind == pages && e.Text != "" && !writes; {
	case !reads:
		l.reads = 0
	case l.reads == 0:
		l.reads = e.At
	}
	if name := lockOfKey(e.Lock); name != e.Lock {
		j.isFull(name, j.lock(name), e)
	}
}

// isFull takes in whether a slot of a semaphore is free, as the servers have it.
func (j *judging) isFull(name string, l *judgedLock, e event) {
	full := e.Text
	for _, key := range j.keysOf(name) {
		if j.lock(key).owner == "" {
			full = ""
		}
	}
	if (full == "") != (l.owner == "") {
		l.since, l.told = e.At, false
	}
	l.owner = full
}

// keeps requires that a hold is lost for a reason: the end of its lease, or a fault that leaves its renewals no time; and that its own Unlock
// alone unlocks it.
func (j *judging) keeps(h *judgedHold, e event) {
	if h.exported && (e.Text == "unlocked" || e.Text == "lost") {
		return // it may have been imported, and its client need not have heard of that
	}
	if e.Text == "unlocked" {
		j.violated(staysHeld, h.lock, "%s, call %d, has been unlocked after %v, and not by its Unlock", h.client.name, h.call, j.now-h.got)
	}
	if e.Text != "lost" || h.told || h.lost || h.redisson || h.client.closes > 0 || j.lostSince(h.lock, h.asked) || h.all && len(j.losses) > 0 {
		return
	}
	h.lost = true
	if kept := h.kept - h.extended/50 - wayThere; j.now < kept && h.kept > 0 {
		h.told = true
		j.violated(extendKept, h.lock, "%s, call %d, has lost it after %v, and its lease was extended for %v more", h.client.name, h.call, j.now-h.got, h.kept-j.now)
		return
	}
	if h.lease > 0 && j.now >= h.leased+h.lease-h.lease/50-wayThere {
		return
	}
	lease := j.renewedLease(h.client)
	from := max(h.leased, j.now-lease*2/3) // a renewal begins after a third of the lease, and a sixth is time enough for it
	if h.lease == 0 && from > h.leased && j.wellFor(h.client, h.lock, from, j.now) < lease/6 {
		return
	}
	h.told = true
	j.violated(staysHeld, h.lock, "%s, call %d, has lost it after %v, and nothing was broken for long", h.client.name, h.call, j.now-h.got)
}

// overdue requires of each call, hold and client that it has ended when it should have. Faults excuse none.
func (j *judging) overdue() {
	for _, c := range j.clients {
		if took := j.now - c.closes; c.closing && c.gone == 0 && took > c.closeMost {
			c.closing = false
			j.violated(endsInTime, "", "%s is not closed after %v", c.name, took)
		}
	}
	var late []*judgedHold
	for _, h := range j.holds {
		if !h.redisson && !h.told {
			if rule, _ := j.late(h); rule != "" {
				late = append(late, h)
			}
		}
	}
	slices.SortFunc(late, func(a, b *judgedHold) int { return cmp.Compare(a.call, b.call) })
	for _, h := range late {
		rule, text := j.late(h)
		h.told = true
		j.violated(rule, h.lock, "%s, call %d, %s", h.client.name, h.call, text)
	}
}

// late returns the rule by which the call or its hold should have ended by now; "" for none.
func (j *judging) late(h *judgedHold) (rule, text string) {
	c := h.client
	switch {
	case !h.has:
		if by, bound := j.callEnds(h); bound && j.now > by {
			return endsInTime, fmt.Sprintf("goes on after %v, and was to take %v at most", j.now-h.asked, by-h.asked)
		}
	case h.unlocks > 0:
		if took := j.now - h.unlocks; took > unlockMost+wayThere {
			return endsInTime, fmt.Sprintf("is not unlocked after %v", took)
		}
	case h.ended:
	case c.closed && j.now > c.closedAt+wayThere:
		return closeEnds, fmt.Sprintf("has a context that lives, and the client is closed since %v", c.closedAt)
	case h.lease > 0 && !h.reenters && j.now > max(h.got+h.lease, h.mayLast) && h.extending == 0:
		return contextEnds, fmt.Sprintf("has a context that lives, and had its lease of %v at %v", h.lease, h.got)
	default:
		lost, since := j.notHad(h)
		switch {
		case !lost:
		case j.now > since+h.promised()+wayThere:
			return losesInTime, fmt.Sprintf("has a context that lives, and Redis has %q in its place since %v", j.lock(h.key).owner, since)
		case !h.exported && j.lock(h.key).seen > 0 && j.now > max(since, h.got+lookEach) && !j.lostSince(h.lock, h.asked):
			return contextEnds, fmt.Sprintf("has a context that lives, and Redis has %q in its place since %v, and has lost nothing", j.lock(h.key).owner, since)
		}
	}
	return "", ""
}

// callEnds is when a call must be over; not bound where it waits for as long as it takes.
func (j *judging) callEnds(h *judgedHold) (by time.Duration, bound bool) {
	slack := wayThere
	if h.all { // what it has got is released first
		slack += unlockMost
	}
	if h.imports != nil {
		slack += redisPatience
	}
	by, bound = h.asked+h.most+slack, h.most >= 0
	sooner := func(end time.Duration) {
		if !bound || end < by {
			by, bound = end, true
		}
	}
	if j.stopped {
		sooner(max(j.stops, h.asked) + slack)
	}
	switch c := h.client; {
	case c.closes > 0 && h.most != 0 && !(h.within && c.shuts):
		sooner(max(c.closes, h.asked) + slack - wayThere + wakeMost)
	case c.closed:
		sooner(max(c.closedAt, h.asked) + slack)
	}
	return by, bound
}

// notHad tells whether the servers have somebody else, or nobody, in place of the hold, and since when. Several servers may have it again for a
// moment that nobody looks at: while they are broken they excuse it.
func (j *judging) notHad(h *judgedHold) (is bool, since time.Duration) {
	l := j.lock(h.key)
	for field := range l.fields {
		if j.clientOf(field) == h.client && (h.field == "" || h.field == field) {
			return false, 0
		}
	}
	if since = max(l.seen, h.got); j.Servers > 1 {
		since = max(since, j.allWellFrom(h.client, h.lock))
	}
	return true, since
}

// extends takes in that an Extend is over. One that has failed may have been done.
func (j *judging) extends(h *judgedHold, e event) {
	h.mayLast = max(h.mayLast, j.now+h.extending)
	if e.Text == "" {
		h.kept = max(h.kept, h.extendsAt+h.extending)
	}
	h.extending = 0
	if e.Text != "" && e.Text != "lost" && j.isPlain(h, h.extendsAt, e.Text) {
		j.violated(noFailures, h.lock, "%s, call %d: Extend says %s", h.client.name, h.call, e.Text)
	}
}

// remains requires that the lease lasts for as long as Extend has said.
func (j *judging) remains(h *judgedHold, e event) {
	if short := h.kept - h.extended/50 - remainsMost - j.now - e.For; short > 0 && h.client.closes == 0 && !j.lostSince(h.lock, h.asked) {
		j.violated(extendKept, h.lock, "%s, call %d: its lease lasts for %v, and was extended for %v more", h.client.name, h.call, e.For, h.kept-j.now-e.For)
	}
}

// levels requires that no level of a hold fails for nothing.
func (j *judging) levels(h *judgedHold, e event) {
	if e.Text != "lost" && j.isPlain(h, j.now-e.For, e.Text) {
		j.violated(noFailures, h.lock, "%s, call %d: a level of its hold has failed: %s", h.client.name, h.call, e.Text)
	}
}

// isPlain tells whether the error of a call in a hold, from this time on, is that of no fault, and of no end of the hold.
func (j *judging) isPlain(h *judgedHold, from time.Duration, why string) bool {
	return !h.redisson && !h.ended && h.client.closes == 0 && !j.stopped && from >= j.cleanFrom(h.client, h.lock) && why != "gave up"
}
