package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/quorums"
)

// ServerPart is what one server of a quorum says of a lock.
type ServerPart struct {
	Server string // its address
	Lock   Lock   // the lock on this server alone
	Err    error  // why the server says nothing; Lock is empty then
	Home   bool   // the lock's home: clients wait there
}

// view is what several servers say of one lock.
type view struct {
	name   string
	home   int // of parts
	parts  []ServerPart
	counts []bool // whether the server counts where it names no holder: it has not forgotten one
}

// lock is the lock by the majority.
func (v *view) lock() Lock {
	v.parts[v.home].Home = true
	told := 0
	shares := map[string][]int{} // the parts, by the holder's field
	answers := 0
	others := map[string]int{}
	for i, p := range v.parts {
		if h := p.Lock.Holder; p.Err == nil && h != nil {
			shares[h.Field] = append(shares[h.Field], i)
			told = max(told, quorums.Of(h.Client))
		}
		if p.Err == nil && (p.Lock.Holder != nil || v.counts[i]) {
			answers++
		}
		others[p.Lock.Other]++
	}
	of := cmp.Or(told, len(v.parts)) // not all servers may be known here
	majority := of/2 + 1
	var most []int
	for _, share := range shares {
		if n := len(share) - len(most); n > 0 || n == 0 && share[0] < most[0] {
			most = share
		}
	}
	l := Lock{Name: v.name, Token: v.token(nil)}
	switch unknown := of - answers; {
	case len(most) >= majority:
		l = v.held(most, majority)
		l.Token = v.token(most)
	case answers < majority:
		l.Unknown = fmt.Sprintf("%d of %d servers answer and count, %d are needed to tell who has the lock", answers, of, majority)
	case len(most) > 0 && len(most)+unknown >= majority:
		l.Unknown = fmt.Sprintf("%d of %d servers name the holder %s, and %d may have it too", len(most), of, v.parts[most[0]].Lock.Holder.Field, unknown)
	}
	for _, p := range v.parts {
		if l.Holder == nil && p.Lock.Other != "" && others[p.Lock.Other] >= majority {
			l.Other = p.Lock.Other
		}
		l.Counter = cmp.Or(l.Counter, p.Lock.Counter)
		l.Quorum = max(l.Quorum, p.Lock.Quorum)
	}
	l.Line, l.Waiting = v.line()
	l.Servers = v.parts
	return l
}

// held is the lock of whom these servers name: as the one says that has heard of the holder last. The hold lasts as long as a majority has it.
func (v *view) held(share []int, majority int) Lock {
	slices.SortFunc(share, func(a, b int) int { return cmp.Compare(lasting(v.parts[b].Lock.TTL), lasting(v.parts[a].Lock.TTL)) })
	l := v.parts[share[0]].Lock
	for _, i := range share {
		if other := v.parts[i].Lock; newer(l.Holder.By, other.Holder.By) != l.Holder.By {
			l = other
		}
	}
	l.TTL, l.Other = v.parts[share[majority-1]].Lock.TTL, ""
	return l
}

// lasting is the rest of a lease as a number to compare.
func lasting(ttl time.Duration) time.Duration {
	if ttl == NoExpiry {
		return math.MaxInt64
	}
	return ttl
}

// token is the last token: the one that most of these servers have, or of all if there are none. Of a failed attempt a minority may have a larger one.
func (v *view) token(of []int) (token int64) {
	count := map[int64]int{}
	for i, p := range v.parts {
		if p.Err == nil && (len(of) == 0 || slices.Contains(of, i)) && p.Lock.Token > 0 {
			count[p.Lock.Token]++
		}
	}
	for t, n := range count {
		if c := count[token]; n > c || n == c && t > token {
			token = t
		}
	}
	return token
}

// line is who waits: those at the home first. Clients for which another server is the home, or which found it away, wait there.
func (v *view) line() (line []Waiter, waiting int) {
	known := map[string]int{}
	home := v.parts[v.home]
	for _, p := range append([]ServerPart{home}, v.parts...) {
		waiting = max(waiting, p.Lock.Waiting)
		for _, w := range p.Lock.Line {
			key := w.Client + w.Mode
			if i, is := known[key]; !is {
				known[key] = len(line)
				line = append(line, w)
			} else if newer(line[i].By, w.By) != line[i].By {
				line[i] = w
			}
		}
	}
	return line[:min(len(line), MaxLine)], max(waiting, len(line))
}
