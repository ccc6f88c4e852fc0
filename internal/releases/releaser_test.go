package releases

import (
	"container/heap"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
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
	var list queue
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
	for what, c := range map[string]struct {
		written, takenBack bool
		heard              bool // of Redis, as the release begins
		sent               []time.Duration
		listed             int
	}{
		"written":                      {written: true, heard: true, sent: []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		"written, and nothing heard":   {written: true, sent: []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, listed: 1},
		"not written":                  {takenBack: true, heard: true, sent: []time.Duration{0}},
		"not written, nothing heard":   {takenBack: true, sent: []time.Duration{0}, listed: 1},
		"written as the lease is over": {heard: true, sent: []time.Duration{0}, listed: 1},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				rl, client := newFake(new(locktest.Log))
				client.takeBack = c.takenBack
				if c.written {
					client.onSend(func(caller scripts.Caller) { caller.Sending(nil) })
				}
				began := time.Now()
				a := takenBy("l", lease)
				rl.Release(a)
				if c.heard {
					a.hear()
				}
				locktest.Sleep(lease + time.Second)
				locktest.DeepEqual(t, "sent", client.releases("l", began), c.sent)
				locktest.Equal(t, "listed", rl.Len(), c.listed)
				if c.takenBack {
					return
				}
				all := client.all()
				late := all[len(all)-1].caller
				if !c.written {
					late.Sending(nil)
				}
				late.Answered(scripts.Answer{Held: true}, nil)
				locktest.Equal(t, "listed after a late answer", rl.Len(), 0)
			})
		})
	}
}

// P3: a release that has failed again and again is repeated after the outage as soon as one that is new, for what arrives late then.
func TestP3_QuickRepeatsAfterAnOutage(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		rl, client := newFake(new(locktest.Log))
		began := time.Now()
		client.answers(func(string) error {
			if time.Since(began) < time.Minute {
				return io.EOF
			}
			return nil
		})
		rl.Release(unanswered("l", 23*time.Hour))
		locktest.Sleep(3 * time.Minute)
		at := client.releases("l", began)
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
		rl, client := newFake(new(locktest.Log))
		client.onSend(func(caller scripts.Caller) { caller.Sending(nil) })
		a := NewAttempts(scripts.KeysOf("l"), "client:1", lease)
		a.Sent()
		rl.Abandon(a)
		locktest.Sleep(time.Second)
		a.Answered(scripts.Answer{}, io.EOF)
		client.all()[0].caller.Answered(scripts.Answer{}, nil)
		locktest.Sleep(3 * lease)
		locktest.Equal(t, "listed, where a release was answered that was sent before", rl.Len(), 1)
		all := client.all()
		all[len(all)-1].caller.Answered(scripts.Answer{}, nil)
		locktest.Sleep(2 * lease)
		locktest.Equal(t, "listed, where one was answered that was sent after", rl.Len(), 0)
	})
}

// P3: a release waits for Redis to be heard of, whatever time that takes; but where too many do each ends a lease after its last attempt.
func TestP3_ReleasesThatWaitForRedisAreBounded(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const lease = 3 * time.Second
		rl, client := newFake(new(locktest.Log))
		rl.unheard = 50
		client.answers(func(string) error { return io.EOF })
		rl.Release(unanswered("l", lease))
		locktest.Sleep(time.Hour)
		locktest.Equal(t, "listed", rl.Len(), 1)
		for range rl.unheard + 100 {
			rl.Release(unanswered("l", lease))
		}
		locktest.Sleep(lease - time.Second)
		locktest.Equal(t, "listed within a lease", rl.Len(), rl.unheard+100)
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "listed after a lease", rl.Len(), rl.unheard)
	})
}

// P12: what an attempt may have taken is owed until a release is confirmed that was sent after the attempt had its outcome, also where that
// was no answer.
func TestP12_OwedUntilAReleaseFollowsTheAttempt(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		rl, client := newFake(new(locktest.Log))
		client.answers(func(string) error { return nil })
		a := NewAttempts(scripts.KeysOf("l"), "client:1", time.Minute)
		a.Sent()
		began := time.Now()
		rl.Abandon(a)
		locktest.Sleep(500 * time.Millisecond)
		locktest.DeepEqual(t, "sent while the attempt is under way", client.releases("l", began), []time.Duration{100 * time.Millisecond})
		locktest.Equal(t, "owed", rl.OwesAny(), true)
		client.onSend(nil)
		a.Answered(scripts.Answer{}, io.EOF)
		locktest.Sleep(time.Millisecond)
		all := client.all()
		locktest.Equal(t, "releases when the attempt is over", len(all), 2)
		locktest.Equal(t, "owed before the second is answered", rl.OwesAny(), true)
		all[1].caller.Sending(nil)
		all[1].caller.Answered(scripts.Answer{}, nil)
		locktest.Equal(t, "owed after that", rl.OwesAny(), false)
	})
}

