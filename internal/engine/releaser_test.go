package engine

import (
	"container/heap"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
)

// P3: the release of what may have been taken with a long lease is sent again ever more rarely, and often enough that what arrives late stays
// for no longer than about as long again as it was late.
func TestP3_ReleasesOfALongLeaseGrowRare(t *testing.T) {
	const lease = 24 * time.Hour
	r := &release{lease: lease}
	sent := 0
	for at := r.after(0); at < lease; {
		sent++
		next := r.after(sent)
		if at > time.Minute && next > at+time.Minute {
			t.Errorf("after %v the next one is sent %v later", at, next)
		}
		at += next
	}
	if sent > 20 {
		t.Errorf("%d releases within a lease of %v", sent, lease)
	}
}

// P3: each pause is the one that the rule names, and no longer than a third of the lease.
func TestP3_PausesOfAReleaseByNumber(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for lease, want := range map[time.Duration][]time.Duration{
		24 * time.Hour: {0, 100 * ms, s, 3 * s, 10 * s, 30 * s, 60 * s, 120 * s, 240 * s},
		30 * s:         {0, 100 * ms, s, 3 * s, 10 * s, 10 * s, 10 * s},
		30 * ms:        {0, 10 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms},
		ms:             {0, ms, ms},
	} {
		r := &release{lease: lease}
		for n, pause := range want {
			locktest.Equal(t, fmt.Sprintf("lease %v: pause %d", lease, n), r.after(n), pause)
		}
		locktest.Equal(t, fmt.Sprintf("lease %v: the last pause", lease), r.after(1000), max(lease/3, ms))
	}
}

// The releaser's list has the release in front that is due first, and each release knows its place in it.
func TestReleasesAreInTheirOrder(t *testing.T) {
	began := time.Now()
	var list releases
	places := func() {
		t.Helper()
		for i, r := range list {
			locktest.Equal(t, "the place of a release", r.index, i)
		}
	}
	for _, due := range []time.Duration{5, 2, 9, 1, 7, 3, 8, 4, 6} {
		heap.Push(&list, &release{due: began.Add(due * time.Second)})
		places()
	}
	removed := list[4]
	heap.Remove(&list, removed.index)
	locktest.Equal(t, "the place of one that was removed", removed.index, -1)
	n := 0
	for last := began; list.Len() > 0; n++ {
		places()
		r := heap.Pop(&list).(*release)
		if r.due.Before(last) || r.index != -1 {
			t.Errorf("due after %v, its place is %d; the one before was due after %v", r.due.Sub(began), r.index, last.Sub(began))
		}
		last = r.due
	}
	locktest.Equal(t, "releases", n, 8)
}

// P3, Inv9: a release without an answer is sent again each third of the lease, but not while it waits to be written. A lease after Redis was
// heard of the release is dropped. One that is being written then stays until it is answered.
func TestP3_ReleaseWithoutAnAnswer(t *testing.T) {
	const lease = 30 * time.Second
	const one = "0 locks, 0 holds, 1 releases"
	for what, c := range map[string]struct {
		written, takenBack bool
		heard              bool // of Redis, as the release begins
		sent               []time.Duration
		books              string
	}{
		"written":                      {written: true, heard: true, sent: []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		"written, and nothing heard":   {written: true, sent: []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, books: one},
		"not written":                  {takenBack: true, heard: true, sent: []time.Duration{0}},
		"not written, nothing heard":   {takenBack: true, sent: []time.Duration{0}, books: one},
		"written as the lease is over": {heard: true, sent: []time.Duration{0}, books: one},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				client, store := newFakeClient(t, new(fakeBus), Limits{})
				store.takeBack = c.takenBack
				if c.written {
					store.onSend(func(caller scripts.Caller) { caller.Sending(nil) })
				}
				began := time.Now()
				a := takenBy(client, "l", lease)
				client.releaser.release(a)
				if c.heard {
					a.hear()
				}
				locktest.Sleep(lease + time.Second)
				locktest.DeepEqual(t, "sent", store.releases("l", began), c.sent)
				locktest.Equal(t, "books", client.Books(), c.books)
				if c.takenBack {
					return
				}
				all := store.all()
				late := all[len(all)-1].caller
				if !c.written {
					late.Sending(nil)
				}
				late.Answered(scripts.Answer{Held: true}, nil)
				locktest.Equal(t, "books after a late answer", client.Books(), "")
			})
		})
	}
}

