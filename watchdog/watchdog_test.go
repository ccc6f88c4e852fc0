package watchdog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// TestMain requires that the package leaves no goroutine.
func TestMain(m *testing.M) {
	code := m.Run()
	for deadline := time.Now().Add(time.Minute); watching() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "Inv9: goroutines of the watchdog remain")
			code = max(code, 1)
			break
		}
	}
	os.Exit(code)
}

// watching is the number of goroutines that are a watchdog's.
func watching() int {
	buf := make([]byte, 1<<22)
	n := 0
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "watchdog.(*Watchdog).") && !strings.Contains(stack, "testing.tRunner") {
			n++
		}
	}
	return n
}

// owner is a lease's owner that keeps what it is told.
type owner struct {
	Lease
	slot uint16

	mu   sync.Mutex
	keep time.Duration // what to ask for
	lost []error
	when time.Time // of the loss

	settled []time.Time
}

func newOwner(keep time.Duration) *owner {
	o := &owner{keep: keep}
	o.Owner = o
	return o
}

func (o *owner) Renewal() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keep
}

func (o *owner) Slot() uint16 { return o.slot }

func (o *owner) Settled() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled = append(o.settled, time.Now())
}

func (o *owner) Lost(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = append(o.lost, err)
	o.when = time.Now()
}

func (o *owner) wants(keep time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep = keep
}

// losses are what the owner was told.
func (o *owner) losses() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.lost...)
}

// wantLost requires that the owner was told this, once; nil: nothing.
func (o *owner) wantLost(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	got := o.losses()
	if want == nil && len(got) == 0 || want != nil && len(got) == 1 && errors.Is(got[0], want) {
		return
	}
	t.Fatalf("the owner was told %v, want %v once", got, want)
}

// trip is one round trip of renewals.
type trip struct {
	at    time.Time
	batch []Renewal
}

// server is the other side: what renewals get.
type server struct {
	mu    sync.Mutex
	trips []trip
	reply func(ctx context.Context, r Renewal) error // nil: all is well
	batch func(ctx context.Context, batch []Renewal) []error
}

func (s *server) renew(ctx context.Context, batch []Renewal) []error {
	s.mu.Lock()
	s.trips = append(s.trips, trip{time.Now(), append([]Renewal(nil), batch...)})
	reply, whole := s.reply, s.batch
	s.mu.Unlock()
	if whole != nil {
		return whole(ctx, batch)
	}
	out := make([]error, len(batch))
	for i := range out {
		if reply != nil {
			out[i] = reply(ctx, batch[i])
		}
	}
	return out
}

func (s *server) answer(f func(ctx context.Context, r Renewal) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = f
}

func (s *server) seen() []trip {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]trip(nil), s.trips...)
}

// virtual runs a test in virtual time, with a watchdog that is closed at its end.
func virtual(t *testing.T, test func(t *testing.T, w *Watchdog, s *server)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		s := &server{}
		w := New(s.renew)
		defer func() {
			w.Close()
			synctest.Wait()
			if n := watching(); n > 0 && !t.Failed() {
				t.Errorf("%d goroutines are left after Close", n)
			}
		}()
		test(t, w, s)
	})
}

// now is Now without the clock that synctest does not know.
func now() Instant { return Instant{at: time.Now()} }

func add(w *Watchdog, length time.Duration) *owner {
	o := newOwner(length)
	w.Add(&o.Lease, now(), length)
	return o
}

// hang does not answer before the context ends.
func hang(ctx context.Context, _ Renewal) error { <-ctx.Done(); return ctx.Err() }

func TestDeadlineFormula(t *testing.T) {
	sent := now()
	for length, trust := range map[time.Duration]time.Duration{
		30 * time.Second:             30*time.Second - time.Millisecond - 300*time.Millisecond,
		100 * time.Millisecond:       98 * time.Millisecond,
		10 * time.Millisecond:        8900 * time.Microsecond,
		100 * 365 * 24 * time.Hour:   99*365*24*time.Hour - time.Millisecond,
		1234567891 * time.Nanosecond: 1234567891 - time.Millisecond - 12345678,
	} {
		if got := DeadlineOf(sent, length).Time().Sub(sent.Time()); got != trust {
			t.Errorf("a lease of %v is trusted for %v, want %v", length, got, trust)
		}
	}
}

