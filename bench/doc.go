// Command bench measures fencelock beside other locks for Go, and beside Redisson, on one Redis server, which it starts itself on loopback.
//
// A contender is a way of locking, a mode a kind of load. A round is one contender in one mode for one window of time;
// a repeat is one round of each, so that a slow moment of the machine meets all of them. What is shown are medians over
// the repeats, and ratios between rounds of the same repeat. `go run . -h` tells the flags.
//
// Most modes compare kinds of load; those of many clients compare how the cost grows with the processes that want one lock,
// where a client stands for a process. Their windows are longer, and they take part in fewer repeats. So it is with the modes of a
// quorum of servers, where one server may be far or dead.
//
// The modes semaphore and rwlock, which run only when they are asked for, have permits and read-write locks instead of locks: see kind.go.
//
// The modes others, which run only when they are asked for, have fencelock beside locks that are not in Redis: etcd's and PostgreSQL's.
// Their servers run below processes of this program again: see hosted.
//
// Most contenders run in this process. Redisson runs in a JVM, whose program is in the directory redisson: see remote.
//
// Every round also checks what a lock is for: that no two were in a section at once, of a semaphore no more than it has permits, that tokens
// grew, and that every waiter came back when the load ended.
package main