// P3: a release that has failed again and again is repeated after the outage as soon as one that is new, for what arrives late then.
func TestP3_QuickRepeatsAfterAnOutage(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		began := time.Now()
		store.answers(func(string) error {
			if time.Since(began) < time.Minute {
				return io.EOF
			}
			return nil
		})
		c.releaser.release(inDoubt(c, "l", 23*time.Hour))
		locktest.Sleep(3 * time.Minute)
		at := store.releases("l", began)
		back := slices.IndexFunc(at, func(d time.Duration) bool { return d >= time.Minute })
		var pauses []time.Duration
		for i := range at[1:] {
			pauses = append(pauses, at[i+1]-at[i])
		}
		if longest := slices.Max(pauses[:back]); longest > time.Second {
			t.Errorf("a pause of %v in the outage", longest)
		}
		locktest.DeepEqual(t, "pauses after it", pauses[back:], []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute})
	})
}

// P3: Redis is heard of by the answer to a release that was sent when the attempt had ended, and by none from before.
func TestP3_HeardOfAfterTheAttempt(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const lease = 30 * time.Second
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		store.onSend(func(caller scripts.Caller) { caller.Sending(nil) })
		a := &attempts{keys: scripts.KeysOf("l"), field: c.newField(), lease: lease}
		a.Sent()
		c.releaser.abandon(a)
		locktest.Sleep(time.Second)
		a.Answered(scripts.Answer{}, io.EOF)
		store.all()[0].caller.Answered(scripts.Answer{}, nil)
		locktest.Sleep(3 * lease)
		locktest.Equal(t, "books, where a release was answered that was sent before", c.Books(), "0 locks, 0 holds, 1 releases")
		all := store.all()
		all[len(all)-1].caller.Answered(scripts.Answer{}, nil)
		locktest.Sleep(2 * lease)
		locktest.Equal(t, "books, where one was answered that was sent after", c.Books(), "")
	})
}

// P3: a release waits for Redis to be heard of, whatever time that takes; but where too many do each ends a lease after its last attempt.
func TestP3_ReleasesThatWaitForRedisAreBounded(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const lease = 3 * time.Second
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		store.answers(func(string) error { return io.EOF })
		c.releaser.release(inDoubt(c, "l", lease))
		locktest.Sleep(time.Hour)
		locktest.Equal(t, "books", c.Books(), "0 locks, 0 holds, 1 releases")
		for range maxUnheard + 100 {
			c.releaser.release(inDoubt(c, "l", lease))
		}
		locktest.Sleep(lease - time.Second)
		locktest.Equal(t, "books within a lease", c.Books(), fmt.Sprintf("0 locks, 0 holds, %d releases", maxUnheard+100))
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "books after a lease", c.Books(), fmt.Sprintf("0 locks, 0 holds, %d releases", maxUnheard))
	})
}

