package sqltest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/fencelock/fencelock/guard/sqlguard"
)

// account is the row that the tests write: account 1, whose v counts the writes.
type account struct {
	database
	marks  *sqlguard.Guard
	column *sqlguard.Column
}

func newAccount(t testing.TB, db database) account {
	t.Helper()
	execute(t, db.DB, "CREATE TABLE account (id BIGINT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, owner VARCHAR(20), fence BIGINT)")
	execute(t, db.DB, "INSERT INTO account (id, v) VALUES (1, 0)")
	column, err := sqlguard.NewColumn(db.dialect, "account", "id", "fence")
	noError(t, err)
	return account{db, newGuard(t, db), column}
}

// A way is one of those to guard the account.
type way struct {
	name  string
	check func(ctx context.Context, a account, tx *sql.Tx, token int64) error
	write func(ctx context.Context, a account, tx *sql.Tx, token, v int64) error
}

var (
	byMarker = way{
		"marker",
		func(ctx context.Context, a account, tx *sql.Tx, token int64) error {
			return a.marks.Check(ctx, tx, "account:1", token)
		},
		func(ctx context.Context, a account, tx *sql.Tx, token, v int64) error {
			if err := a.marks.Check(ctx, tx, "account:1", token); err != nil {
				return err
			}
			return a.set(ctx, tx, v)
		},
	}
	byColumn = way{
		"column",
		func(ctx context.Context, a account, tx *sql.Tx, token int64) error {
			return a.column.Check(ctx, tx, 1, token)
		},
		func(ctx context.Context, a account, tx *sql.Tx, token, v int64) error {
			return a.column.Update(ctx, tx, 1, token, "v = "+a.mark(1), v)
		},
	}
	unguarded = way{
		"unguarded",
		func(context.Context, account, *sql.Tx, int64) error { return nil },
		func(ctx context.Context, a account, tx *sql.Tx, _, v int64) error { return a.set(ctx, tx, v) },
	}
)

// mark is the placeholder of the n-th argument, of one or of none before it.
func (db database) mark(n int) string {
	if db.dialect == sqlguard.PostgreSQL {
		return []string{"$1", "$2"}[n-1]
	}
	return "?"
}

// set writes v as anybody does.
func (a account) set(ctx context.Context, tx *sql.Tx, v int64) error {
	_, err := tx.ExecContext(ctx, "UPDATE account SET v = "+a.mark(1)+" WHERE id = 1", v)
	return err
}

// get reads v as anybody does.
func (a account) get(ctx context.Context, db sqlguard.Rower) (v int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT v FROM account WHERE id = 1").Scan(&v)
	return v, err
}

// inTx runs fn in a transaction, again as long as the database ends it for the sake of another.
func (a account) inTx(ctx context.Context, level sql.IsolationLevel, fn func(tx *sql.Tx) error) error {
	for {
		err := func() error {
			tx, err := a.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := fn(tx); err != nil {
				return err
			}
			return tx.Commit()
		}()
		if !sqlguard.Retryable(err) {
			return err
		}
	}
}
