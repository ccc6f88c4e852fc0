package pgxguard_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/pgxguard"
)

// A deposit by code that has only its context, which is one of lock.Do.
func ExampleGuard_Do() {
	deposit := func(ctx context.Context, pool *pgxpool.Pool, g *pgxguard.Guard) error {
		return g.Do(ctx, pool, "account:42", guard.Token(ctx, "account:42"), func(tx pgx.Tx) error {
			var balance int64
			if err := tx.QueryRow(ctx, "SELECT balance FROM account WHERE id = 42").Scan(&balance); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE account SET balance = $1 WHERE id = 42", balance+10)
			return err
		})
	}
	_ = deposit
}

// The table of the marks is sqlguard's, for those who keep their schema in migrations.
func ExampleGuard_Schema() {
	g, err := pgxguard.New(pgxguard.WithTable("bank.marks"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "bank"."marks" (resource bytea PRIMARY KEY, token bigint NOT NULL)
}
