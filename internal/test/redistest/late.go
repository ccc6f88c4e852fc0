package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// Bound is how long something may have taken, since it began, that takes no
// longer than within on a machine that has nothing else to do. It grows with the
// share of the time since then that the machine was late: see [Late].
func Bound(began time.Time, within time.Duration) time.Duration {
	passed := max(time.Since(began), nap)
	return within + time.Duration(float64(within)*slowness*min(1, float64(Late(began))/float64(passed)))
}

// slowness is how much longer something takes on a machine that is late all the
// time. Systems let programs that work wait longer than those that sleep: with
// eight of them for each processor the sleeper is late for an eighth of the time.
const slowness = 20

// Late returns for how long since then this machine has kept a goroutine waiting
// that was due: the time by which the sleeps of a goroutine that sleeps for a
// millisecond, again and again, were too long. Sleeps that are less than a
// millisecond too long do not count. In a testing/synctest bubble it is 0.
func Late(since time.Time) time.Duration {
	return sleeps.late(since.Round(0), time.Now().Round(0)) // without the readings that differ in a bubble
}

// sleeps is what the goroutine that sleeps has seen.
var sleeps = newSleeper(time.Now())

func init() {
	if testing.Testing() && !realtime.Unwanted() { // under a schedule nothing may go by real time
		go sleeps.run()
	}
}

// sleeper keeps how much too long its last sleeps were. It allocates nothing
// while it runs: tests count allocations.
type sleeper struct {
	mu     sync.Mutex
	begun  time.Time // of all
	awake  time.Time // when the last sleep ended
	stalls [1 << 14]stall
	n      int // all stalls there were
}

type stall struct {
	end    int64 // Unix time in nanoseconds
	length time.Duration
}

const nap = time.Millisecond

func newSleeper(now time.Time) *sleeper {
	return &sleeper{begun: now.Round(0), awake: now.Round(0)}
}

func (s *sleeper) run() {
	for {
		time.Sleep(nap)
		s.woke(time.Now().Round(0))
	}
}

// woke notes that a sleep has ended.
func (s *sleeper) woke(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over := now.Sub(s.awake) - nap; over > nap {
		s.stalls[s.n%len(s.stalls)] = stall{now.UnixNano(), over}
		s.n++
	}
	s.awake = now
}

// late adds up the stalls since then, and the one that is not over.
func (s *sleeper) late(since, now time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since.Before(s.begun) {
		return 0 // a bubble, or nobody was there to see it
	}
	if over := now.Sub(s.awake) - nap; over > nap && !s.awake.Equal(s.begun) {
		sum = min(over, now.Sub(since))
	}
	for i := s.n - 1; i >= 0 && i >= s.n-len(s.stalls); i-- {
		stall := s.stalls[i%len(s.stalls)]
		after := time.Duration(stall.end - since.UnixNano())
		if after <= 0 {
			break
		}
		sum += min(stall.length, after)
	}
	return sum
}
