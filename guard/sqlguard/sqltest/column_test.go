package sqltest

import (
	"database/sql"
	"errors"
	"math"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

// A write is accepted by the row's token, from NULL to the largest there is, and leaves its own there; a refused one
// leaves the row as it was.
func TestColumnTokens(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		a := newAccount(t, db)
		execute(t, a.DB, "INSERT INTO account (id, v) VALUES (2, 77)")
		var seen, v int64
		for i, token := range []int64{3, 3, 2, 4, 1, 4, 1 << 53, 1<<53 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, 1} {
			err := a.inTx(t.Context(), level, func(tx *sql.Tx) error {
				return a.column.Update(t.Context(), tx, 1, token, "v = "+a.mark(1)+", owner = "+a.mark(2), i, "Ada")
			})
			if token < seen {
				isStale(t, err, guard.StaleError{Resource: "account.id=1", Token: token, Seen: seen})
			} else {
				noError(t, err)
				seen, v = token, int64(i)
			}
			var gotV, gotFence int64
			noError(t, a.QueryRow("SELECT v, fence FROM account WHERE id = 1").Scan(&gotV, &gotFence))
			if gotV != v || gotFence != seen {
				t.Errorf("the row has %d and the token %d, want %d and %d", gotV, gotFence, v, seen)
			}
		}
		var others int
		noError(t, a.QueryRow("SELECT count(*) FROM account WHERE id = 2 AND v = 77 AND fence IS NULL").Scan(&others))
		if others != 1 {
			t.Error("another row was written")
		}
	})
}

// A write that changes nothing is accepted or refused like any other, however the database counts it.
func TestColumnUpdateChangesNothing(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		a := newAccount(t, db)
		write := func(token int64, set string, args ...any) error {
			return a.inTx(t.Context(), level, func(tx *sql.Tx) error { return a.column.Update(t.Context(), tx, 1, token, set, args...) })
		}
		for range 3 {
			noError(t, write(5, "v = "+a.mark(1), 8))
			noError(t, write(5, "v = v"))
			noError(t, write(5, "")) // which is Check
		}
		isStale(t, write(4, "v = "+a.mark(1), 8), guard.StaleError{Resource: "account.id=1", Token: 4, Seen: 5})
		isStale(t, write(4, ""), guard.StaleError{Resource: "account.id=1", Token: 4, Seen: 5})
	})
}

// Set takes no part of the fence away, whatever is in it: a stale write is refused, or an error, and a fresh one that is
// done leaves its token.
func TestColumnSetThatDoesMore(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		write := func(token int64, set string) error {
			return a.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return a.column.Update(t.Context(), tx, 1, token, set) })
		}
		for i, set := range []string{
			"v = 5", "v = 5 WHERE id = 1; UPDATE account SET v = 5 /*", "v = 5 WHERE id = 1; UPDATE account SET v = 5 --", "v = 5; UPDATE account SET v = 5", "v = 5 WHERE id = 1\x00",
			"v = 5 WHERE id = 1 OR (id = 1", "v = 'it\\', owner = ' WHERE id = 1 #", "v = 5 -- why", "v = 5 --\n", "v = 5 /* why", "v = 5 # why", "v = 5;", "v = 5; --", "v = 5; /*", "fence = 1, v = 5", "v = 5,", " ", "v = 5 WHERE id = 1 --", "v = 5 WHERE id = 1 /*",
		} {
			token := int64(10 * (i + 1))
			noError(t, write(token, "v = 9"))
			err := write(token-1, set)
			var v, fence int64
			noError(t, a.QueryRow("SELECT v, fence FROM account WHERE id = 1").Scan(&v, &fence))
			if err == nil || v != 9 || fence != token {
				t.Errorf("%q: a stale write says %v, and leaves %d and the token %d", set, err, v, fence)
			}
			if i == 0 {
				isStale(t, err, guard.StaleError{Resource: "account.id=1", Token: token - 1, Seen: token})
			}
			err = write(token+1, set)
			noError(t, a.QueryRow("SELECT v, fence FROM account WHERE id = 1").Scan(&v, &fence))
			if err == nil && (v != 5 || fence != token+1) || err != nil && (v != 9 || fence != token) {
				t.Errorf("%q: a fresh write says %v, and leaves %d and the token %d", set, err, v, fence)
			}
		}
	})
}

