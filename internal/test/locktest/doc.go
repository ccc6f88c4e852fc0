// Package locktest holds what the tests of several packages have in common.
//
//   - [NoError], [IsError], [IsNotError], [ErrorSays], [Equal] and [DeepEqual] are requirements. The test ends when one is
//     not met, with what it got and what it wanted.
//   - [Start], [StartLock] and [StartFenced] make a call on a goroutine of its own.
//   - [Spy] sees the scripts that a go-redis client sends, [Hook] every command. [Ops] and [ScriptText] know the scripts.
//   - [Log] keeps what a logger is told.
//   - [Virtual] and [Sleep] are for tests in virtual time.
//   - [Main] runs the tests of a package and looks for goroutines that remain.
//
// The servers are those of package redistest. The package imports neither the locks nor the engine nor the scripts, so that
// the tests inside those packages can use it.
package locktest
