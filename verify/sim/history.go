package main

import (
	"fmt"
	"time"
)

// An event is one thing that happened, at a time since the world began. The history of a world is all of them, in order.
type event struct {
	At     time.Duration
	Kind   string
	Client string        `json:",omitempty"` // "c3.1": the third process of the plan, when it was started for the second time
	Caller int           `json:",omitempty"`
	Lock   string        `json:",omitempty"`
	Call   int           `json:",omitempty"` // the number of the acquiring call that the event belongs to
	Token  int64         `json:",omitempty"`
	For    time.Duration `json:",omitempty"` // of a call: its wait; of a hold: its lease; of a fault: how long until all is well after its end
	Text   string        `json:",omitempty"` // what else there is to say: an error, an owner, a fault
	Count  int           `json:",omitempty"`
	Levels int           `json:",omitempty"`
	Server int           `json:",omitempty"` // of a fault
	Reads  bool          `json:",omitempty"` // of a call: it is to read
	All    bool          `json:",omitempty"` // of a call: it is one of two that DoAll makes
	Import int           `json:",omitempty"` // of a call: it imports the hold of that call
	Slot   string        `json:",omitempty"` // of a permit: the lock of its slot
}

// The kinds of an event.
const (
	asks     = "asks"     // an acquire begins; For: how long it may take at most
	got      = "got"      // it has the lock; For: its lease
	nested   = "nested"   // a re-entry has succeeded
	refused  = "refused"  // it has not got the lock; Text: the error
	ended    = "ended"    // the context of the hold has ended; Text: the cause
	failed   = "failed"   // a re-entry, or the Unlock of a level; For: how long it took, Text: the error
	extends  = "extends"  // Extend begins, by For
	extended = "extended" // and is over; Text: the error
	watches  = "watches"  // it is to say from now on whether somebody waits
	waited   = "waited"   // somebody does
	exports  = "exports"  // the hold is exported: from now on another call may import it
	remains  = "remains"  // the lease lasts for For, as the client and the servers say
	unlocks  = "unlocks"  // Unlock begins, of the last level
	unlocked = "unlocked" // and is over; Text: the error
	counted  = "counted"  // HoldCount says Count, where Levels are open
	started  = "started"  // the client is there; Text: its id
	closes   = "closes"   // Close or Shutdown begins
	closed   = "closed"   // and is over
	died     = "died"     // the process of the client is gone
	has      = "has"      // most servers have this lock by the field in Text, "" for nobody
	begins   = "begins"   // a fault; Text says which
	ends     = "ends"     // its end
	lost     = "lost"     // data is gone, or clocks were set: what was promised while Redis keeps its data is off for what was there
	left     = "left"     // something is left in the end; Text says what
	calm     = "calm"     // from here on there is no fault
	stops    = "stops"    // the callers begin no more calls, and waits end
)

// placeOf is the place in the plan of the client with this name.
func placeOf(client string) (place int, ok bool) {
	var run int
	_, err := fmt.Sscanf(client, "c%d.%d", &place, &run)
	return place, err == nil
}
