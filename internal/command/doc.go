// Package command is the one way in which a call waits for the answer of Redis to a command. An
// acquire, an Unlock, a hold count, a ForceUnlock and a question use it. The caller may stop
// waiting: the command goes on, and its answer counts for its attempts (P3).
//
// # State
//
// A Command is one operation under way. A Wakeup wakes the one goroutine that waits for it, and for
// other things. A Sender has the Store, and what is used again and again. A Backoff is the pauses
// between the repeats of a command.
//
// # Rules
//
//	P3, P13   a command that has not left is taken back; one that has left is answered later, and says so to its attempts
//	P6        a lease counts from before the command was written: Command.SentAt
//	P7        the answer to an earlier attempt counts as well as that to its repeat
//	P8        after an error of a connection that had ended the repeat follows after 1 ms, up to 100 times
//	P12       a repeat tells whether an earlier attempt may have been executed
//	P19       a client leaves the line when the command is over by which it may enter: Command.AfterFunc
//
// # Mutexes
//
// The package has none. The Store may be called, and calls Command.Answered, with mutexes held that
// internal/engine/doc.go names: a Command calls its attempts, its wake-ups and its AfterFunc there.
package command
