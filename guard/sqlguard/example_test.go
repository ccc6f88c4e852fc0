package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
	"github.com/fencelock/fencelock/rlock"
)

// A deposit under the lock, refused if somebody else has had the lock since and shown it.
func ExampleGuard_Do() {
	deposit := func(ctx context.Context, lock *fenced.Lock, g *sqlguard.Guard, db *sql.DB) error {
		err := lock.Do(ctx, func(ctx context.Context, token int64) error {
			return g.Do(ctx, db, "account:42", token, func(tx *sql.Tx) error {
				var balance int64
				if err := tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = 42").Scan(&balance); err != nil {
					return err
				}
				_, err := tx.ExecContext(ctx, "UPDATE account SET balance = $1 WHERE id = 42", balance+10)
				return err
			})
		}, rlock.Wait(3*time.Second))
		if errors.Is(err, guard.ErrStale) {
			fmt.Println("the lock was lost, nothing was written: begin again with a new acquire")
		}
		return err
	}
	_ = deposit
}

// The token in the row itself: no other table, and no other statement.
func ExampleColumn_Update() {
	rename := func(ctx context.Context, db *sql.DB, accounts *sqlguard.Column, token int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := accounts.Update(ctx, tx, 42, token, "owner = $1", "Ada"); err != nil {
			return err
		}
		return tx.Commit()
	}
	accounts, err := sqlguard.NewColumn(sqlguard.PostgreSQL, "account", "id", "fence")
	if err != nil {
		panic(err)
	}
	_, _ = rename, accounts
}
