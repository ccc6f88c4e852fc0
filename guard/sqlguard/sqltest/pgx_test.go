package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/pgxguard"
	"github.com/fencelock/fencelock/guard/sqlguard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// pooled is a database of a test's own with a pool beside the *sql.DB, and the guards of both, which have one table.
type pooled struct {
	account
	pool *pgxpool.Pool
	pgx  *pgxguard.Guard
}

func openPooled(t *testing.T, change ...func(*pgxpool.Config)) pooled {
	t.Helper()
	a := newAccount(t, openPostgres(t))
	var schema string
	noError(t, a.QueryRow("SELECT current_schema()").Scan(&schema))
	config, err := pgxpool.ParseConfig(postgresDSN(servers.postgres, schema))
	noError(t, err)
	for _, change := range change {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	noError(t, err)
	t.Cleanup(pool.Close)
	g, err := pgxguard.New()
	noError(t, err)
	return pooled{a, pool, g}
}

// set writes v as anybody does.
func (p pooled) set(ctx context.Context, tx pgx.Tx, v int64) error {
	_, err := tx.Exec(ctx, "UPDATE account SET v = $1 WHERE id = 1", v)
	return err
}

func (p pooled) has(t *testing.T, want int64) {
	t.Helper()
	if v, err := p.get(t.Context(), p); v != want || err != nil {
		t.Errorf("the account has %d, %v, want %d", v, err, want)
	}
}

// Inv4: the two guards judge by one table, whoever has written the mark, and whichever way pgx sends a statement.
func TestInv4_PgxBesideSQL(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			p := openPooled(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			noError(t, p.pgx.Create(t.Context(), p.pool))
			for _, resource := range []string{"r", "R", "r ", "á\x00", "\xff"} {
				var seen int64
				for i, token := range []int64{3, 3, 2, 4, 1, 4, 1 << 53, 1<<53 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, 1} {
					err := p.pgx.Do(t.Context(), p.pool, resource, token, func(pgx.Tx) error { return nil })
					if i%3 == 1 {
						err = show(t, p.marks, p.database, resource, token)
					}
					if token < seen {
						isStale(t, err, guard.StaleError{Resource: resource, Token: token, Seen: seen})
					} else {
						noError(t, err)
						seen = token
					}
					isSeen(t, p.marks, p.database, resource, seen)
					if got, err := p.pgx.Seen(t.Context(), p.pool, resource); got != seen || err != nil {
						t.Errorf("seen %d, %v, want %d", got, err, seen)
					}
				}
			}
			if seen, err := p.pgx.Seen(t.Context(), p.pool, "none"); seen != 0 || err != nil {
				t.Errorf("seen %d, %v", seen, err)
			}
		})
	}
}

// Inv4: a check of either guard waits for a transaction of the other one, and is judged by what that left.
func TestInv4_PgxWaitsForSQL(t *testing.T) {
	p := openPooled(t)
	done := make(chan error, 1)
	tx := begin(t, p.database, sql.LevelDefault)
	noError(t, p.marks.Check(t.Context(), tx, "r", 9))
	go func() {
		done <- p.pgx.Do(t.Context(), p.pool, "r", 8, func(pgx.Tx) error { return errors.New("fn ran") })
	}()
	awaitWaiting(t, p.database, 1)
	noError(t, tx.Commit())
	isStale(t, <-done, guard.StaleError{Resource: "r", Token: 8, Seen: 9})

	other, err := p.pool.Begin(t.Context())
	noError(t, err)
	noError(t, p.pgx.Check(t.Context(), other, "r", 11))
	go func() { done <- show(t, p.marks, p.database, "r", 10) }()
	awaitWaiting(t, p.database, 1)
	noError(t, other.Rollback(t.Context())) // leaves no mark
	noError(t, <-done)
	isSeen(t, p.marks, p.database, "r", 10)
}

// Inv4: writers with both guards, all at once: none is lost, and none comes after a newer one.
func TestInv4_PgxWriters(t *testing.T) {
	p := openPooled(t)
	var (
		mu       sync.Mutex
		accepted []written
		tokens   atomic.Int64
		all      sync.WaitGroup
	)
	// write reads v and writes v + 1, by one guard or the other.
	write := func(by int, token int64) (v int64, err error) {
		ctx := t.Context()
		if by%2 == 0 {
			err = p.marks.Do(ctx, p, "account:1", token, func(tx *sql.Tx) (err error) {
				if v, err = p.get(ctx, tx); err == nil {
					err = p.account.set(ctx, tx, v+1)
				}
				return err
			})
			return v, err
		}
		err = p.pgx.Do(ctx, p.pool, "account:1", token, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "SELECT v FROM account WHERE id = 1").Scan(&v); err != nil {
				return err
			}
			return p.set(ctx, tx, v+1)
		})
		return v, err
	}
	for i := range writers {
		all.Go(func() {
			for range tries {
				older, newer := tokens.Add(1), tokens.Add(1)
				v, err := write(i, newer)
				mu.Lock()
				if err == nil {
					accepted = append(accepted, written{newer, v + 1})
				} else if !errors.Is(err, guard.ErrStale) {
					t.Error(err)
				}
				mu.Unlock()
				if _, err := write(i+1, older); !errors.Is(err, guard.ErrStale) {
					t.Errorf("token %d after %d: error %v", older, newer, err)
				}
			}
		})
	}
	all.Wait()
	for _, violation := range violations(accepted) {
		t.Error(violation)
	}
	p.has(t, int64(len(accepted)))
}

