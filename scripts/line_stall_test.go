package scripts

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server that does not answer keeps a bounded number of flights, and not those that could be answered.

func TestLine_StalledFlightsKeepNobodyOnTheGround(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		stalled := fill(t, s, g)
		g.open(0) // whoever leaves now is answered
		late := sendAcquires(t, s, 3)
		time.Sleep(stallAfter - time.Millisecond)
		g.mustFly(t)
		time.Sleep(time.Millisecond)
		g.mustFly(t, 3)
		mustHear(t, late...)

		began := time.Now() // the third flight has come back: the next has not to wait again
		mustHear(t, sendAcquires(t, s, 1)...)
		if took := time.Since(began); took != 0 {
			t.Errorf("the next op took %v", took)
		}
		g.open(len(stalled))
		mustHear(t, stalled...)
		mustBeTwo(t, s, g)
	})
}

// mustBeTwo fails the test unless the line, which is empty, has two flights and no third for stallAfter.
func mustBeTwo(t *testing.T, s *Scripts, g *gate) {
	t.Helper()
	synctest.Wait()
	g.seen()
	if l := s.lines.first; l.most != maxFlying || len(l.flying) != 0 || len(l.waiting) != 0 {
		t.Fatalf("the line may have %d flights, has %d, and %d ops wait", l.most, len(l.flying), len(l.waiting))
	}
	g.mostAtOnce()
	flying := fill(t, s, g)
	third := sendAcquires(t, s, 1)
	time.Sleep(stallAfter - time.Millisecond)
	g.mustFly(t)
	g.open(len(flying))
	mustHear(t, append(flying, third...)...)
	if most := g.mostAtOnce(); most != maxFlying {
		t.Errorf("%d flights were under way at once", most)
	}
	synctest.Wait()
	g.seen()
}

func TestLine_NoMoreThanSixteenHang(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		hanging := fill(t, s, g)
		for n := maxFlying; n < maxStalled; n++ {
			hanging = append(hanging, sendAcquires(t, s, 2)...)
			time.Sleep(stallAfter - time.Millisecond)
			g.mustFly(t)
			time.Sleep(stallAfter + time.Millisecond) // at most: it also has to see that the last one hangs
			g.mustFly(t, 2)
		}
		late := sendAcquires(t, s, 2*maxBatch-20)
		time.Sleep(time.Second)
		g.mustFly(t)
		if most := g.mostAtOnce(); most != maxStalled {
			t.Errorf("%d flights were under way at once", most)
		}

		// One comes back, and its place is taken, after the wait that shows that the others still hang.
		g.release <- struct{}{}
		time.Sleep(2 * stallAfter)
		g.mustFly(t, maxBatch)
		time.Sleep(time.Second)
		g.mustFly(t)
		if most := g.mostAtOnce(); most != maxStalled {
			t.Errorf("%d flights were under way at once", most)
		}
		g.open(maxStalled)
		mustHear(t, append(hanging, late...)...)
		mustBeTwo(t, s, g)
	})
}

// What came back late leaves its place, although others wait for one.
func TestLine_UnderLoadTheBoundGoesBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := fill(t, s, g)
		for n := maxFlying; n < maxStalled; n++ {
			all = append(all, sendAcquires(t, s, 1)...)
			time.Sleep(2 * stallAfter)
			g.mustFly(t, 1)
		}
		all = append(all, sendAcquires(t, s, 10*maxBatch)...)
		for range maxStalled - maxFlying - 1 { // the last one more is for the crowd
			g.release <- struct{}{}
			g.mustFly(t)
		}
		for range 10 {
			g.release <- struct{}{}
			g.mustFly(t, maxBatch)
		}
		g.open(maxFlying + 1)
		mustHear(t, all...)
		mustBeTwo(t, s, g)
	})
}

// Two that come back late are still two.
func TestLine_TheBoundGoesNoLower(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		all := fillAll(t, s, g)
		time.Sleep(10 * stallAfter)
		all = append(all, sendAcquires(t, s, 4*maxBatch)...)
		for range 4 {
			g.release <- struct{}{}
			g.mustFly(t, maxBatch)
		}
		g.open(maxFlying + maxCrowded)
		mustHear(t, all...)
	})
}

// While ops come all the time, and each flight takes long: a far server, not one that hangs.
func TestLine_ASlowServerIsNoStallForLong(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		var all []*passenger
		g.close(false)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { // each flight takes 150 ms or more
			defer close(stopped)
			for {
				time.Sleep(150 * time.Millisecond / maxFlying)
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
			t.Errorf("%d flights were under way at once", most)
		}
		g.open(0)
		mustBeTwo(t, s, g)
	})
}

// Ops that are withdrawn while everything hangs leave nothing behind.
func TestLine_StalledAndWithdrawn(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *Scripts, g *gate) {
		hanging := fill(t, s, g)
		for range 50 {
			for _, x := range sendAcquires(t, s, 2) {
				if !s.Withdraw(&x.op) {
					hanging = append(hanging, x)
				}
			}
			time.Sleep(stallAfter)
		}
		synctest.Wait()
		if most := g.mostAtOnce(); most > maxStalled {
			t.Errorf("%d flights were under way at once", most)
		}
		g.open(maxFlying + len(g.seen()))
		mustHear(t, hanging...)
		mustBeTwo(t, s, g)
	})
}