// The deadline counts from the sending of the command that was answered, not from its answer: a slow success extends by
// what is left of it.
func TestSlowRenewalDoesNotExtendTheTrust(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		const lease = 30 * time.Second
		s.answer(func(ctx context.Context, _ Renewal) error { time.Sleep(9 * time.Second); return nil })
		began := now()
		o := add(w, lease)
		time.Sleep(9900 * time.Millisecond)
		if n := len(s.seen()); n != 0 {
			t.Fatalf("%d renewals before a third of the lease", n)
		}
		time.Sleep(9200 * time.Millisecond)
		synctest.Wait()
		trips := s.seen()
		if len(trips) != 1 {
			t.Fatalf("%d renewals", len(trips))
		}
		if due := trips[0].at.Sub(began.at); due < lease/3-100*time.Millisecond || due > lease/3 {
			t.Errorf("renewed after %v", due)
		}
		if got, want := o.Deadline().Time(), DeadlineOf(Instant{at: trips[0].at}, lease).Time(); !got.Equal(want) {
			t.Errorf("the deadline is %v, want %v", got.Sub(began.at), want.Sub(began.at))
		}
		o.wantLost(t, nil)
	})
}

func TestAnAnswerIsRenewedForEver(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 999 * time.Millisecond, time.Second, 30 * time.Second} {
		virtual(t, func(t *testing.T, w *Watchdog, s *server) {
			o := add(w, lease)
			time.Sleep(100 * lease)
			o.wantLost(t, nil)
			if n := len(s.seen()); n < 240 || n > 400 { // a short one is renewed up to a millisecond late
				t.Errorf("lease %v: %d renewals within 100 leases, want one each third", lease, n)
			}
			for _, trip := range s.seen() {
				if len(trip.batch) != 1 || trip.batch[0].Length != lease || trip.batch[0].Owner != Owner(o) {
					t.Fatalf("renewed %v", trip.batch)
				}
			}
		})
	}
}

func TestGone(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { return fmt.Errorf("wrapped: %w", ErrGone) })
		gone := add(w, 30*time.Second)
		time.Sleep(9800 * time.Millisecond)
		gone.wantLost(t, nil)
		time.Sleep(300 * time.Millisecond)
		gone.wantLost(t, ErrGone)
		time.Sleep(time.Minute)
		gone.wantLost(t, ErrGone)
		if n := len(s.seen()); n != 1 {
			t.Errorf("%d renewals of what is gone", n)
		}
	})
}

// One that is gone, or fails, takes no other one of its batch with it.
func TestOutcomesAreEachLeasesOwn(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		good, gone, bad := add(w, 9*time.Second), add(w, 9*time.Second), add(w, 9*time.Second)
		s.answer(func(_ context.Context, r Renewal) error {
			switch r.Owner {
			case Owner(gone):
				return ErrGone
			case Owner(bad):
				return errors.New("poison")
			}
			return nil
		})
		time.Sleep(20 * time.Second)
		good.wantLost(t, nil)
		gone.wantLost(t, ErrGone)
		bad.wantLost(t, ErrExpired)
		if n := len(s.seen()[0].batch); n != 3 {
			t.Errorf("the first batch has %d", n)
		}
	})
}

func TestErrorsAreRepeatedUntilTheDeadline(t *testing.T) {
	for _, lease := range []time.Duration{50 * time.Millisecond, 900 * time.Millisecond, 3 * time.Second, 30 * time.Second} {
		virtual(t, func(t *testing.T, w *Watchdog, s *server) {
			s.answer(func(context.Context, Renewal) error { return errors.New("no") })
			began := now()
			o := add(w, lease)
			deadline := o.Deadline().Time()
			time.Sleep(3 * lease)
			o.wantLost(t, ErrExpired)
			early := 100 * time.Millisecond // the grain
			if lease < time.Second {
				early = time.Millisecond
			}
			if o.when.After(deadline) || o.when.Before(deadline.Add(-early)) {
				t.Errorf("lease %v: lost %v before its deadline", lease, deadline.Sub(o.when))
			}
			trips := s.seen()
			if len(trips) < 5 || len(trips) > 40 {
				t.Errorf("lease %v: %d attempts", lease, len(trips))
			}
			if last := trips[len(trips)-1].at; last.After(deadline) || deadline.Sub(last) > lease/5 {
				t.Errorf("lease %v: the last attempt was %v before the deadline", lease, deadline.Sub(last))
			}
			if first := trips[0].at.Sub(began.at); first > lease/3+time.Millisecond {
				t.Errorf("lease %v: the first attempt came after %v", lease, first)
			}
		})
	}
}

