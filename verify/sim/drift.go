package main

import "time"

// A clock that drifts is set each tick. By the hundredth of a lease and the millisecond that clients leave (P6) nothing may come of it.
const (
	driftTick = 111 * time.Millisecond
	driftStep = time.Millisecond
)

// drifts is a fault: the server's clock runs faster, or slower, than those of all clients. No promise is off for that. Two of these at once
// would be more than a hundredth.
func (w *world) drifts(f fault) (ends func()) {
	s, first := w.servers[f.Server], false
	w.set(func() { first, s.drifts = !s.drifts, true })
	if !first {
		return nil
	}
	by := driftStep
	if f.X%3 == 0 {
		by = -driftStep
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(driftTick)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.jump(by)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
		w.set(func() { s.drifts = false })
	}
}