// P12: what an attempt may have taken is owed until a release is confirmed that was sent after the attempt had its outcome, also where that
// was no answer.
func TestP12_OwedUntilAReleaseFollowsTheAttempt(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		store.answers(func(string) error { return nil })
		a := &attempts{keys: scripts.KeysOf("l"), field: c.newField(), lease: time.Minute}
		a.Sent()
		began := time.Now()
		c.releaser.abandon(a)
		locktest.Sleep(500 * time.Millisecond)
		locktest.DeepEqual(t, "sent while the attempt is under way", store.releases("l", began), []time.Duration{100 * time.Millisecond})
		locktest.Equal(t, "owed", c.releaser.owesAny(), true)
		store.onSend(nil)
		a.Answered(scripts.Answer{}, io.EOF)
		locktest.Sleep(time.Millisecond)
		all := store.all()
		locktest.Equal(t, "releases when the attempt is over", len(all), 2)
		locktest.Equal(t, "owed before the second is answered", c.releaser.owesAny(), true)
		all[1].caller.Sending(nil)
		all[1].caller.Answered(scripts.Answer{}, nil)
		locktest.Equal(t, "owed after that", c.releaser.owesAny(), false)
	})
}

// P12: Close sends at once what is not known to be freed, and nothing else: neither what was freed, nor what is under way, nor what waits for
// the answer to an attempt.
func TestP12_WhatCloseSendsAtOnce(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const lease = 23 * time.Hour
		const ms, s = time.Millisecond, time.Second
		var log locktest.Log
		c, store := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log))
		store.onSend(func(caller scripts.Caller) {
			caller.Sending(nil)
			switch caller.(*sentRelease).attempts.keys.Lock {
			case "freed":
				caller.Answered(scripts.Answer{}, nil)
			case "refused":
				caller.Answered(scripts.Answer{}, locktest.Reply("ERR refused by somebody on the way"))
			}
		})
		began := time.Now()
		c.releaser.release(inDoubt(c, "freed", lease))
		locktest.Sleep(5 * s)
		c.releaser.release(takenBy(c, "refused", lease))
		locktest.Sleep(10 * s)
		c.releaser.release(takenBy(c, "under way", lease))
		locktest.Sleep(5*s - 50*ms)
		a := &attempts{keys: scripts.KeysOf("asking"), field: c.newField(), lease: lease}
		a.Sent()
		c.releaser.abandon(a)
		locktest.Sleep(50 * ms)
		c.releaser.sendAllNow()
		locktest.Sleep(ms)
		for lock, want := range map[string][]time.Duration{
			"freed":     {0, 100 * ms, 1100 * ms, 4100 * ms, 14100 * ms},
			"refused":   {5 * s, 5100 * ms, 6100 * ms, 9100 * ms, 19100 * ms, 20 * s},
			"under way": {15 * s},
			"asking":    nil,
		} {
			locktest.DeepEqual(t, "sent of "+lock, store.releases(lock, began), want)
		}
	})
}

// P12: Close says how many locks it leaves taken, and keeps none of them on its books. A release that fails after Close is told too, but for
// the rest of one that most of several servers have confirmed.
func TestP12_CloseSaysWhatItLeaves(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const line = "closed before a release was confirmed"
		var log locktest.Log
		c, store := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log))
		store.answers(func(lock string) error {
			if lock == "freed" {
				return nil
			}
			return io.EOF
		})
		c.releaser.release(takenBy(c, "a", time.Minute))
		c.releaser.release(takenBy(c, "b", time.Minute))
		c.releaser.release(inDoubt(c, "freed", time.Minute))
		locktest.Sleep(time.Second)
		locktest.Equal(t, "books", c.Books(), "0 locks, 0 holds, 3 releases")
		locktest.NoError(t, c.Close())
		locktest.Equal(t, "lines at Close", log.Count(line), 1)
		locktest.Equal(t, "lines that say how many", log.Count("locks=2"), 1)
		locktest.Equal(t, "books after Close", c.Books(), "")
		sent := len(store.all())

		locktest.Sleep(time.Minute)
		c.releaser.release(takenBy(c, "late", time.Minute))
		synctest.Wait()
		locktest.Equal(t, "lines of a release after Close", log.Count("lock=late locks=1"), 1)
		c.releaser.releaseRest(takenBy(c, "rest", time.Minute), time.Time{})
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "lines", log.Count(line), 2)
		locktest.Equal(t, "releases that were sent after Close", len(store.all())-sent, 0)
		locktest.Equal(t, "books in the end", c.Books(), "")
	})
}