// No row is another error than a stale token, and so are two rows.
func TestColumnOtherRows(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		tx := begin(t, db, sql.LevelDefault)
		for _, set := range []string{"", "v = v + 1"} {
			err := a.column.Update(t.Context(), tx, 2, 5, set)
			if !errors.Is(err, sql.ErrNoRows) || errors.Is(err, guard.ErrStale) {
				t.Errorf("error %v", err)
			}
		}
		noError(t, tx.Rollback())

		execute(t, a.DB, "INSERT INTO account (id, v, owner) VALUES (2, 0, 'Ada'), (3, 0, 'Ada')")
		byOwner, err := sqlguard.NewColumn(db.dialect, "account", "owner", "fence")
		noError(t, err)
		tx = begin(t, db, sql.LevelDefault)
		if err := byOwner.Check(t.Context(), tx, "Ada", 5); err == nil {
			t.Error("a key of two rows was accepted")
		}
	})
}

// A row whose insert is not committed yet is waited for in MySQL, and is not there in PostgreSQL.
func TestColumnRowBeingInserted(t *testing.T) {
	for _, kind := range kinds[:3] {
		t.Run(kind.name, func(t *testing.T) {
			for _, token := range []int64{4, 5, 6} {
				db := kind.open(t)
				a := newAccount(t, db)
				execute(t, a.DB, "DELETE FROM account")
				insert := begin(t, db, sql.LevelReadCommitted)
				_, err := insert.Exec("INSERT INTO account (id, v, fence) VALUES (1, 0, 5)")
				noError(t, err)
				tx := begin(t, db, sql.LevelReadCommitted)
				update := func() error { return a.column.Update(t.Context(), tx, 1, token, "v = v + 1") }
				if db.dialect == sqlguard.PostgreSQL {
					if err := update(); !errors.Is(err, sql.ErrNoRows) {
						t.Errorf("error %v, want that there is no row", err)
					}
					noError(t, insert.Commit())
					err = update()
				} else {
					done := make(chan error, 1)
					go func() { done <- update() }()
					awaitWaiting(t, db, 1)
					noError(t, insert.Commit())
					err = <-done
				}
				if token < 5 {
					isStale(t, err, guard.StaleError{Resource: "account.id=1", Token: token, Seen: 5})
					continue
				}
				noError(t, err)
				if v, err := a.get(t.Context(), tx); v != 1 || err != nil {
					t.Errorf("written %d times, %v", v, err)
				}
			}
		})
	}
}

// A placeholder without an argument does not take one of the guard's own: the token is not data.
func TestColumnForgottenArgument(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		sets := []string{"v = " + a.mark(1)}
		if db.dialect == sqlguard.SQLite {
			sets = append(sets, "v = ?1")
		}
		for _, set := range sets {
			err := a.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return a.column.Update(t.Context(), tx, 1, 50, set) })
			if v, got := a.get(t.Context(), a); err == nil || v != 0 || got != nil {
				t.Errorf("%s: error %v, and the row has %d, %v", set, err, v, got)
			}
		}
	})
}

// A key may be a pointer, and is named by what it points to.
func TestColumnPointerKey(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		a := newAccount(t, db)
		key := int64(1)
		update := func(token int64) error {
			return a.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return a.column.Check(t.Context(), tx, &key, token) })
		}
		noError(t, update(5))
		isStale(t, update(4), guard.StaleError{Resource: "account.id=1", Token: 4, Seen: 5})
	})
}
