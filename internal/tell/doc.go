// Package tell calls what a user has given to be told by: the functions of a trace, and the methods of a log's handler. A library that calls
// them from where something happens waits for them, and may be called by them. Here an Outbox calls them, on a goroutine of its own.
//
// # Rules
//
//	P39  functions of the user's that block, panic, or end their goroutine    Outbox
//
// # Mutexes
//
// messages.mu comes before Outbox.mu. No mutex is held while a function of the user's is called.
package tell
