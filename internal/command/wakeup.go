package command

import (
	"sync/atomic"
	"time"
)

// A Wakeup wakes one goroutine that waits for several things: whoever changes one of them notifies,
// and the goroutine looks which of them it was. A wake-up may be notified for nothing, by somebody
// who still meant its user before.
type Wakeup struct {
	ch       chan struct{}
	alarm    *time.Timer  // notifies too
	alarmAt  atomic.Int64 // when, in nanoseconds since epoch; 0 where it is not set
	farAlarm bool         // alarm was set for more than maxAlarm ahead: PutWakeup stops it
}

// epoch is what alarmAt counts from.
var epoch = time.Now()

// maxAlarm bounds the time for which the alarm of a wake-up stays set that nobody waits for.
const maxAlarm = time.Minute

// Wakeup returns a wake-up that is silent. Its user gives it back with PutWakeup.
func (s *Sender) Wakeup() *Wakeup {
	wake, _ := s.wakeups.Get().(*Wakeup)
	if wake == nil {
		wake = &Wakeup{ch: make(chan struct{}, 1)}
	}
	return wake
}

// PutWakeup gives a wake-up back that nobody waits for any longer.
func (s *Sender) PutWakeup(wake *Wakeup) {
	if wake.farAlarm {
		wake.alarm.Stop()
		wake.alarmAt.Store(0)
		wake.farAlarm = false
	}
	select {
	case <-wake.ch:
	default:
	}
	s.wakeups.Put(wake)
}

// C returns the channel that has a value when the wake-up was notified.
func (wake *Wakeup) C() <-chan struct{} { return wake.ch }

// Notify wakes the goroutine that waits, or the next one that does.
func (wake *Wakeup) Notify() {
	select {
	case wake.ch <- struct{}{}:
	default:
	}
}

// NotifyAt notifies once at this time, or earlier: an alarm that is set is left alone if it comes
// before. So whoever was woken too early asks again; nearly nobody is, as most are woken by
// somebody else long before, and to set and to stop a timer each time costs more than that.
func (wake *Wakeup) NotifyAt(t time.Time) {
	at := int64(t.Sub(epoch))
	if set := wake.alarmAt.Load(); set != 0 && set <= at {
		return
	}
	wake.alarmAt.Store(at)
	d := time.Until(t)
	wake.farAlarm = d > maxAlarm
	if wake.alarm == nil {
		wake.alarm = time.AfterFunc(d, wake.alarmFired)
	} else {
		wake.alarm.Reset(d)
	}
}

func (wake *Wakeup) alarmFired() {
	wake.alarmAt.Store(0) // first: who is woken may set it again
	wake.Notify()
}

// Wait waits until the wake-up is notified. It returns false where end was closed first.
func (wake *Wakeup) Wait(end <-chan struct{}) bool {
	if end == nil { // one channel is much less work than two
		<-wake.ch
		return true
	}
	select {
	case <-wake.ch:
		return true
	case <-end:
		return false
	}
}