// An error is forgotten with the first success.
func TestErrorAndThenSuccess(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { return errors.New("no") })
		o := add(w, 30*time.Second)
		time.Sleep(28 * time.Second)
		s.answer(nil)
		time.Sleep(time.Minute)
		o.wantLost(t, nil)
	})
}

// A server that hangs costs the attempt's share of the lease, and the next one is sent.
func TestHangingRenewals(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(hang)
		o := add(w, 30*time.Second)
		time.Sleep(10*time.Second + maxFlight - time.Millisecond)
		if n := len(s.seen()); n != 1 {
			t.Fatalf("%d renewals under way", n)
		}
		s.answer(nil)
		time.Sleep(3 * time.Second)
		o.wantLost(t, nil)
		if n := len(s.seen()); n != 2 {
			t.Fatalf("%d renewals", n)
		}
		s.answer(hang)
		time.Sleep(time.Minute)
		o.wantLost(t, ErrExpired)
	})
}

// The deadline passes while a renewal is under way; its success comes too late.
func TestExpiredDuringAFlight(t *testing.T) {
	for what, late := range map[string]error{"success": nil, "gone": ErrGone, "error": errors.New("no")} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *Watchdog, s *server) {
				s.answer(func(context.Context, Renewal) error { time.Sleep(time.Minute); return late })
				o := add(w, 30*time.Second)
				time.Sleep(30 * time.Second)
				o.wantLost(t, ErrExpired)
				time.Sleep(5 * time.Minute)
				o.wantLost(t, ErrExpired)
				if n := len(s.seen()); n != 1 {
					t.Errorf("%d renewals", n)
				}
			})
		})
	}
}

func TestNotRenewed(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		explicit := newOwner(0)
		w.Add(&explicit.Lease, now(), 30*time.Second)
		given := add(w, 30*time.Second) // up after some renewals
		time.Sleep(25 * time.Second)
		given.wants(0)
		explicit.wantLost(t, nil)
		time.Sleep(5 * time.Second)
		explicit.wantLost(t, ErrExpired)
		given.wantLost(t, nil)
		n := len(s.seen())
		time.Sleep(time.Minute)
		given.wantLost(t, ErrExpired)
		if len(s.seen()) > n {
			t.Error("renewed, though nobody wants it")
		}
	})
}

func TestRemove(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		o, other := add(w, 30*time.Second), add(w, 30*time.Second)
		w.Remove(&o.Lease)
		w.Remove(&o.Lease)
		time.Sleep(time.Minute)
		o.wantLost(t, nil)
		other.wantLost(t, nil)
		for _, trip := range s.seen() {
			if len(trip.batch) != 1 || trip.batch[0].Owner != Owner(other) {
				t.Fatalf("renewed %v", trip.batch)
			}
		}
	})
}

// Whatever a renewal brings after Remove, the owner does not hear of it.
func TestRemoveDuringAFlight(t *testing.T) {
	for what, late := range map[string]error{"success": nil, "gone": ErrGone, "error": errors.New("no")} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *Watchdog, s *server) {
				s.answer(func(context.Context, Renewal) error { time.Sleep(5 * time.Second); return late })
				o := add(w, 30*time.Second)
				time.Sleep(12 * time.Second)
				if len(s.seen()) != 1 {
					t.Fatal("no renewal is under way")
				}
				deadline := o.Deadline()
				w.Remove(&o.Lease)
				time.Sleep(5 * time.Minute)
				o.wantLost(t, nil)
				if o.Deadline() != deadline {
					t.Error("the deadline was moved")
				}
				if n := len(s.seen()); n != 1 {
					t.Errorf("%d renewals", n)
				}
			})
		})
	}
}

