package rlock

import "time"

// startTimer returns a running timer, to be given back by stopTimer. Most are stopped soon after they were started:
// nearly all calls are answered.
func (c *Client) startTimer(d time.Duration) *time.Timer {
	t, _ := c.timers.Get().(*time.Timer)
	if t == nil {
		return time.NewTimer(d)
	}
	t.Reset(d)
	return t
}

func (c *Client) stopTimer(t *time.Timer) {
	if !t.Stop() {
		select {
		case <-t.C:
		default:
		}
	}
	c.timers.Put(t)
}