// A hold has one entry on the releaser's list, however often it is given to the releaser, and gets another one when that is over.
func TestOneReleaseOfAHold(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		a := takenBy(c, "l", time.Minute)
		c.releaser.release(a)
		c.releaser.releaseHeld(a)
		locktest.Equal(t, "books", c.Books(), "0 locks, 0 holds, 1 releases")
		store.answers(func(string) error { return nil })
		locktest.Sleep(time.Second)
		locktest.Equal(t, "books when it is confirmed", c.Books(), "")
		locktest.Equal(t, "releases", len(store.all()), 1)
		store.all()[0].caller.(*sentRelease).attempted() // the answer to an attempt has met the end of the release
		locktest.Equal(t, "books after that", c.Books(), "")

		a.Sent()
		a.Answered(scripts.Answer{Held: true}, nil) // a late attempt took the lock after all
		c.releaser.release(a)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "releases in the end", len(store.all()), 2)
		locktest.Equal(t, "books in the end", c.Books(), "")
	})
}

// A release that is delayed is told once, and its end once: for how long it was delayed, and whether Redis has confirmed it.
func TestTraceOfDelayedReleases(t *testing.T) {
	for what, c := range map[string]struct {
		after     time.Duration // the store confirms releases from then on; 0: never
		says      error         // until then
		closes    bool
		onlyEnds  bool // the user wants to be told of ends alone
		confirmed bool
		took      time.Duration
	}{
		"confirmed":            {after: 5 * time.Second, says: os.ErrDeadlineExceeded, confirmed: true, took: 5100 * time.Millisecond},
		"told of ends alone":   {after: 5 * time.Second, says: os.ErrDeadlineExceeded, onlyEnds: true, confirmed: true, took: 5100 * time.Millisecond},
		"the lease is over":    {says: locktest.Reply("ERR refused by somebody on the way"), took: 34100 * time.Millisecond},
		"the client is closed": {says: os.ErrDeadlineExceeded, closes: true, took: 3 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				var log locktest.Log
				delayed, ended := make(chan locktrace.ReleaseDelayed, 9), make(chan locktrace.ReleaseEnded, 9)
				client, store := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log), func(s *Settings) {
					s.UnlockTimeout = time.Second
					s.Trace = &locktrace.Trace{
						ReleaseDelayed: func(e locktrace.ReleaseDelayed) { delayed <- e },
						ReleaseEnded:   func(e locktrace.ReleaseEnded) { ended <- e },
					}
					if c.onlyEnds {
						s.Trace.ReleaseDelayed = nil
					}
				})
				began := time.Now()
				store.answers(func(string) error {
					if c.after == 0 || time.Since(began) < c.after {
						return c.says
					}
					return nil
				})
				a := takenBy(client, "l", 30*time.Second)
				client.releaser.release(a)
				locktest.Sleep(2 * time.Second)
				if !c.onlyEnds {
					locktest.Equal(t, "told at first", len(delayed), 1)
					locktest.Equal(t, "told of", <-delayed, locktrace.ReleaseDelayed{Client: client.id, Lock: "l", Field: a.field})
				}
				locktest.Equal(t, "ends at first", len(ended), 0)
				if c.closes {
					locktest.NoError(t, client.Close())
				}
				locktest.Sleep(time.Minute)
				if len(delayed) != 0 || len(ended) != 1 {
					t.Fatalf("%d more are delayed and %d have ended", len(delayed), len(ended))
				}
				e := <-ended
				if e.Client != client.id || e.Lock != "l" || e.Field != a.field || e.Confirmed != c.confirmed || e.Took.Round(100*time.Millisecond) != c.took {
					t.Errorf("told of %+v, want %v after %v", e, c.confirmed, c.took)
				}
			})
		})
	}
}
