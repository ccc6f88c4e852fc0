package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

// A transaction that fn ends by a statement is no longer guarded, and Do says that nobody knows what was written.
func TestDoNoticesTheEnd(t *testing.T) {
	for _, kind := range kinds {
		if strings.HasPrefix(kind.name, "mariadb") {
			continue // nobody notices, as the doc says
		}
		for _, end := range [][]string{{"COMMIT"}, {"ROLLBACK"}, {"COMMIT", "UPDATE account SET v = v + 1 WHERE id = 1"}, {"COMMIT", "BEGIN", "UPDATE account SET v = v + 1 WHERE id = 1"},
			{"COMMIT", "BEGIN"}, {"ROLLBACK", "BEGIN", "UPDATE account SET v = v + 1 WHERE id = 1"}} {
			t.Run(fmt.Sprint(kind.name, "/", strings.Join(end, ",")), func(t *testing.T) {
				db := kind.open(t)
				a := newAccount(t, db)
				err := a.marks.Do(t.Context(), db, "account:1", 5, func(tx *sql.Tx) error {
					if err := a.set(t.Context(), tx, 1); err != nil {
						return err
					}
					for _, statement := range end {
						if _, err := tx.Exec(statement); err != nil {
							return err
						}
					}
					return nil
				})
				if !errors.Is(err, sqlguard.ErrUnknown) || sqlguard.Retryable(err) {
					t.Errorf("error %v", err)
				}
				noError(t, a.marks.Do(t.Context(), db, "account:1", 6, func(tx *sql.Tx) error { return a.set(t.Context(), tx, 2) }))
			})
		}
	}
}

// What fn commits itself may be there whatever Do finds afterwards: an error of fn, the end of the context.
func TestDoNoticesTheEndByTx(t *testing.T) {
	failed := errors.New("failed")
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		for i, c := range []struct {
			name     string
			cancel   bool
			err      error
			rollback bool
		}{{name: "alone"}, {name: "context over", cancel: true}, {name: "failed", err: failed}, {name: "failed, context over", cancel: true, err: failed}, {name: "rollback", rollback: true}} {
			ctx, cancel := context.WithCancel(t.Context())
			err := a.marks.Do(ctx, db, "account:1", 5, func(tx *sql.Tx) error {
				if err := a.set(t.Context(), tx, int64(i+1)); err != nil {
					return err
				}
				end := tx.Commit
				if c.rollback {
					end = tx.Rollback
				}
				if err := end(); err != nil {
					return err
				}
				if c.cancel {
					cancel()
				}
				return c.err
			})
			if !errors.Is(err, sqlguard.ErrUnknown) || !errors.Is(err, c.err) && c.err != nil || c.cancel && c.err == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v", c.name, err)
			}
			cancel()
		}
	})
}

// The end of the context rolls back while fn runs, and is known to.
func TestDoEndsWithItsContext(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		err := a.marks.Do(ctx, db, "account:1", 5, func(tx *sql.Tx) error {
			if err := a.set(t.Context(), tx, 1); err != nil {
				return err
			}
			cancel()
			// Another holder does not wait for fn.
			return a.marks.Do(t.Context(), db, "account:1", 6, func(tx *sql.Tx) error { return a.set(t.Context(), tx, 2) })
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, sqlguard.ErrUnknown) {
			t.Errorf("error %v", err)
		}
		if v, err := a.get(t.Context(), a); v != 2 || err != nil {
			t.Errorf("the account has %d, %v", v, err)
		}
	})
}

// Who broke the connection after a COMMIT as text has written.
func TestDoWithoutAnswerAtTheEnd(t *testing.T) {
	db := openPostgres(t)
	a := newAccount(t, db)
	err := a.marks.Do(t.Context(), db, "account:1", 5, func(tx *sql.Tx) error {
		if err := a.set(t.Context(), tx, 1); err != nil {
			return err
		}
		var pid int
		if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		if _, err := tx.Exec("COMMIT"); err != nil {
			return err
		}
		execute(t, db.DB, "SELECT pg_terminate_backend($1)", pid)
		return nil
	})
	if v, _ := a.get(t.Context(), a); v != 1 || !errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("the account has %d, error %v", v, err)
	}
}

// Savepoints are no end, and what PostgreSQL rolls back to one does not take the transaction's number with it.
func TestDoWithSavepoints(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		noError(t, a.marks.Do(t.Context(), db, "account:1", 5, func(tx *sql.Tx) error {
			for _, statement := range []string{"SAVEPOINT s", "UPDATE account SET v = 1", "ROLLBACK TO SAVEPOINT s", "SAVEPOINT s2", "UPDATE account SET v = 2", "RELEASE SAVEPOINT s2"} {
				if _, err := tx.Exec(statement); err != nil {
					return err
				}
			}
			return nil
		}))
		if v, err := a.get(t.Context(), a); v != 2 || err != nil {
			t.Errorf("the account has %d, %v", v, err)
		}
	})
}

