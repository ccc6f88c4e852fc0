package rlock

import "time"

// A bell wakes one goroutine that waits for several things: whoever changes one of them rings, and the goroutine looks
// which of them it was. It may be rung for nothing, by somebody who still meant the one that had it before.
type bell struct {
	rung  chan struct{}
	alarm *time.Timer // rings it too
}

// bell returns one that is silent, to be given back by hang.
func (c *Client) bell() *bell {
	b, _ := c.bells.Get().(*bell)
	if b == nil {
		b = &bell{rung: make(chan struct{}, 1)}
	}
	return b
}

func (c *Client) hang(b *bell) {
	b.silence()
	c.bells.Put(b)
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// ringAfter rings it once after d, in place of what was set before.
func (b *bell) ringAfter(d time.Duration) {
	if b.alarm == nil {
		b.alarm = time.AfterFunc(d, b.ring)
		return
	}
	b.alarm.Reset(d)
}

func (b *bell) silence() {
	if b.alarm != nil {
		b.alarm.Stop()
	}
	select {
	case <-b.rung:
	default:
	}
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