func TestExtend(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { return errors.New("no") })
		o := add(w, 10*time.Second)
		time.Sleep(3 * time.Second)
		w.Extend(&o.Lease, now(), 30*time.Second)
		want := DeadlineOf(now(), 30*time.Second)
		if got := o.Deadline(); !got.Time().Equal(want.Time()) {
			t.Errorf("the deadline is %v", got)
		}
		w.Extend(&o.Lease, now(), 5*time.Second) // does not bring it nearer
		if got := o.Deadline(); !got.Time().Equal(want.Time()) {
			t.Errorf("the deadline is %v", got)
		}
		n := len(s.seen())
		time.Sleep(9 * time.Second)
		if len(s.seen()) > n {
			t.Error("renewed before a third of the new lease")
		}
		time.Sleep(20 * time.Second)
		o.wantLost(t, nil)
		time.Sleep(2 * time.Second)
		o.wantLost(t, ErrExpired)
		w.Extend(&o.Lease, now(), time.Minute) // it is over
		time.Sleep(time.Minute)
		o.wantLost(t, ErrExpired)
	})
}

// A lease that nobody renewed, and that then somebody wants renewed.
func TestExtendMakesARenewalDue(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		o := newOwner(0)
		w.Add(&o.Lease, now(), 30*time.Second)
		time.Sleep(20 * time.Second)
		o.wants(30 * time.Second)
		w.Extend(&o.Lease, now(), 30*time.Second)
		time.Sleep(5 * time.Minute)
		o.wantLost(t, nil)
	})
}

// A long lease, and then a level that is to be renewed with a shorter one: the renewals begin when two thirds of that
// are left before the deadline, and go on as its own.
func TestRenewalShorterThanTheLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		began := now()
		o := newOwner(0)
		w.Add(&o.Lease, now(), 10*time.Minute)
		o.wants(30 * time.Second)
		w.Extend(&o.Lease, now(), 30*time.Second)
		time.Sleep(time.Hour)
		o.wantLost(t, nil)
		trips := s.seen()
		if first := trips[0].at.Sub(began.at); first < 9*time.Minute+34*time.Second || first > 9*time.Minute+35*time.Second {
			t.Errorf("first renewed after %v", first)
		}
		if got := trips[0].batch[0].Length; got != 30*time.Second {
			t.Errorf("renewed for %v", got)
		}
		if n := len(trips); n < 295 || n > 310 {
			t.Errorf("%d renewals within fifty minutes, want one each ten seconds", n)
		}
	})
}

func TestExtendDuringAFlight(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { time.Sleep(5 * time.Second); return errors.New("no") })
		o := add(w, 30*time.Second)
		time.Sleep(12 * time.Second) // a renewal is under way
		w.Extend(&o.Lease, now(), 30*time.Second)
		time.Sleep(10 * time.Second)
		s.answer(nil)
		time.Sleep(5 * time.Minute)
		o.wantLost(t, nil)
		w.Extend(&o.Lease, now(), 30*time.Second)
		w.Remove(&o.Lease)
		w.Extend(&o.Lease, now(), 30*time.Second)
		time.Sleep(5 * time.Minute)
		o.wantLost(t, nil)
	})
}

func TestAsk(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(context.Context, Renewal) error { time.Sleep(time.Millisecond); return nil })
		o := add(w, 30*time.Second)
		time.Sleep(time.Second)
		want := DeadlineOf(now(), 30*time.Second).Time()
		w.Ask(&o.Lease)
		w.Ask(&o.Lease) // one is under way
		time.Sleep(2 * time.Millisecond)
		if n := len(s.seen()); n != 1 {
			t.Fatalf("%d renewals", n)
		}
		if got := o.Deadline().Time(); !got.Equal(want) {
			t.Error("the answer does not extend the lease")
		}
		s.answer(nil)
		// one that is not to be renewed is asked about, and not extended
		explicit := newOwner(0)
		w.Add(&explicit.Lease, now(), 30*time.Second)
		deadline := explicit.Deadline()
		time.Sleep(time.Second)
		w.Ask(&explicit.Lease)
		synctest.Wait()
		trips := s.seen()
		if got := trips[len(trips)-1].batch[0].Length; got != 0 {
			t.Errorf("asked for %v", got)
		}
		if explicit.Deadline() != deadline {
			t.Error("it was extended")
		}
		s.answer(func(context.Context, Renewal) error { return ErrGone })
		w.Ask(&explicit.Lease)
		w.Ask(&o.Lease)
		explicit.wantLost(t, ErrGone)
		o.wantLost(t, ErrGone)
		n := len(s.seen())
		w.Ask(&o.Lease) // it is over
		synctest.Wait()
		if len(s.seen()) != n {
			t.Error("asked about what is over")
		}
	})
}

