package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// A read-write lock. What writes has the lock's name in the history, and all rules of locks are about that, but for who is woken. What reads has another name
// there; what it reads behind the guard is of the lock's own register.

const (
	pageName = "page"
	pageRead = pageName + " read"
)

// pages are what clients of a scenario with a read-write lock want: four times of six to read, and once another lock.
var pages = []string{pageRead, pageRead, pageRead, pageRead, pageName, lockNames[0]}

// page is a side of the read-write lock, with the tokens of this caller's locks.
func page(client *rlock.Client, name string, opts ...fenced.Option) *fenced.Lock {
	l := fenced.NewRWLock(client, pageName, opts...)
	if name == pageRead {
		return l.Read()
	}
	return l.Write()
}

// read is what is done while the page is read: it is asked for under the token, again and again.
func (p *possession) read() {
	p.look()
	p.levels(1)
	for range 1 + p.rng.IntN(3) {
		o := p.rec.begin(op{Client: p.number, Kind: read, Lock: pageName, Hold: p.id, Token: p.token})
		n, err := p.writer().Do(p.held, "GET", p.register()).Int64()
		if isNil(err) {
			n, err = 0, nil
		}
		o.Value = n
		p.rec.end(o, outcomeOf(err), err)
		if !p.look() {
			return
		}
		p.pause(5)
	}
	if p.rng.IntN(4) == 0 {
		inner, token, err := p.lock.LockAndGetToken(p.held)
		if err != nil {
			p.clean = false
			return
		}
		if token != p.token {
			p.rec.end(p.rec.begin(op{Client: p.number, Kind: acquire, Lock: pageName, Token: token}), done, fmt.Errorf("a level has another token"))
		}
		p.levels(2)
		if p.lock.Unlock(inner) != nil {
			p.clean = false
		}
		p.look()
	}
	if p.rng.IntN(100) < p.Stays {
		p.stay(min(p.lease, clientLease) * 5 / 4)
	}
}

// pageRules requires that nobody reads while somebody writes, that the tokens of those who read are larger than that of a writer before them and smaller than that of
// one after them, that those do not become smaller, and that what is read under one token stays the same. The lock is free for no longer than the bound
// while somebody wants it.
func (t trial) pageRules(locks map[string][]op) (found []violation) {
	readers, writers := locks[pageRead], locks[pageName]
	if len(readers) == 0 {
		return nil
	}
	of := func(ops []op, kind string) []op {
		return slices.DeleteFunc(slices.Clone(ops), func(o op) bool { return o.Kind != kind || o.Outcome != done })
	}
	if t.promise.exclusive {
		for _, r := range of(readers, alive) {
			for _, w := range of(writers, alive) {
				if r.Return >= r.Call && w.Return >= w.Call && min(r.Return, w.Return) >= max(r.Call, w.Call) {
					found = append(found, violation{ruleReaders, pageName, fmt.Sprintf("%v while %v", r, w)})
				}
			}
		}
	}
	if t.promise.tokens {
		found = append(found, order(ruleTokens, readers, false, acquire)...)
		for _, r := range of(readers, acquire) {
			for _, w := range of(writers, acquire) {
				if w.Return < r.Call && w.Token >= r.Token || r.Return < w.Call && r.Token >= w.Token {
					found = append(found, violation{ruleTokens, pageName, fmt.Sprintf("%v and %v", r, w)})
				}
			}
		}
	}
	values := make(map[int64]op)
	isReader := make(map[int64]bool)
	for _, r := range of(readers, acquire) {
		isReader[r.ID] = true
	}
	for _, o := range of(writers, read) { // of the register, by those who read too
		if before, is := values[o.Token]; is && isReader[o.Hold] && isReader[before.Hold] && before.Value != o.Value && !t.again() {
			found = append(found, violation{ruleReaders, pageName, fmt.Sprintf("what is read changes under one token: %v and %v", before, o)})
		}
		values[o.Token] = o
	}
	return found
}

// readersSeen is how many holds read, and how many at once, for who looks at the rounds; nothing where there were none.
func (t trial) readersSeen() string {
	ops := byLock(t.Ops)
	n := 0
	for _, o := range ops[pageRead] {
		if o.Kind == acquire && o.Outcome == done {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d read, %d at once", n, atOnce(ops[pageRead]))
}

// writePage takes the page to write once, and unlocks it.
func writePage(client *rlock.Client) error {
	return page(client, pageName).Do(context.Background(), func(context.Context, int64) error { return nil }, rlock.Wait(grace))
}

// renamed are the ops as those of another lock.
func renamed(ops []op, lock string) []op {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Lock = lock
	}
	return ops
}
