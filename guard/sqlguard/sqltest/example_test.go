package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

// Two holders of a lock, the first of which was paused: its write comes after the second one's, and is refused.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the database is gone with its last connection
	if _, err := db.Exec("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (42, 100)"); err != nil {
		log.Fatal(err)
	}

	g, err := sqlguard.New(sqlguard.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Create(ctx, db); err != nil {
		log.Fatal(err)
	}
	deposit := func(token int64) {
		err := g.Do(ctx, db, "account:42", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10 WHERE id = 42")
			return err
		})
		fmt.Println(token, "refused:", errors.Is(err, guard.ErrStale), err)
	}
	deposit(34)
	deposit(33)

	// Output:
	// 34 refused: false <nil>
	// 33 refused: true guard: stale fencing token of "account:42": 33 was shown, and 34 has been seen
}