// What is asked about in a pause between two batches goes when the pause is over, whoever is under way.
func TestAskInAPause(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		o := add(w, 30*time.Second)
		time.Sleep(10*time.Millisecond + patrol/2) // the goroutine sleeps
		w.mu.Lock()
		w.backlog.turn = time.Now().Add(5 * time.Millisecond)
		w.mu.Unlock()
		w.Ask(&o.Lease)
		synctest.Wait()
		if n := len(s.seen()); n != 0 {
			t.Fatalf("%d renewals in the pause", n)
		}
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if n := len(s.seen()); n != 1 {
			t.Errorf("%d renewals when the pause is over", n)
		}
	})
}

// The owner of a lease whose renewals are further apart than SettleAfter, or that has none, is told once that the lease has lasted for so
// long. The renewal comes when it is due all the same.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		lease, keep time.Duration
		told        bool
	}{
		{lease: 30 * time.Second, keep: 30 * time.Second, told: true},
		{lease: 3*time.Second + 3, keep: 3*time.Second + 3, told: true},
		{lease: 3 * time.Second, keep: 3 * time.Second, told: false},
		{lease: time.Second, keep: time.Second, told: false},
		{lease: 30 * time.Second, keep: 0, told: true},
		{lease: time.Second / 2, keep: 0, told: false}, // it is over by then
	} {
		virtual(t, func(t *testing.T, w *Watchdog, s *server) {
			began := time.Now()
			o := newOwner(c.keep)
			w.Add(&o.Lease, now(), c.lease)
			time.Sleep(SettleAfter - 150*time.Millisecond)
			o.mu.Lock()
			if len(o.settled) > 0 {
				t.Errorf("%v: told after %v", c, o.settled[0].Sub(began))
			}
			o.mu.Unlock()
			time.Sleep(11 * time.Second)
			o.mu.Lock()
			defer o.mu.Unlock()
			if want := map[bool]int{true: 1}[c.told]; len(o.settled) != want {
				t.Fatalf("%v: told %d times, want %d", c, len(o.settled), want)
			}
			if c.told {
				if d := o.settled[0].Sub(began); d > SettleAfter+10*time.Millisecond {
					t.Errorf("%v: told after %v", c, d)
				}
			}
			trips := s.seen()
			if (len(trips) > 0) != (c.keep > 0) {
				t.Fatalf("%v: %d renewals", c, len(trips))
			}
			if c.keep > 0 {
				if d := trips[0].at.Sub(began); d > c.lease/3 || d < c.lease/3-200*time.Millisecond {
					t.Errorf("%v: renewed after %v", c, d)
				}
			}
		})
	}
}

func TestBatchesBySizeAndSlot(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		const leases = 5 * maxBatch / 2
		var owners []*owner
		for slot := range uint16(3) {
			for range leases {
				o := newOwner(30 * time.Second)
				o.slot = slot
				w.Add(&o.Lease, now(), 30*time.Second)
				owners = append(owners, o)
			}
		}
		w.sendAll(owners)
		time.Sleep(time.Second)
		seen := map[Owner]int{}
		perSlot := map[uint16]int{}
		for _, trip := range s.seen() {
			if len(trip.batch) > maxBatch {
				t.Errorf("a batch of %d", len(trip.batch))
			}
			slot := trip.batch[0].Owner.Slot()
			perSlot[slot]++
			for _, r := range trip.batch {
				seen[r.Owner]++
				if r.Owner.Slot() != slot {
					t.Fatal("a batch with several slots")
				}
			}
		}
		if len(seen) != 3*leases {
			t.Errorf("%d of %d leases were renewed", len(seen), 3*leases)
		}
		for slot, n := range perSlot {
			if n > 4 { // the first one does not wait for others
				t.Errorf("%d batches for the %d leases of slot %d", n, leases, slot)
			}
		}
		for _, o := range owners {
			if seen[o] != 1 {
				t.Fatalf("a lease was renewed %d times", seen[o])
			}
		}
	})
}

