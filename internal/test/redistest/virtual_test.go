package redistest

import (
	"testing"
	"time"
)

func TestBubble_AGoroutineMayEndBehindTheTest(t *testing.T) {
	ended := false
	Bubble(t, func(t *testing.T) {
		go func() {
			time.Sleep(dialTail / 2)
			ended = true
		}()
	})
	if !ended {
		t.Error("the bubble was over before its goroutine")
	}
}