// A marker table, or one with a column, that is not of InnoDB: stale writes would be accepted, and Create and the first
// check say so.
func TestAnotherEngine(t *testing.T) {
	for _, engine := range []string{"MyISAM", "Aria", "MEMORY"} {
		t.Run(engine, func(t *testing.T) {
			db := openMariaDB(t, "")
			other := func(g *sqlguard.Guard) {
				execute(t, db.DB, strings.Replace(g.Schema(), "ENGINE=InnoDB", "ENGINE="+engine, 1))
			}
			g, err := sqlguard.New(db.dialect)
			noError(t, err)
			other(g)
			for what, err := range map[string]error{
				"Create": g.Create(t.Context(), db),
				"Do":     g.Do(t.Context(), db, "r", 5, func(*sql.Tx) error { t.Error("fn ran"); return nil }),
			} {
				if err == nil || !strings.Contains(err.Error(), "ALTER TABLE fencelock_guard ENGINE=InnoDB") {
					t.Errorf("%s: error %v", what, err)
				}
			}
			execute(t, db.DB, "ALTER TABLE fencelock_guard ENGINE=InnoDB")
			noError(t, g.Create(t.Context(), db))
			noError(t, show(t, g, db, "r", 5))

			// Another table of this name is another table.
			upper, err := sqlguard.New(db.dialect, sqlguard.WithTable("FENCELOCK_GUARD"))
			noError(t, err)
			other(upper)
			if err := show(t, upper, db, "r", 5); err == nil {
				t.Error("accepted")
			}
			fresh, err := sqlguard.New(db.dialect)
			noError(t, err)
			noError(t, show(t, fresh, db, "r", 5))
			var schema string
			noError(t, db.QueryRow("SELECT DATABASE()").Scan(&schema))
			qualified, err := sqlguard.New(db.dialect, sqlguard.WithTable(schema+".FENCELOCK_GUARD"))
			noError(t, err)
			if err := qualified.Create(t.Context(), db); err == nil {
				t.Error("created")
			}

			a := newAccount(t, db)
			execute(t, db.DB, "ALTER TABLE account ENGINE="+engine)
			if err := a.column.Check(t.Context(), begin(t, db, sql.LevelDefault), 1, 5); err == nil || !strings.Contains(err.Error(), "ALTER TABLE account") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What is to be done again, and what not, as the drivers say it.
func TestRetryable(t *testing.T) {
	ctx := t.Context()
	// blocked is the error of a statement that would have to wait for another transaction, and does not.
	blocked := func(db database, impatient ...string) error {
		a := newAccount(t, db)
		tx := begin(t, db, sql.LevelDefault)
		noError(t, a.marks.Check(ctx, tx, "account:1", 5))
		conn, err := db.Conn(ctx)
		noError(t, err)
		defer conn.Close()
		for _, statement := range impatient {
			_, err := conn.ExecContext(ctx, statement)
			noError(t, err)
		}
		return a.marks.Do(ctx, conn, "account:1", 6, func(*sql.Tx) error { return nil })
	}
	for name, err := range map[string]error{
		"postgres":      blocked(openPostgres(t), "SET lock_timeout = '1ms'"),
		"mariadb":       blocked(openMariaDB(t, ""), "SET innodb_lock_wait_timeout = 0"),
		"sqlite-wal":    blocked(openSQLite(t, "WAL"), "PRAGMA busy_timeout = 0"),
		"sqlite-delete": blocked(openSQLite(t, "DELETE"), "PRAGMA busy_timeout = 0"),
	} {
		if !sqlguard.Retryable(err) || !sqlguard.Retryable(errors.Join(errors.New("more"), err)) {
			t.Errorf("%s: %v is not retryable", name, err)
		}
	}
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		noError(t, show(t, a.marks, db, "r", 5))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		statement := func(query string) error {
			return a.marks.Do(ctx, db, "r", 5, func(tx *sql.Tx) error { _, err := tx.Exec(query); return err })
		}
		for name, err := range map[string]error{
			"stale":     show(t, a.marks, db, "r", 4),
			"no SQL":    statement("SELECT FROM WHERE"),
			"duplicate": statement("INSERT INTO account (id, v) VALUES (1, 0)"),
			"ended":     a.marks.Do(ended, db, "r", 5, func(*sql.Tx) error { return nil }),
		} {
			if err == nil || sqlguard.Retryable(err) {
				t.Errorf("%s: %v is retryable", name, err)
			}
		}
		if sqlguard.Retryable(nil) || sqlguard.Retryable(guard.ErrStale) {
			t.Error("nothing, or a refusal, is retryable")
		}
	})
}