// sendAll renews the leases now, all at once.
func (w *Watchdog) sendAll(owners []*owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var renewals []Renewal
	for _, o := range owners {
		renewals = append(renewals, Renewal{o, o.Renewal(), &o.Lease})
	}
	w.send(renewals)
	w.nudge()
}

// Ten thousand leases, taken at once: one goroutine, few round trips, none lost; and the server never sees more than
// maxFlying round trips at a time.
func TestTenThousandLeases(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		const leases = 10_000
		var mu sync.Mutex
		var flying, most int
		s.batch = func(_ context.Context, batch []Renewal) []error {
			mu.Lock()
			flying++
			most = max(most, flying)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			flying--
			mu.Unlock()
			return make([]error, len(batch))
		}
		owners := make([]*owner, leases)
		for i := range owners {
			owners[i] = add(w, 30*time.Second)
		}
		time.Sleep(4 * time.Second)
		if n := watching(); n != 1 {
			t.Errorf("%d goroutines", n)
		}
		time.Sleep(56 * time.Second)
		for _, o := range owners {
			if len(o.losses()) > 0 {
				t.Fatalf("lost: %v", o.losses())
			}
		}
		mu.Lock()
		atOnce := most
		mu.Unlock()
		if atOnce > maxFlying {
			t.Errorf("%d round trips at a time", atOnce)
		}
		if n := len(s.seen()); n > 8*leases/100 {
			t.Errorf("%d round trips", n)
		}
		for _, o := range owners {
			w.Remove(&o.Lease)
		}
		time.Sleep(1100 * time.Millisecond)
		if n := watching(); n != 0 {
			t.Errorf("%d goroutines after the last Remove", n)
		}
	})
}

// Batches that hang do not keep others from their turn for ever.
func TestManySlotsAndSomeHang(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(func(ctx context.Context, r Renewal) error {
			if r.Owner.Slot() < 10 {
				return hang(ctx, r)
			}
			return nil
		})
		var good, bad []*owner
		for slot := range uint16(200) {
			o := newOwner(30 * time.Second)
			o.slot = slot
			w.Add(&o.Lease, now(), 30*time.Second)
			if slot < 10 {
				bad = append(bad, o)
			} else {
				good = append(good, o)
			}
		}
		time.Sleep(5 * time.Minute)
		for _, o := range bad {
			o.wantLost(t, ErrExpired)
		}
		for _, o := range good {
			o.wantLost(t, nil)
		}
	})
}

// Leases in as many slots that are all asked about at one moment, as after a reconnect to a cluster, do not all travel at that moment:
// each is a command of its own, and wants a connection.
func TestManySlotsAskedAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		var mu sync.Mutex
		var flying, most int
		s.answer(func(context.Context, Renewal) error {
			mu.Lock()
			flying++
			most = max(most, flying)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			flying--
			mu.Unlock()
			return nil
		})
		var owners []*owner
		for slot := range uint16(1000) {
			o := newOwner(30 * time.Second)
			o.slot = slot
			w.Add(&o.Lease, now(), 30*time.Second)
			owners = append(owners, o)
		}
		time.Sleep(time.Second)
		for _, o := range owners {
			w.Ask(&o.Lease)
		}
		time.Sleep(2 * time.Second)
		if n := len(s.seen()); n != len(owners) {
			t.Errorf("%d of %d were asked about within two seconds", n, len(owners))
		}
		w.mu.Lock()
		if p := &w.backlog; p.batches != 0 || p.flying != 0 {
			t.Errorf("%d batches wait and %d are under way, as far as the watchdog knows", p.batches, p.flying)
		}
		w.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		if most > 2*large {
			t.Errorf("%d commands were under way at once", most)
		}
	})
}

