// Package redistest holds the servers and links that this project's tests run
// against.
//
//   - [New] and [Start] give a fresh, empty server: an in-process miniredis, or
//     a real one when the environment variable REDIS_SERVER names a program.
//   - [Real] gives a real server process that can be frozen, killed and
//     restarted.
//   - [Replicated], [Watched] and [Clustered] give several of them: a master
//     with replicas, the same with three Sentinels, and a cluster.
//   - [Pipe] gives a server without a network, for use in a testing/synctest
//     bubble.
//   - [NewProxy] gives a TCP proxy that can lose, delay, repeat or refuse
//     single commands and replies.
//   - [Eventually], [Settles] and [CheckGoroutines] are checks with a bound in time.
//
// Everything is closed by the Cleanup of the test that asked for it. The
// package needs a Unix system.
package redistest
