package sqltest

import (
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// show checks the token in a transaction of its own, which it commits or, on an error, rolls back.
func show(t *testing.T, g *sqlguard.Guard, db database, resource string, token int64) error {
	t.Helper()
	return g.Do(t.Context(), db, resource, token, func(*sql.Tx) error { return nil })
}

// isSeen requires the largest token accepted.
func isSeen(t *testing.T, g *sqlguard.Guard, db database, resource string, want int64) {
	t.Helper()
	seen, err := g.Seen(t.Context(), db, resource)
	noError(t, err)
	if seen != want {
		t.Errorf("seen %d, want %d", seen, want)
	}
}

// isStale requires the refusal with these figures.
func isStale(t *testing.T, err error, want guard.StaleError) {
	t.Helper()
	var stale *guard.StaleError
	if !errors.As(err, &stale) || *stale != want || !errors.Is(err, guard.ErrStale) {
		t.Errorf("error %v, want %v", err, &want)
	}
}

// A token is accepted when none larger was accepted for the resource, up to the largest there is.
func TestTokens(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		g := newGuard(t, db)
		isSeen(t, g, db, "r", 0)
		var seen int64
		for _, token := range []int64{3, 3, 2, 4, 1, 4, 1 << 53, 1<<53 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, 1} {
			err := show(t, g, db, "r", token)
			if token < seen {
				isStale(t, err, guard.StaleError{Resource: "r", Token: token, Seen: seen})
			} else {
				noError(t, err)
				seen = token
			}
			isSeen(t, g, db, "r", seen)
		}
		isSeen(t, g, db, "another", 0)
		noError(t, show(t, g, db, "another", 1))
	})
}

// Resources are told apart byte by byte.
func TestResourcesAreBytes(t *testing.T) {
	names := []string{
		"a", "A", "á", "a\u0301", "ａ", "a ", " a", "a  ", "a\t", "a\n", "a\x00", "a\x00\x00", "\x00", "\x00a", "ß", "ss", "ı", "i",
		"\xff", "\xff\xfe", "🔒", "🔓", `\`, `\\`, `a\`, "a'", `a"`, "a`", "a%", "a_", "?", "$1", "0x61", "'; DROP TABLE fencelock_guard; --",
		strings.Repeat("x", sqlguard.MaxResource), strings.Repeat("x", sqlguard.MaxResource-1) + "y", strings.Repeat("\x00", sqlguard.MaxResource),
	}
	forEach(t, func(t *testing.T, db database) {
		g := newGuard(t, db)
		for i, name := range names {
			isSeen(t, g, db, name, 0)
			noError(t, show(t, g, db, name, int64(1000-i)))
		}
		for i, name := range names {
			isSeen(t, g, db, name, int64(1000-i))
			isStale(t, show(t, g, db, name, int64(999-i)), guard.StaleError{Resource: name, Token: int64(999 - i), Seen: int64(1000 - i)})
		}
	})
}

// A rolled back transaction leaves no mark, neither a first one nor a later one.
func TestRollbackLeavesNoMark(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		g := newGuard(t, db)
		for _, before := range []int64{0, 3} {
			if before > 0 {
				noError(t, show(t, g, db, "r", before))
			}
			tx := begin(t, db, level)
			noError(t, g.Check(t.Context(), tx, "r", 9))
			isSeen(t, g, db, "r", before)
			noError(t, tx.Rollback())
			isSeen(t, g, db, "r", before)
		}
		noError(t, show(t, g, db, "r", 4))
	})
}

// A refused check holds the resource too, and one transaction may check many times.
func TestCheckAgainInTheSameTransaction(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		g := newGuard(t, db)
		tx := begin(t, db, level)
		for _, token := range []int64{5, 5, 6} {
			noError(t, g.Check(t.Context(), tx, "r", token))
		}
		isStale(t, g.Check(t.Context(), tx, "r", 5), guard.StaleError{Resource: "r", Token: 5, Seen: 6})
		noError(t, g.Check(t.Context(), tx, "other", 1))
		noError(t, tx.Commit())
		isSeen(t, g, db, "r", 6)
		isSeen(t, g, db, "other", 1)
	})
}

// The table can be created by many at once, again, by its Schema, and under a name that is a word of SQL; each name is a
// table of its own.
func TestCreate(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		g, err := sqlguard.New(db.dialect)
		noError(t, err)
		var at sync.WaitGroup
		for range 12 {
			at.Go(func() {
				if err := g.Create(t.Context(), db); err != nil {
					t.Error(err)
				}
			})
		}
		at.Wait()
		noError(t, show(t, g, db, "r", 1))
		noError(t, g.Create(t.Context(), db))
		isSeen(t, g, db, "r", 1)

		other, err := sqlguard.New(db.dialect, sqlguard.WithTable("Order"))
		noError(t, err)
		if err := show(t, other, db, "r", 1); err == nil || errors.Is(err, guard.ErrStale) {
			t.Errorf("without a table: error %v", err)
		}
		execute(t, db.DB, other.Schema())
		execute(t, db.DB, other.Schema())
		isSeen(t, other, db, "r", 0)
		noError(t, show(t, other, db, "r", 2))
		isSeen(t, g, db, "r", 1)

		noError(t, db.Close())
		if err := g.Create(t.Context(), db); err == nil {
			t.Error("created in a closed database")
		}
	})
}

// Each write that is refused because of a newer token is told, by the marker and by the column.
func TestTraceOfRefusedWrites(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		newAccount(t, db)
		var told []locktrace.WriteRefused
		option := sqlguard.WithTrace(&locktrace.Trace{WriteRefused: func(e locktrace.WriteRefused) { told = append(told, e) }})
		g := newGuard(t, db, option)
		column, err := sqlguard.NewColumn(db.dialect, "account", "id", "fence", option)
		noError(t, err)
		tx := begin(t, db, sql.LevelDefault)
		noError(t, g.Check(t.Context(), tx, "r", 7))
		noError(t, column.Check(t.Context(), tx, 1, 9))
		isStale(t, g.Check(t.Context(), tx, "r", 6), guard.StaleError{Resource: "r", Token: 6, Seen: 7})
		isStale(t, column.Update(t.Context(), tx, 1, 8, "v = 3"), guard.StaleError{Resource: "account.id=1", Token: 8, Seen: 9})
		want := []locktrace.WriteRefused{{Context: t.Context(), Guard: "sql", Resource: "r", Token: 6, Seen: 7}, {Context: t.Context(), Guard: "sql", Resource: "account.id=1", Token: 8, Seen: 9}}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
}
