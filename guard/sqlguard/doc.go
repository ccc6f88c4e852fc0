// Package sqlguard refuses stale tokens in a transaction of database/sql: in PostgreSQL, in MySQL or MariaDB (InnoDB), and
// in SQLite. It imports no driver; the transaction is the caller's own, and so is the write.
//
// There are two ways. A [Guard] keeps the largest token of each resource in a marker table, for writes of any shape. A
// [Column] keeps it in the row that is written, for writes of one row.
//
//	g, err := sqlguard.New(sqlguard.PostgreSQL) // one for the process
//	err = g.Create(ctx, db)                     // the marker table, or Schema in a migration
//	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
//		return g.Do(ctx, db, "account:42", token, func(tx *sql.Tx) error {
//			... // reads and writes by tx
//		})
//	})
//
// # Check first
//
// Make the check the first statement of the transaction. It locks the mark until the transaction ends, so that
// everything after it is alone with its resource: of two transactions the second waits, and is then refused or accepted
// by what the first one left. A transaction that is rolled back leaves no mark. A read that a write depends on comes
// after the check, in the same transaction, or in an earlier one that showed the same token. Return the error of a
// check, and roll back: a refusal does not stop the statements that follow it. Rolling back to a savepoint from before
// the check takes the check back.
//
// Return the error of every other statement too, and roll back. With some (a deadlock) MySQL and SQLite have rolled back
// everything, the mark included, and each statement that follows is committed by itself. DDL, LOCK TABLES and a COMMIT
// as text end the transaction in MySQL, and with it what the check covers.
//
// What goes wrong when reads come first:
//
//   - READ COMMITTED, in PostgreSQL and MySQL: nobody says anything, and an update is lost. What was read before the check
//     may have been written by another holder since, and an accepted check does not say so.
//   - MySQL, REPEATABLE READ (its default): the first read fixes what all later plain reads see. The check itself, which
//     never reads that old state, still refuses what is stale; but reads after an accepted check can be older than it.
//     With innodb_snapshot_isolation, which is on by default from MariaDB 11.6.2 on, the check ends with error 1020 instead.
//   - PostgreSQL, REPEATABLE READ and SERIALIZABLE: the check fails with SQLSTATE 40001 if the mark has changed since.
//   - SQLite: a transaction that has read and then writes fails with SQLITE_BUSY_SNAPSHOT (WAL), or SQLITE_BUSY where two
//     do it at once (rollback journal), without waiting. The check is a write, so that a transaction that begins with it
//     waits its turn as long as the driver's busy timeout says; set one.
//
// # Isolation
//
// READ COMMITTED is enough. Under REPEATABLE READ and SERIALIZABLE a transaction of PostgreSQL that waited for another
// one ends with 40001 instead of a refusal. MariaDB with innodb_snapshot_isolation gives 1020 there at SERIALIZABLE, also
// where the check comes first. MySQL may end one with a deadlock (1213), above all when several transactions bring the
// first token of a resource at once. Such errors are the driver's, wrapped; nothing was written, and the whole transaction
// may be tried again with the same token as long as the lock is held. Those that PostgreSQL and SQLite give at the commit
// are of the same kind. [Retryable] knows them.
//
// # Engines
//
// In MySQL and MariaDB the tables are InnoDB's. MyISAM, Aria and MEMORY know no transactions: a stale write would be
// accepted. Create says so, and the first check of each Guard and Column.
//
// # When the database is away
//
// The errors are the driver's, wrapped. Nothing is tried again. An error of a check or of a statement means that nothing
// was written, since nothing was committed. A commit that failed may have happened all the same: see [ErrUnknown].
package sqlguard