// What Do does to the transaction, by fn's end.
func TestPgxDo(t *testing.T) {
	p := openPooled(t)
	ctx := t.Context()
	failed := errors.New("failed")
	write := func(err error) func(pgx.Tx) error {
		return func(tx pgx.Tx) error { return errors.Join(p.set(ctx, tx, 7), err) }
	}
	err := p.pgx.Do(ctx, p.pool, "r", 5, func(tx pgx.Tx) error { _ = p.set(ctx, tx, 7); return failed })
	if err != failed {
		t.Errorf("error %v", err)
	}
	func() {
		defer func() {
			if recover() != failed {
				t.Error("the panic did not go on")
			}
		}()
		_ = p.pgx.Do(ctx, p.pool, "r", 5, func(tx pgx.Tx) error { _ = p.set(ctx, tx, 7); panic(failed) })
	}()
	p.has(t, 0)
	isSeen(t, p.marks, p.database, "r", 0)

	conn, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	noError(t, err)
	defer conn.Close(ctx)
	noError(t, p.pgx.Do(ctx, conn, "r", 5, write(nil)))
	p.has(t, 7)

	g, err := pgxguard.New(pgxguard.WithTxOptions(pgx.TxOptions{AccessMode: pgx.ReadOnly}))
	noError(t, err)
	if err := g.Do(ctx, p.pool, "r", 6, write(nil)); err == nil || errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("in a read-only transaction: error %v", err)
	}

	// A savepoint of fn's is no end, and what goes back to one from before a check takes the check back.
	noError(t, p.pgx.Do(ctx, p.pool, "r", 6, func(tx pgx.Tx) error {
		inner, err := tx.Begin(ctx)
		if err == nil {
			err = errors.Join(p.pgx.Check(ctx, inner, "r", 9), p.set(ctx, inner, 9), inner.Rollback(ctx))
		}
		return err
	}))
	isSeen(t, p.marks, p.database, "r", 6)
	p.has(t, 7)
	if n := p.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