// P12: Close sends at once what is not known to be freed, and nothing else: neither what was freed, nor what is under way, nor what waits for
// the answer to an attempt.
func TestP12_WhatCloseSendsAtOnce(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const lease = 23 * time.Hour
		const ms, s = time.Millisecond, time.Second
		var log locktest.Log
		rl, client := newFake(&log)
		client.onSend(func(caller scripts.Caller) {
			caller.Sending(nil)
			switch caller.(*sentRelease).attempts.Keys.Lock {
			case "freed":
				caller.Answered(scripts.Answer{}, nil)
			case "refused":
				caller.Answered(scripts.Answer{}, locktest.Reply("ERR refused by somebody on the way"))
			}
		})
		began := time.Now()
		rl.Release(unanswered("freed", lease))
		locktest.Sleep(5 * s)
		rl.Release(takenBy("refused", lease))
		locktest.Sleep(10 * s)
		rl.Release(takenBy("under way", lease))
		locktest.Sleep(5*s - 50*ms)
		a := NewAttempts(scripts.KeysOf("asking"), "client:1", lease)
		a.Sent()
		rl.Abandon(a)
		locktest.Sleep(50 * ms)
		rl.SendAllNow()
		locktest.Sleep(ms)
		for lock, want := range map[string][]time.Duration{
			"freed":     {0, 100 * ms, 1100 * ms, 4100 * ms, 14100 * ms},
			"refused":   {5 * s, 5100 * ms, 6100 * ms, 9100 * ms, 19100 * ms, 20 * s},
			"under way": {15 * s},
			"asking":    nil,
		} {
			locktest.DeepEqual(t, "sent of "+lock, client.releases(lock, began), want)
		}
	})
}

// P12: Close says how many locks it leaves taken, and keeps none of them on its books. A release that fails after Close is told too, but for
// the rest of one that most of several servers have confirmed.
func TestP12_CloseSaysWhatItLeaves(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		const line = "closed before a release was confirmed"
		var log locktest.Log
		rl, client := newFake(&log)
		client.answers(func(lock string) error {
			if lock == "freed" {
				return nil
			}
			return io.EOF
		})
		rl.Release(takenBy("a", time.Minute))
		rl.Release(takenBy("b", time.Minute))
		rl.Release(unanswered("freed", time.Minute))
		locktest.Sleep(time.Second)
		locktest.Equal(t, "listed", rl.Len(), 3)
		rl.Close()
		locktest.Equal(t, "lines at Close", log.Count(line), 1)
		locktest.Equal(t, "lines that say how many", log.Count("locks=2"), 1)
		locktest.Equal(t, "listed after Close", rl.Len(), 0)
		sent := len(client.all())

		locktest.Sleep(time.Minute)
		rl.Release(takenBy("late", time.Minute))
		synctest.Wait()
		locktest.Equal(t, "lines of a release after Close", log.Count("lock=late locks=1"), 1)
		rl.QuorumDone(takenBy("rest", time.Minute), time.Time{})
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "lines", log.Count(line), 2)
		locktest.Equal(t, "releases that were sent after Close", len(client.all())-sent, 0)
		locktest.Equal(t, "listed in the end", rl.Len(), 0)
	})
}

// P3: what the rest of several servers has confirmed after most of them is not released again.
func TestP3_WhatAllServersHaveConfirmedIsOver(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		rl, client := newFake(new(locktest.Log))
		client.answers(func(string) error { return nil })
		for _, settled := range []bool{false, true} {
			before := len(client.all())
			client.settled = settled
			rl.QuorumDone(takenBy("l", time.Minute), time.Time{})
			locktest.Sleep(time.Minute)
			locktest.Equal(t, "releases", len(client.all())-before, map[bool]int{false: 1}[settled])
			locktest.Equal(t, "listed", rl.Len(), 0)
		}
	})
}

// A hold has one entry on the releaser's list, however often it is given to the releaser, and gets another one when that is over.
func TestOneReleaseOfAHold(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		rl, client := newFake(new(locktest.Log))
		a := takenBy("l", time.Minute)
		rl.Release(a)
		rl.UnlockFailed(a)
		locktest.Equal(t, "listed", rl.Len(), 1)
		client.answers(func(string) error { return nil })
		locktest.Sleep(time.Second)
		locktest.Equal(t, "listed when it is confirmed", rl.Len(), 0)
		locktest.Equal(t, "releases", len(client.all()), 1)
		client.all()[0].caller.(*sentRelease).attempted() // the answer to an attempt has met the end of the release
		locktest.Equal(t, "listed after that", rl.Len(), 0)

		a.Sent()
		a.Answered(scripts.Answer{Held: true}, nil) // a late attempt took the lock after all
		rl.Release(a)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "releases in the end", len(client.all()), 2)
		locktest.Equal(t, "listed in the end", rl.Len(), 0)
	})
}
