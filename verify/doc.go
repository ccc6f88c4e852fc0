// Command verify runs many clients of fencelock in processes of their own against real Redis servers, breaks things
// meanwhile, and checks what the clients saw. `go run . -h` tells the flags; docs/verification.md what is promised, what
// is done to break it, and what came of it.
//
// A round is one [scenario] with one seed: servers, worker processes, and faults at times that the seed decides. Workers
// are this program again; each does what random clients do, and writes down every call with its outcome: see [op]. A call
// without an answer stays open, as it may have been executed at any time after it was made. When the round is over, the
// history is checked rule by rule, and with porcupine against two models, of a lock and of what a guard protects. A
// violation leaves the history, and porcupine's picture of it, in files.
//
// A lock that is held is recorded as the time from the answer to its acquire to the last moment at which the client
// asked its context and was told that it lives: that is what alive means in the design's invariant 1.
//
// With -broken the program is built with bugs on purpose, one at a time, and each must be found.
package main
