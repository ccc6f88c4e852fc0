// Package pgxguard refuses stale tokens in a transaction of pgx, by itself or from a pgxpool. It is what sqlguard's Guard is for
// database/sql: the marker table is the same, so that programs with either may write side by side.
//
//	g, err := pgxguard.New()   // one for the process
//	err = g.Create(ctx, pool)  // the marker table, or Schema in a migration
//	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
//		return g.Do(ctx, pool, "account:42", token, func(tx pgx.Tx) error {
//			... // reads and writes by tx
//		})
//	})
//
// Code that has only its context shows guard.Token(ctx, "account:42").
//
// What [sqlguard] says of PostgreSQL holds here: make the check the first statement of the transaction; READ COMMITTED is enough; return
// the error of every statement, and roll back.
//
// # When the database is away
//
// Errors are those of pgx, wrapped. Nothing is tried again. An error of a check or of a statement means that nothing was written, since
// nothing was committed. A commit that failed may have happened all the same: that is [sqlguard.ErrUnknown]. Where [sqlguard.Retryable] is
// true, PostgreSQL has ended the transaction for another one; nothing was written, and the whole of it may be done again with the same
// token, as long as the lock is held.
package pgxguard
