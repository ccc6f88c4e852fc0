package watchdog

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// crowd adds this many leases at the same moment.
func crowd(w *Watchdog, n int, length time.Duration) []*owner {
	owners := make([]*owner, n)
	for i := range owners {
		owners[i] = add(w, length)
	}
	return owners
}

func wantNoneLost(t *testing.T, owners []*owner) {
	t.Helper()
	for i, o := range owners {
		if lost := o.losses(); len(lost) > 0 {
			t.Fatalf("lease %d is lost: %v", i, lost)
		}
	}
}

// Leases that were taken at the same moment are not renewed at the same moment: in no tenth of a second the server gets
// more than a few times what it would get if they were spread evenly, from the first period on; later it gets them
// nearly evenly. None is renewed later than a third of its lease after the last time, nor much more often than that.
func TestTakenTogetherRenewedApart(t *testing.T) {
	const (
		leases = 20_000
		length = 30 * time.Second
		third  = length / 3
		even   = leases / 100 // a tenth of a second
	)
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		began := time.Now()
		owners := crowd(w, leases, length)
		time.Sleep(4*third + time.Second)
		wantNoneLost(t, owners)
		tenths := make([]int, 4*100+20)
		last := map[Owner]time.Duration{}
		total := 0
		for _, trip := range s.seen() {
			at := trip.at.Sub(began)
			tenths[at/(100*time.Millisecond)] += len(trip.batch)
			for _, r := range trip.batch {
				if apart := at - last[r.Owner]; apart > third+200*time.Millisecond || apart < third/2-200*time.Millisecond {
					t.Fatalf("renewed at %v and before that at %v", at, last[r.Owner])
				}
				last[r.Owner] = at
				if at > third && at <= 4*third {
					total++
				}
			}
		}
		for i, n := range tenths {
			limit := 3 * even
			if i > 200 {
				limit = 2 * even
			}
			if n > limit {
				t.Errorf("%d renewals in the tenth %d, evenly it were %d", n, i, even)
			}
		}
		if most := 3 * leases * 6 / 5; total > most {
			t.Errorf("%d renewals in three periods of %d leases", total, leases)
		}
	})
}

// Leases that were taken beside each other are renewed so too, a hundred at a time, although there is no room for all of them in
// one tenth of a second: that is how they lie in the memory of client and server.
func TestNeighboursStayTogether(t *testing.T) {
	const leases, third = 20_000, 10 * time.Second
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		began := time.Now()
		place := map[Owner]int{}
		for i, o := range crowd(w, leases, 3*third) {
			place[o] = i
		}
		time.Sleep(3 * third)
		beside, all := 0, 0
		for _, trip := range s.seen() {
			if at := trip.at.Sub(began); at < third || at > 2*third {
				continue
			}
			for i, r := range trip.batch[1:] {
				all++
				if d := place[r.Owner] - place[trip.batch[i].Owner]; d == 1 || d == -1 {
					beside++
				}
			}
		}
		if beside < all*9/10 {
			t.Errorf("%d of %d renewals are beside a neighbour's", beside, all)
		}
	})
}

// A bucket has room for a quarter more than if the leases were spread evenly over the time between two renewals, in hundreds.
func TestRoomOfABucket(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		for length, counts := range map[time.Duration][]int{30 * time.Second: {1, 5_000, 20_000, 100_000}, 3 * time.Second: {1, 1_000, 50_000}} {
			for _, count := range counts {
				w, o := New(nil), newOwner(length)
				d := DeadlineOf(now(), length)
				o.deadline.Store(&d)
				w.count = count
				even := float64(count) * float64(grain(length)) / float64((length / 3).Milliseconds())
				if got := w.full(&o.Lease, length); got%few != 0 || float64(got) < 1.25*even || float64(got) > 1.25*even+few {
					t.Errorf("%d leases of %v: room for %d, evenly there were %.0f", count, length, got, even)
				}
			}
		}
	})
}

// Few leases are renewed when they are due, together.
func TestFewTakenTogetherStayTogether(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		owners := crowd(w, few, 30*time.Second)
		time.Sleep(time.Minute)
		wantNoneLost(t, owners)
		if n := len(s.seen()); n > 6 {
			t.Errorf("%d round trips in a minute", n)
		}
	})
}

// However many there are, each is tried at least five times, and twice while half of its lease is left.
func TestCrowdIsTriedInTime(t *testing.T) {
	const length = 30 * time.Second
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { return errors.New("no") })
		began := time.Now()
		owners := crowd(w, 5_000, length)
		time.Sleep(length + time.Second)
		all, early := map[Owner]int{}, map[Owner]int{}
		for _, trip := range s.seen() {
			for _, r := range trip.batch {
				all[r.Owner]++
				if trip.at.Sub(began) < length/2 {
					early[r.Owner]++
				}
			}
		}
		for _, o := range owners {
			o.mu.Lock()
			lost := len(o.lost)
			o.mu.Unlock()
			if all[o] < 5 || early[o] < 2 || lost != 1 {
				t.Fatalf("tried %d times, %d of them early; told %d times of the loss", all[o], early[o], lost)
			}
		}
	})
}

