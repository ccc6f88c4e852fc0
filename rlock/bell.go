package rlock

import (
	"sync/atomic"
	"time"
)

// A bell wakes one goroutine that waits for several things: whoever changes one of them rings, and the goroutine looks
// which of them it was. It may be rung for nothing, by somebody who still meant the one that had it before.
type bell struct {
	rung  chan struct{}
	alarm *time.Timer  // rings it too
	at    atomic.Int64 // when, in nanoseconds since epoch; 0 where it is not set
	late  bool         // it is set for a time that is too far away to be left so
}

// A moment is a time in nanoseconds since epoch, which takes less memory than a time.Time; 0 for none.
type moment int64

// epoch is what moments are counted from.
var epoch = time.Now()

func momentOf(t time.Time) moment { return moment(t.Sub(epoch)) }

// age is how long ago the moment was.
func (m moment) age() time.Duration { return time.Since(epoch) - time.Duration(m) }

// maxAlarm bounds the time for which the alarm of a bell stays set that nobody waits for.
const maxAlarm = time.Minute

// bell returns one that is silent, to be given back by hang.
func (c *Client) bell() *bell {
	b, _ := c.bells.Get().(*bell)
	if b == nil {
		b = &bell{rung: make(chan struct{}, 1)}
	}
	return b
}

func (c *Client) hang(b *bell) {
	if b.late {
		b.alarm.Stop()
		b.at.Store(0)
		b.late = false
	}
	select {
	case <-b.rung:
	default:
	}
	c.bells.Put(b)
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// ringAt rings it once at this time, or earlier: an alarm that is set is left alone if it comes before. So whoever was
// woken too early asks again; nearly nobody is, as most are woken by somebody else long before, and to set and to stop a
// timer each time costs more than that.
func (b *bell) ringAt(t time.Time) {
	at := int64(t.Sub(epoch))
	if set := b.at.Load(); set != 0 && set <= at {
		return
	}
	b.at.Store(at)
	d := time.Until(t)
	b.late = d > maxAlarm
	if b.alarm == nil {
		b.alarm = time.AfterFunc(d, b.alarmed)
	} else {
		b.alarm.Reset(d)
	}
}

func (b *bell) alarmed() {
	b.at.Store(0) // first: who is woken may set it again
	b.ring()
}

// wait waits for the bell; false when end was closed first.
func (b *bell) wait(end <-chan struct{}) bool {
	if end == nil { // one channel is much less work than two
		<-b.rung
		return true
	}
	select {
	case <-b.rung:
		return true
	case <-end:
		return false
	}
}
