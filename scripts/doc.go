// Package scripts is the wire protocol of a lock: one Lua script for each operation, a typed Go call for each script,
// and the names of the keys. Nothing else in this module knows keys, arguments or replies.
// Its exported names are for the other packages of this module: they are not promised, and may change in any version.
//
// # Alone and in a batch
//
// An operation is sent alone, or together with others of the same moment: one command then does all of them, each as if it
// were alone. In a cluster the operations of one slot share a command, and the commands share a pipeline. An operation that
// got no answer is to be repeated alone: if it is the one that keeps Redis from answering, its neighbours are answered then.
//
// # On the wire
//
// A lock is a hash at the lock's own name, with one field `<uuid>:<number>` for the hold that has it; the value is the hold
// count, and the key's expiry is the lease. The fencing counter is `redisson_lock_token:{NAME}`, the channel that tells of a
// release `redisson_lock__channel:{NAME}`, its message `0`. This is the form that Redisson 4.x uses, so that Go and Java
// processes share locks, tokens and wake-ups. There are two additions, which Redisson never looks at. One is the second
// field `<uuid>:<number>#` of a hold that was re-entered (P2), or behind which a client has entered the line (P36). The
// other is the line of the clients that wait: the sorted set `fencelock_line:{NAME}`, with a channel
// `fencelock_line:{NAME}:<client>` for each client. Where the name has a brace of its own the key is
// `fencelock_line_of:NAME`. See line.lua.
//
// A semaphore is the locks of its slots (slots.lua). A read-write lock has the keys of Redisson's RReadWriteLock (readwrite.lua).
//
// # Why every script may arrive twice
//
// A command whose answer was lost may have been executed, may be executed later, or twice. Each script is therefore
// written so that a copy of it finds either its own hold or nothing: the number in the field belongs to one hold and is
// never used again, counts are set and carry a change number, renewals and releases ask for the field first. go-redis
// repeats no script by itself, because the caller counts the lease from when the attempt that was answered was sent.
//
// # Servers
//
// Redis 6.2 or later, or Valkey: the scripts use no command, and no option of one, that came later (PEXPIRE GT,
// PEXPIRETIME). Redis 6.2 puts the place in the script before the code of an error ("@user_script: 12: -READONLY ..."), so
// this package looks for a code anywhere in the text of a script's error.
package scripts
