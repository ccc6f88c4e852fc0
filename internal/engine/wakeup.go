package engine

import (
	"sync/atomic"
	"time"
)

// A wakeup wakes one goroutine that waits for several things: whoever changes one of them notifies, and the goroutine looks
// which of them it was. A wakeup may be notified for nothing, by somebody who still meant its user before.
type wakeup struct {
	ch       chan struct{}
	alarm    *time.Timer  // notifies too
	alarmAt  atomic.Int64 // when, in nanoseconds since epoch; 0 where it is not set
	farAlarm bool         // alarm was set for more than maxAlarm ahead: putWakeup stops it
}

// A moment is a time in nanoseconds since epoch, which takes less memory than a time.Time; 0 for none.
type moment int64

// epoch is what moments are counted from.
var epoch = time.Now()

func momentOf(t time.Time) moment { return moment(t.Sub(epoch)) }

// age is how long ago the moment was.
func (m moment) age() time.Duration { return time.Since(epoch) - time.Duration(m) }

// maxAlarm bounds the time for which the alarm of a wake-up stays set that nobody waits for.
const maxAlarm = time.Minute

// wakeup returns one that is silent, to be given back with putWakeup.
func (c *Client) wakeup() *wakeup {
	wake, _ := c.spareWakeups.Get().(*wakeup)
	if wake == nil {
		wake = &wakeup{ch: make(chan struct{}, 1)}
	}
	return wake
}

func (c *Client) putWakeup(wake *wakeup) {
	if wake.farAlarm {
		wake.alarm.Stop()
		wake.alarmAt.Store(0)
		wake.farAlarm = false
	}
	select {
	case <-wake.ch:
	default:
	}
	c.spareWakeups.Put(wake)
}

func (wake *wakeup) notify() {
	select {
	case wake.ch <- struct{}{}:
	default:
	}
}

// notifyAt notifies once at this time, or earlier: an alarm that is set is left alone if it comes before. So whoever was
// woken too early asks again; nearly nobody is, as most are woken by somebody else long before, and to set and to stop a
// timer each time costs more than that.
func (wake *wakeup) notifyAt(t time.Time) {
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

func (wake *wakeup) alarmFired() {
	wake.alarmAt.Store(0) // first: who is woken may set it again
	wake.notify()
}

// wait waits for the wake-up; false when end was closed first.
func (wake *wakeup) wait(end <-chan struct{}) bool {
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
