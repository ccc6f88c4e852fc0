// Package guard is the storage's side of fencing: it refuses a write whose token is older than one it has seen.
//
// The rule is the same everywhere. For a resource, a write is accepted when its token is at least the largest token
// accepted before it; check, remember and write are one atomic step. Otherwise nothing is written and the error is
// [ErrStale]. A write that fails leaves the mark as it was where it leaves nothing else: a transaction that is rolled back,
// a function of yours that says so. Of any other the token counts, because an older one must not get in behind half of a
// newer one's write.
//
// The resource is what the token protects, by whatever name the writers agree on; in most programs it is the name of
// the lock. Tokens of different locks cannot be compared, so that one resource is written under one lock.
//
// A hold may write many times under its token, which is why equal tokens pass. A read that a write depends on is shown
// the token too: otherwise an older holder can still write between a newer holder's read and its write.
//
// The packages below it do this in one store each: redisguard in Redis, sqlguard in a transaction of database/sql, pgxguard in one of pgx,
// s3guard in an object store, httpguard for a token that travels with a request. [Memory] is for a service that owns its data in one process.
package guard
