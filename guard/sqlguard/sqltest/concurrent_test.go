package sqltest

import (
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fencelock/fencelock/guard"
)

// The second of two transactions waits for the first, and is judged by what that one left. What it reads after its check
// is the first one's write.
func TestTwoAtOnce(t *testing.T) {
	for _, w := range []way{byMarker, byColumn} {
		for _, c := range []struct {
			name                  string
			before, first, second int64
			commit                bool
			stale                 int64 // the token that the second is refused by, or 0
		}{
			{"stale behind a commit", 1, 9, 5, true, 9},
			{"stale behind a rollback", 1, 9, 5, false, 0},
			{"newer behind a commit", 1, 5, 9, true, 0},
			{"newer behind a rollback", 1, 5, 9, false, 0},
			{"equal behind a commit", 1, 5, 5, true, 0},
			{"equal to all", 5, 5, 5, true, 0},
			{"stale before either", 9, 9, 5, false, 9},
			{"first of all, stale behind a commit", 0, 9, 5, true, 9},
			{"first of all, stale behind a rollback", 0, 9, 5, false, 0},
			{"first of all, newer behind a commit", 0, 5, 9, true, 0},
			{"first of all, newer behind a rollback", 0, 5, 9, false, 0},
		} {
			t.Run(w.name+"/"+c.name, func(t *testing.T) {
				forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
					a := newAccount(t, db)
					if c.before > 0 {
						noError(t, a.inTx(t.Context(), level, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, c.before, c.before) }))
					}
					tx := begin(t, db, level)
					noError(t, w.write(t.Context(), a, tx, c.first, c.first))
					var over atomic.Bool
					done := make(chan error, 1)
					var read int64
					go func() {
						done <- a.inTx(t.Context(), level, func(tx *sql.Tx) error {
							if err := w.check(t.Context(), a, tx, c.second); err != nil {
								return err
							}
							if !over.Load() {
								return errors.New("it passed the first one")
							}
							var err error
							read, err = a.get(t.Context(), tx)
							return err
						})
					}()
					awaitWaiting(t, db, 1)
					over.Store(true)
					want := c.before
					if c.commit {
						want = c.first
						noError(t, tx.Commit())
					} else {
						noError(t, tx.Rollback())
					}
					err := <-done
					if c.stale == 0 {
						noError(t, err)
						if read != want {
							t.Errorf("read %d, want %d", read, want)
						}
						return
					}
					var refused *guard.StaleError
					if !errors.As(err, &refused) || refused.Token != c.second || refused.Seen != c.stale {
						t.Errorf("error %v, want a refusal by %d", err, c.stale)
					}
				})
			})
		}
	}
}

// Many bring the first token of a resource behind one that is rolled back: each is accepted or refused, by those before
// it, however often the database has it done again.
func TestManyFirstMarks(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		const many = 8
		a := newAccount(t, db)
		tx := begin(t, db, level)
		noError(t, a.marks.Check(t.Context(), tx, "account:1", 100))
		type result struct {
			token, position int64
			err             error
		}
		results := make(chan result)
		for token := range int64(many) {
			go func() {
				r := result{token: token + 1}
				r.err = a.inTx(t.Context(), level, func(tx *sql.Tx) error {
					if err := a.marks.Check(t.Context(), tx, "account:1", r.token); err != nil {
						return err
					}
					v, err := a.get(t.Context(), tx)
					if err != nil {
						return err
					}
					r.position = v + 1
					return a.set(t.Context(), tx, r.position)
				})
				results <- r
			}()
		}
		awaitWaiting(t, db, many)
		noError(t, tx.Rollback())
		var accepted [many + 1]int64
		n := 0
		for range many {
			switch r := <-results; {
			case r.err == nil:
				accepted[r.position] = r.token
				n++
			case !errors.Is(r.err, guard.ErrStale):
				t.Error(r.err)
			}
		}
		for i := 1; i <= n; i++ {
			if accepted[i] <= accepted[i-1] {
				t.Errorf("accepted in this order: %v", accepted)
			}
		}
		if accepted[n] != many {
			t.Errorf("accepted in this order: %v; want the newest last", accepted)
		}
		isSeen(t, a.marks, db, "account:1", many)
	})
}
