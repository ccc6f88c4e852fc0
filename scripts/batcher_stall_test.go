package scripts

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server that does not answer keeps a bounded number of batches, and not those that could be answered.

func TestBatcher_StalledFlightsKeepNobodyOnTheGround(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		stalled := fill(t, s, g)
		g.open(0) // whoever leaves now is answered
		late := sendAcquires(t, s, 3)
		time.Sleep(stallAfter - time.Millisecond)
		g.mustLeave(t)
		time.Sleep(time.Millisecond)
		g.mustLeave(t, 3)
		mustHear(t, late...)

		began := time.Now() // the third batch has come back: the next has not to wait again
		mustHear(t, sendAcquires(t, s, 1)...)
		if took := time.Since(began); took != 0 {
			t.Errorf("the next op took %v", took)
		}
		g.open(len(stalled))
		mustHear(t, stalled...)
		mustBeTwo(t, s, g)
	})
}

// mustBeTwo fails the test unless the batcher, which is empty, has two batches and no third for stallAfter.
func mustBeTwo(t *testing.T, s *Scripts, g *gate) {
	t.Helper()
	synctest.Wait()
	g.seen()
	if b := s.batchers.first; b.most != maxInFlight || len(b.inFlight) != 0 || len(b.waiting) != 0 {
		t.Fatalf("the batcher may have %d batches, has %d, and %d ops wait", b.most, len(b.inFlight), len(b.waiting))
	}
	g.mostAtOnce()
	held := fill(t, s, g)
	third := sendAcquires(t, s, 1)
	time.Sleep(stallAfter - time.Millisecond)
	g.mustLeave(t)
	g.open(len(held))
	mustHear(t, append(held, third...)...)
	if most := g.mostAtOnce(); most != maxInFlight {
		t.Errorf("%d batches were under way at once", most)
	}
	synctest.Wait()
	g.seen()
}

func TestBatcher_NoMoreThanSixteenHang(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		hanging := fill(t, s, g)
		for n := maxInFlight; n < maxStalled; n++ {
			hanging = append(hanging, sendAcquires(t, s, 2)...)
			time.Sleep(stallAfter - time.Millisecond)
			g.mustLeave(t)
			time.Sleep(stallAfter + time.Millisecond) // at most: it also has to see that the last one hangs
			g.mustLeave(t, 2)
		}
		late := sendAcquires(t, s, 2*maxOps-20)
		time.Sleep(time.Second)
		g.mustLeave(t)
		if most := g.mostAtOnce(); most != maxStalled {
			t.Errorf("%d batches were under way at once", most)
		}

		// One comes back, and its place is taken, after the wait that shows that the others still hang.
		g.release <- struct{}{}
		time.Sleep(2 * stallAfter)
		g.mustLeave(t, maxOps)
		time.Sleep(time.Second)
		g.mustLeave(t)
		if most := g.mostAtOnce(); most != maxStalled {
			t.Errorf("%d batches were under way at once", most)
		}
		g.open(maxStalled)
		mustHear(t, append(hanging, late...)...)
		mustBeTwo(t, s, g)
	})
}

// What came back late leaves its place, although others wait for one.
func TestBatcher_UnderLoadTheBoundGoesBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := fill(t, s, g)
		for n := maxInFlight; n < maxStalled; n++ {
			all = append(all, sendAcquires(t, s, 1)...)
			time.Sleep(2 * stallAfter)
			g.mustLeave(t, 1)
		}
		all = append(all, sendAcquires(t, s, 10*maxOps)...)
		for range maxStalled - maxInFlight - 1 { // the last one more is for the manyOps
			g.release <- struct{}{}
			g.mustLeave(t)
		}
		for range 10 {
			g.release <- struct{}{}
			g.mustLeave(t, maxOps)
		}
		g.open(maxInFlight + 1)
		mustHear(t, all...)
		mustBeTwo(t, s, g)
	})
}

// Two that come back late are still two.
func TestBatcher_TheBoundGoesNoLower(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := fillAll(t, s, g)
		time.Sleep(10 * stallAfter)
		all = append(all, sendAcquires(t, s, 4*maxOps)...)
		for range 4 {
			g.release <- struct{}{}
			g.mustLeave(t, maxOps)
		}
		g.open(maxInFlight + maxExtra)
		mustHear(t, all...)
	})
}

// While ops come all the time, and each batch takes long: a far server, not one that hangs.
func TestBatcher_ASlowServerIsNoStallForLong(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		var all []*passenger
		g.close(false)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { // each batch takes 150 ms or more
			defer close(stopped)
			for {
				time.Sleep(150 * time.Millisecond / maxInFlight)
				select {
				case g.release <- struct{}{}:
				case <-stop:
					return
				}
			}
		}()
		for range 2000 {
			all = append(all, sendAcquires(t, s, 1)...)
			time.Sleep(time.Millisecond)
		}
		mustHear(t, all...)
		close(stop)
		<-stopped
		if most := g.mostAtOnce(); most >= maxStalled {
			t.Errorf("%d batches were under way at once", most)
		}
		g.open(0)
		mustBeTwo(t, s, g)
	})
}

// Ops that are taken back while everything hangs leave nothing behind.
func TestBatcher_StalledAndTakenBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		hanging := fill(t, s, g)
		for range 50 {
			for _, x := range sendAcquires(t, s, 2) {
				if !s.TakeBack(&x.op) {
					hanging = append(hanging, x)
				}
			}
			time.Sleep(stallAfter)
		}
		synctest.Wait()
		if most := g.mostAtOnce(); most > maxStalled {
			t.Errorf("%d batches were under way at once", most)
		}
		g.open(maxInFlight + len(g.seen()))
		mustHear(t, hanging...)
		mustBeTwo(t, s, g)
	})
}
