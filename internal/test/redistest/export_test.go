package redistest

import "time"

var NewSleeper = newSleeper

func (s *sleeper) Woke(now time.Time)                      { s.woke(now) }
func (s *sleeper) Late(since, now time.Time) time.Duration { return s.late(since, now) }
