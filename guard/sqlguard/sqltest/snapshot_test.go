package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

// A transaction that has read before its check is judged by the newest token all the same, or ended by the database. What
// it reads after an accepted check can be old: the one case that sqlguard's doc warns of.
func TestReadBeforeTheCheck(t *testing.T) {
	for _, c := range []struct {
		name     string
		open     func(t testing.TB) database
		level    sql.IsolationLevel
		conflict bool // the database ends it
		old      bool // it is accepted by the marker, and goes on reading what was
	}{
		{"postgres", openPostgres, sql.LevelReadCommitted, false, false},
		{"postgres", openPostgres, sql.LevelRepeatableRead, true, false},
		{"postgres", openPostgres, sql.LevelSerializable, true, false},
		{"mariadb", func(t testing.TB) database { return openMariaDB(t, "") }, sql.LevelReadCommitted, false, false},
		{"mariadb", func(t testing.TB) database { return openMariaDB(t, "") }, sql.LevelRepeatableRead, false, true},
		{"mariadb-snapshot", func(t testing.TB) database { return openMariaDB(t, "innodb_snapshot_isolation=ON") }, sql.LevelRepeatableRead, true, false},
		{"sqlite-wal", func(t testing.TB) database { return openSQLite(t, "WAL") }, sql.LevelDefault, true, false},
	} {
		for _, w := range []way{byMarker, byColumn} {
			for _, token := range []int64{5, 10} {
				t.Run(fmt.Sprint(c.name, "/", c.level, "/", w.name, "/", token), func(t *testing.T) {
					db := c.open(t)
					a := newAccount(t, db)
					noError(t, a.inTx(t.Context(), c.level, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, 1, 1) }))
					tx := begin(t, db, c.level)
					_, err := a.get(t.Context(), tx)
					noError(t, err)
					noError(t, a.inTx(t.Context(), c.level, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, 9, 9) }))

					err = w.check(t.Context(), a, tx, token)
					var stale *guard.StaleError
					switch {
					case c.conflict:
						if !sqlguard.Retryable(err) {
							t.Errorf("error %v, want that the database ends it", err)
						}
					case token < 9:
						if !errors.As(err, &stale) || stale.Seen != 9 {
							t.Errorf("error %v, want a refusal by 9", err)
						}
					default:
						noError(t, err)
						want := int64(9)
						if c.old && w.name == byMarker.name {
							want = 1
						}
						if v, err := a.get(t.Context(), tx); v != want || err != nil {
							t.Errorf("read %d, %v, want %d", v, err, want)
						}
					}
				})
			}
		}
	}
}

// Inv4: at READ COMMITTED, and in MySQL's REPEATABLE READ, a read before the check is not covered by it: the write that
// depends on the read undoes another holder's. After the check it does not.
func TestReadBeforeTheCheckLosesAnUpdate(t *testing.T) {
	for _, kind := range kinds[:3] {
		for _, w := range []way{byMarker, byColumn} {
			for _, first := range []bool{false, true} {
				t.Run(fmt.Sprint(kind.name, "/", w.name, "/check first: ", first), func(t *testing.T) {
					db := kind.open(t)
					a := newAccount(t, db)
					add := func(tx *sql.Tx, token int64, before func()) error {
						if first {
							if err := w.check(t.Context(), a, tx, token); err != nil {
								return err
							}
						}
						v, err := a.get(t.Context(), tx)
						if err != nil {
							return err
						}
						before()
						return w.write(t.Context(), a, tx, token, v+1)
					}
					other := make(chan error, 1)
					tx := begin(t, db, sql.LevelReadCommitted)
					noError(t, add(tx, 6, func() { // the newer holder is held up between read and write
						go func() {
							other <- a.inTx(t.Context(), sql.LevelReadCommitted, func(tx *sql.Tx) error { return add(tx, 5, func() {}) })
						}()
						if first {
							awaitWaiting(t, db, 1)
						} else {
							noError(t, <-other)
						}
					}))
					noError(t, tx.Commit())
					want := int64(1)
					if first {
						isStale(t, <-other, guard.StaleError{Resource: map[string]string{"marker": "account:1", "column": "account.id=1"}[w.name], Token: 5, Seen: 6})
					}
					if v, err := a.get(t.Context(), a); v != want || err != nil {
						t.Errorf("the account has %d, %v", v, err)
					}
				})
			}
		}
	}
}

// With innodb_snapshot_isolation, which is on from MariaDB 11.6.2 on, a check that waited for another transaction ends with
// error 1020 at SERIALIZABLE, although it comes first, and the transaction is to be done again. At REPEATABLE READ it does
// not, because nothing was read yet.
func TestSnapshotIsolationWithTheCheckFirst(t *testing.T) {
	for i, w := range []way{byMarker, byColumn, byMarker, byColumn} {
		level := []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable}[i/2]
		t.Run(fmt.Sprint(level, "/", w.name), func(t *testing.T) {
			db := openMariaDB(t, "innodb_snapshot_isolation=ON")
			a := newAccount(t, db)
			write := func(token int64) error {
				return a.inTx(t.Context(), level, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, token, token) })
			}
			noError(t, write(1))
			first, second := begin(t, db, level), begin(t, db, level)
			noError(t, w.write(t.Context(), a, first, 5, 5))
			waited := make(chan error, 1)
			go func() { waited <- w.check(t.Context(), a, second, 6) }()
			awaitWaiting(t, db, 1)
			noError(t, first.Commit())
			err := <-waited
			var my *mysql.MySQLError
			if level == sql.LevelRepeatableRead {
				noError(t, err)
			} else if !errors.As(err, &my) || my.Number != 1020 || !sqlguard.Retryable(err) {
				t.Errorf("error %v", err)
			}
			noError(t, second.Rollback())
			noError(t, write(6))
		})
	}
}

// In SQLite, where nobody can be asked who waits: a check, accepted or refused, keeps others out until its transaction
// ends.
func TestSQLiteCheckIsAWrite(t *testing.T) {
	for _, journal := range []string{"WAL", "DELETE"} {
		for _, w := range []way{byMarker, byColumn} {
			for _, token := range []int64{3, 5, 7} {
				t.Run(fmt.Sprint(journal, "/", w.name, "/", token), func(t *testing.T) {
					db := openSQLite(t, journal)
					a := newAccount(t, db)
					noError(t, a.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, 5, 1) }))
					first, second := begin(t, db, sql.LevelDefault), begin(t, db, sql.LevelDefault)
					if err := w.check(t.Context(), a, first, token); (err == nil) != (token >= 5) {
						t.Fatal(err)
					}
					impatient, err := db.Conn(t.Context())
					noError(t, err)
					defer impatient.Close()
					_, err = impatient.ExecContext(t.Context(), "PRAGMA busy_timeout = 0")
					noError(t, err)
					tx, err := impatient.BeginTx(t.Context(), nil)
					noError(t, err)
					if err := w.check(t.Context(), a, tx, 9); !sqlguard.Retryable(err) {
						t.Errorf("error %v, want that the database is busy", err)
					}
					noError(t, tx.Rollback())
					noError(t, first.Rollback())
					noError(t, w.check(t.Context(), a, second, 9))
					noError(t, second.Commit())
				})
			}
		}
	}
}
