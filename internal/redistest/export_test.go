package redistest

import "time"

// Take is what FreePort does with each port that it tries.
var Take = take

var NewSleeper = newSleeper

func (s *sleeper) Woke(now time.Time)                      { s.woke(now) }
func (s *sleeper) Late(since, now time.Time) time.Duration { return s.late(since, now) }
