// Package releases sees to it that what got no answer is released until it cannot matter.
//
// # State
//
// An Attempts says what became of the commands that may take one hold, and for how long they may still matter. A Releaser has a list of the
// releases that nobody waits for, with one entry for each Attempts at most. An Attempts knows its entry, so that the answer to an attempt
// makes its release due.
//
// # Rules
//
//	P3    a release is sent again until one lease has passed since Redis answered one that was sent when all attempts had ended
//	P8    after an error of a connection that had ended the next release follows after 1 ms, up to 100 times
//	P12   Close sends at once what is not known to be free, waits for it, and says what it leaves
//	P38   a hold that is over, and that Redis has all the same, is released; a question is the release of a hold that never was
//
// # The order of mutexes
//
// A goroutine that holds a mutex may take those to the right of it, and no others of this package.
//
//	Releaser.mu      Attempts.mu
//	Attempts.mu      none
//
// Client says which of its methods are called with Releaser.mu held: they must not use the Releaser. No mutex is held while the others are
// called. Close, and what is added after it, tell the log with Releaser.mu held.
package releases
