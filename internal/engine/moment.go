package engine

import "time"

// A moment is a time in nanoseconds since epoch, which takes less memory than a time.Time; 0 for none.
type moment int64

// epoch is what moments are counted from.
var epoch = time.Now()

func momentOf(t time.Time) moment { return moment(t.Sub(epoch)) }

// age is how long ago the moment was.
func (m moment) age() time.Duration { return time.Since(epoch) - time.Duration(m) }
