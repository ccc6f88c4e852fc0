package room

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

type oneName struct{}

func (oneName) Field() string  { return "1:1" }
func (oneName) Ticket() string { return "1:2" }
func (oneName) Do(*Effect)     {}

// BenchmarkFree is what a room does for a free lock that is taken and unlocked: seven steps.
func BenchmarkFree(b *testing.B) {
	set := &Settings{Poll: time.Second, Patience: 10 * time.Second, Silence: 10 * time.Second}
	r := new(Room)
	r.Reset(set, Kind{Passes: 32}, oneName{})
	now := time.Now()
	facts := Facts{Line: true, Proven: true}
	held := &scripts.Answer{Held: true}
	call := Call{ID: 1, Terms: Terms{Lease: time.Minute}, Began: now}
	b.ReportAllocs()
	for b.Loop() {
		r.Step(now, &Event{What: Joined, Facts: facts, Call: call})
		r.Step(now, &Event{What: Answered, Facts: facts, Attempt: r.attempts, Answer: held})
		r.Step(now, &Event{What: Began, Facts: facts, Field: "1:1", At: now})
		r.Step(now, &Event{What: Left, Facts: facts, Call: call, Field: "1:1"})
		r.Step(now, &Event{What: Unlocking, Facts: facts, Field: "1:1"})
		r.Step(now, &Event{What: Released, Facts: facts, Field: "1:1", Got: true, At: now})
		r.Step(now, &Event{What: Ended, Facts: facts, Field: "1:1"})
	}
}
