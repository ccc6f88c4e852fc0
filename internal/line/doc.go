// Package line is one client's side of the line in which the clients wait for a lock: what the
// client knows of its own place, what it has heard, when it looks by itself, and whether it leaves
// the lock to others for a moment. The line itself is in Redis (scripts/line.lua), and docs/line.md
// says how it works.
//
// # State
//
// A Place is all that a client knows of its place in the line for one lock. It is a value: the time
// is an argument, and what the client is to do is returned. A Place sends nothing, subscribes to
// nothing and waits for nothing.
//
// # Rules
//
// docs/protocol.md has the rules. Here are:
//
//	P19  a call for a place that the client has not got       Place.Hear
//	P22  a client whose channel was away enters again         Place.ChannelLost, Place.Turn
//	P24  how long a called client may take to come            Place.watch, Place.overdue, Distance
//	P25  who listens on the lock's own channel too            Place.Refused
//	P26  who leaves messages of a release to others           Place.Behind
//	P27  the client leaves the lock to outsiders              yieldPolicy, Place.Heed
//	P32  when the client looks by itself                      lookPolicy, Place.Refused, Place.RefusedOutside
//
// # Mutexes
//
// There are none. Whoever has a Place sees to it that one goroutine at a time uses it.
package line