// A transaction that fn ends itself is no longer guarded, and Do says that nobody knows what was written.
func TestPgxDoNoticesTheEnd(t *testing.T) {
	p := openPooled(t)
	ctx := t.Context()
	for _, end := range []string{"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "COMMIT; BEGIN; UPDATE account SET v = v + 1 WHERE id = 1"} {
		err := p.pgx.Do(ctx, p.pool, "r", 5, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, end, pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if !errors.Is(err, sqlguard.ErrUnknown) || sqlguard.Retryable(err) {
			t.Errorf("%s: error %v", end, err)
		}
	}
	failed := errors.New("failed")
	for _, said := range []error{nil, failed} {
		err := p.pgx.Do(ctx, p.pool, "r", 5, func(tx pgx.Tx) error { return errors.Join(tx.Commit(ctx), said) })
		if !errors.Is(err, sqlguard.ErrUnknown) || said != nil && !errors.Is(err, said) {
			t.Errorf("tx.Commit, and %v: error %v", said, err)
		}
	}
	lost, cancel := context.WithCancelCause(ctx)
	err := p.pgx.Do(lost, p.pool, "r", 5, func(tx pgx.Tx) error { defer cancel(failed); return tx.Commit(ctx) })
	if !errors.Is(err, sqlguard.ErrUnknown) || !errors.Is(err, failed) {
		t.Errorf("tx.Commit, and the context is over: error %v", err)
	}
}

// The end of the context rolls back while fn runs: another holder does not wait for it.
func TestPgxDoEndsWithItsContext(t *testing.T) {
	p := openPooled(t)
	failed, lost := errors.New("failed"), errors.New("lock lost")
	for _, said := range []error{nil, failed} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := p.pgx.Do(ctx, p.pool, "r", 5, func(tx pgx.Tx) error {
			if err := p.set(t.Context(), tx, 1); err != nil {
				return err
			}
			cancel(lost)
			if err := p.pgx.Do(t.Context(), p.pool, "r", 5, func(tx pgx.Tx) error { return p.set(t.Context(), tx, 2) }); err != nil {
				return err
			}
			return said
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, lost) || errors.Is(err, sqlguard.ErrUnknown) || said != nil && !errors.Is(err, said) {
			t.Errorf("error %v", err)
		}
		p.has(t, 2)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.pgx.Do(over, p.pool, "r", 5, func(pgx.Tx) error { t.Error("fn ran"); return nil }); !errors.Is(err, context.Canceled) || errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}

// What the database ends for another one is known, and the whole transaction may be done again.
func TestPgxRetryable(t *testing.T) {
	p := openPooled(t)
	g, err := pgxguard.New(pgxguard.WithTxOptions(pgx.TxOptions{IsoLevel: pgx.Serializable}))
	noError(t, err)
	tx := begin(t, p.database, sql.LevelDefault)
	noError(t, p.marks.Check(t.Context(), tx, "r", 5))
	done := make(chan error, 1)
	again := func() error { return g.Do(t.Context(), p.pool, "r", 6, func(pgx.Tx) error { return nil }) }
	go func() { done <- again() }()
	awaitWaiting(t, p.database, 1)
	noError(t, tx.Commit())
	if err := <-done; !sqlguard.Retryable(err) || errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	noError(t, again())
}

// Bad arguments fail before the database is asked, and a refusal is told to the trace.
func TestPgxArgumentsAndTrace(t *testing.T) {
	p := openPooled(t)
	ctx := t.Context()
	var told []locktrace.WriteRefused
	g, err := pgxguard.New(nil, pgxguard.WithTrace(&locktrace.Trace{WriteRefused: func(e locktrace.WriteRefused) { told = append(told, e) }}))
	noError(t, err)
	never := func(pgx.Tx) error { t.Error("fn ran"); return nil }
	tx, err := p.pool.Begin(ctx)
	noError(t, err)
	defer tx.Rollback(ctx)
	var none context.Context
	for want, err := range map[string]error{
		"1 or more, not 0":  g.Do(ctx, nil, "r", guard.Token(ctx, "r"), never),
		"1 or more, not -1": g.Check(ctx, tx, "r", -1),
		"of 0 bytes":        g.Check(ctx, tx, "", 1),
		"of 513 bytes":      g.Do(ctx, nil, strings.Repeat("r", 513), 1, never),
		"no transaction":    g.Check(ctx, nil, "r", 1),
		"no function":       g.Do(ctx, nil, "r", 1, nil),
		"ctx is nil":        g.Do(none, nil, "r", 1, never),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, guard.ErrToken) != strings.Contains(want, "1 or more") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	noError(t, g.Check(ctx, tx, "r", 7))
	isStale(t, g.Check(ctx, tx, "r", 6), guard.StaleError{Resource: "r", Token: 6, Seen: 7})
	if want := []locktrace.WriteRefused{{Context: ctx, Guard: "sql", Resource: "r", Token: 6, Seen: 7}}; !slices.Equal(told, want) {
		t.Errorf("told %+v, want %+v", told, want)
	}
	for _, name := range []string{"", "a b", "a.b.c", `a"`} {
		if _, err := pgxguard.New(pgxguard.WithTable(name)); err == nil {
			t.Errorf("the table %q is accepted", name)
		}
	}
}

// The table can be created by many at once, by who may not create it, and under a name that is a word of SQL.
func TestPgxCreate(t *testing.T) {
	p := openPooled(t)
	ctx := t.Context()
	g, err := pgxguard.New(pgxguard.WithTable("Order"))
	noError(t, err)
	if err := g.Do(ctx, p.pool, "r", 1, func(pgx.Tx) error { return nil }); err == nil || errors.Is(err, guard.ErrStale) {
		t.Errorf("without a table: error %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := g.Create(ctx, p.pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	noError(t, g.Do(ctx, p.pool, "r", 1, func(pgx.Tx) error { return nil }))

	conn, err := p.pool.Acquire(ctx)
	noError(t, err)
	defer conn.Release()
	_, err = conn.Exec(ctx, "SET default_transaction_read_only = on") // as one without the right
	noError(t, err)
	noError(t, g.Create(ctx, conn))
	other, err := pgxguard.New(pgxguard.WithTable("absent"))
	noError(t, err)
	if err := other.Create(ctx, conn); err == nil {
		t.Error("a table is taken for there that is not")
	}
	_, err = conn.Exec(ctx, "SET default_transaction_read_only = off")
	noError(t, err)

	execute(t, p.DB, "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
	execute(t, p.DB, `CREATE TRIGGER keep BEFORE UPDATE ON "Order" FOR EACH ROW EXECUTE FUNCTION keep()`)
	err = g.Do(ctx, p.pool, "r", 2, func(pgx.Tx) error { return nil })
	if err == nil || errors.Is(err, guard.ErrStale) || !strings.Contains(err.Error(), "the mark stayed at 1") {
		t.Errorf("a mark that a trigger keeps: error %v", err)
	}
}