// After an outage all are behind, and none may be lost: what is left of the leases decides how fast they are sent. The
// server gets no more at once than it does otherwise, and where there is time, it gets time for others.
func TestCrowdAfterAnOutage(t *testing.T) {
	const length = 30 * time.Second
	for what, c := range map[string]struct {
		hang   time.Duration
		calmly bool
	}{
		"with time left": {20 * time.Second, true},
		"just in time":   {29 * time.Second, false},
	} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *Watchdog, s *server) {
				up := make(chan struct{})
				var mu sync.Mutex
				flying, most := 0, 0
				starts := []time.Time{}
				s.batch = func(ctx context.Context, batch []Renewal) []error {
					select {
					case <-up:
					case <-ctx.Done():
						out := make([]error, len(batch))
						for i := range out {
							out[i] = ctx.Err()
						}
						return out
					}
					mu.Lock()
					flying, most = flying+1, max(most, flying+1)
					starts = append(starts, time.Now())
					mu.Unlock()
					select {
					case <-time.After(maxBatch * 3 * time.Microsecond):
					case <-ctx.Done():
					}
					mu.Lock()
					flying--
					mu.Unlock()
					return nil
				}
				owners := crowd(w, 20_000, length)
				time.Sleep(c.hang)
				close(up)
				time.Sleep(length)
				wantNoneLost(t, owners)
				mu.Lock()
				defer mu.Unlock()
				if most > maxFlying {
					t.Errorf("%d batches under way", most)
				}
				dense := 0 // the most in twenty milliseconds
				for i, j := 0, 0; i < len(starts); i++ {
					for starts[i].Sub(starts[j]) > 20*time.Millisecond {
						j++
					}
					dense = max(dense, i-j+1)
				}
				if c.calmly && dense > int(20*time.Millisecond/batchPause)+large+maxFlying {
					t.Errorf("%d batches in 20 ms", dense)
				}
			})
		})
	}
}

// A short lease does not stand behind a crowd of long ones that have time.
func TestShortLeaseBesideACrowd(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.batch = func(_ context.Context, batch []Renewal) []error {
			time.Sleep(200 * time.Microsecond * maxBatch / 2)
			return nil
		}
		owners := crowd(w, 20_000, 30*time.Second)
		short := crowd(w, 3, 900*time.Millisecond)
		time.Sleep(2 * time.Second)
		wantNoneLost(t, short)
		w.sendAll(owners) // two seconds' work
		time.Sleep(3 * time.Second)
		wantNoneLost(t, short)
		wantNoneLost(t, owners)
	})
}

// Who had to wait in line is asked again whether the renewal is still wanted.
func TestAskedAgainAfterAWait(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.batch = func(ctx context.Context, batch []Renewal) []error {
			time.Sleep(2 * time.Second)
			return nil
		}
		owners := crowd(w, (maxFlying+1)*maxBatch, 30*time.Second)
		w.sendAll(owners)
		for _, o := range owners {
			o.wants(0)
		}
		time.Sleep(5 * time.Second)
		trips := s.seen()
		if len(trips) != maxFlying+1 {
			t.Fatalf("%d round trips", len(trips))
		}
		for _, r := range trips[maxFlying].batch {
			if r.Length != 0 {
				t.Fatal("a renewal is asked for that nobody wants any more")
			}
		}
	})
}

// No outcome at all means that all is well; leases that were renewed together share a deadline, until one is extended.
func TestSharedDeadline(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.batch = func(context.Context, []Renewal) []error { return nil }
		owners := crowd(w, 10, 30*time.Second)
		other := add(w, 40*time.Second)
		for _, o := range owners {
			if o.deadline.Load() != owners[0].deadline.Load() || o.Deadline() == other.Deadline() {
				t.Fatal("what one command has confirmed does not share its deadline, or another length does")
			}
		}
		w.Remove(&other.Lease)
		time.Sleep(25 * time.Second)
		wantNoneLost(t, owners)
		first := owners[0].deadline.Load()
		for _, o := range owners {
			if o.deadline.Load() != first {
				t.Fatal("a deadline of its own")
			}
		}
		was := *first
		w.Extend(&owners[3].Lease, now(), time.Minute)
		if !owners[3].Deadline().After(was) || *first != was || owners[4].Deadline() != was {
			t.Error("one was extended, and others with it")
		}
	})
}

// The calendar gives out no more at a time than is asked for.
func TestTakeIsBounded(t *testing.T) {
	var c calendar
	d := DeadlineOf(now(), 30*time.Second)
	leases := make([]Lease, 2500)
	for i := range leases {
		leases[i].deadline.Store(&d)
		c.add(&leases[i], 1000)
	}
	seen := map[*Lease]bool{}
	for _, want := range []int{1000, 1000, 500, 0} {
		got := c.take(1000, 1000, nil)
		if len(got) != want {
			t.Fatalf("took %d, want %d", len(got), want)
		}
		for _, l := range got {
			seen[l] = true
		}
	}
	if len(seen) != len(leases) || c.size != 0 || len(c.order) != 0 || len(c.buckets) != 0 {
		t.Errorf("%d leases seen; left: %d, %d buckets", len(seen), c.size, len(c.buckets))
	}
	if got := c.take(math.MaxInt64, 1000, nil); len(got) != 0 {
		t.Error("took what is not there")
	}
}