// A removed lease in a batch that waits for its round trip is left out.
func TestRemoveInLine(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.batch = func(_ context.Context, batch []Renewal) []error {
			time.Sleep(time.Second)
			return make([]error, len(batch))
		}
		var owners []*owner
		for range 10 * maxBatch {
			owners = append(owners, add(w, 30*time.Second))
		}
		w.sendAll(owners)
		time.Sleep(999 * time.Millisecond)
		under := len(s.seen())
		if under != maxFlying {
			t.Fatalf("%d are under way", under)
		}
		for _, o := range owners {
			w.Remove(&o.Lease)
		}
		time.Sleep(time.Minute)
		if n := len(s.seen()); n != under {
			t.Errorf("%d more were sent", n-under)
		}
	})
}

func TestGoroutineEndsAndStartsAgain(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		for range 5 {
			o := add(w, 30*time.Second)
			synctest.Wait()
			if n := watching(); n != 1 {
				t.Fatalf("%d goroutines with a lease", n)
			}
			w.Remove(&o.Lease)
			time.Sleep(500 * time.Millisecond)
			again := add(w, 30*time.Second) // while it may still run
			time.Sleep(time.Minute)
			again.wantLost(t, nil)
			w.Remove(&again.Lease)
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if n := watching(); n != 0 {
				t.Fatalf("%d goroutines a second after the last Remove", n)
			}
		}
		// It ends also after a loss.
		s.answer(func(context.Context, Renewal) error { return ErrGone })
		o := add(w, 3*time.Second)
		time.Sleep(2100 * time.Millisecond)
		o.wantLost(t, ErrGone)
		if n := watching(); n != 0 {
			t.Fatalf("%d goroutines after the last loss", n)
		}
	})
}

// An owner that hears of its loss may call the watchdog.
func TestLostMayCallBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		o := &callback{}
		o.Owner = o
		next := newOwner(30 * time.Second)
		o.lost = func() {
			w.Remove(&o.Lease)
			w.Add(&next.Lease, now(), 30*time.Second)
		}
		w.Add(&o.Lease, now(), 3*time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		next.wantLost(t, nil)
		if len(s.seen()) == 0 {
			t.Error("the next lease is not renewed")
		}
	})
}

type callback struct {
	Lease
	lost func()
}

func (c *callback) Renewal() time.Duration { return 0 }
func (c *callback) Slot() uint16           { return 0 }

func (c *callback) Settled()   {}
func (c *callback) Lost(error) { c.lost() }

func TestClose(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		s.answer(hang)
		o, p := add(w, 30*time.Second), add(w, time.Minute)
		time.Sleep(12 * time.Second) // a renewal hangs
		began := time.Now()
		w.Close()
		w.Close()
		synctest.Wait()
		if n := watching(); n != 0 || !time.Now().Equal(began) {
			t.Errorf("%d goroutines are left after %v", n, time.Since(began))
		}
		late := add(w, 3*time.Second)
		n := len(s.seen())
		time.Sleep(5 * time.Minute)
		for _, o := range []*owner{o, p, late} {
			o.wantLost(t, nil)
		}
		if len(s.seen()) != n || watching() != 0 {
			t.Error("it goes on after Close")
		}
		if !late.Passed() {
			t.Error("a lease that came late does not know its deadline")
		}
		w.Extend(&late.Lease, now(), time.Minute)
		w.Ask(&late.Lease)
		w.Remove(&late.Lease)
	})
}

// Adding and removing all the time leaves nothing behind in the calendar.
func TestChurnLeavesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *Watchdog, s *server) {
		keep := add(w, 30*time.Second)
		for range 20_000 {
			o := add(w, 30*time.Second)
			time.Sleep(time.Millisecond)
			w.Remove(&o.Lease)
		}
		time.Sleep(time.Minute)
		keep.wantLost(t, nil)
		w.mu.Lock()
		buckets, starts, count := len(w.leases.buckets), len(w.leases.order), w.count
		w.mu.Unlock()
		if count != 1 || buckets > 10 || starts > 10 {
			t.Errorf("%d leases, %d buckets, %d starts", count, buckets, starts)
		}
		if n := len(s.seen()); n > 10 {
			t.Errorf("%d renewals of one lease", n)
		}
	})
}
