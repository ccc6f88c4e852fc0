package engine

import "time"

// Limits is what a client's store bounds, or cannot do. The zero value is for one Redis.
type Limits struct {
	Several bool                    // the store is several servers: one attempt may be taken by some of them, and there are no handoffs
	Longest time.Duration           // of leases; 0: as long as Redis allows
	Tries   int                     // of one call; 0: as many as its wait allows
	Owes    func(field string) bool // tells whether some server may still have this field, or get it late; nil: none ever
}
