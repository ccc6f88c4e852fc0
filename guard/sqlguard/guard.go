package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Guard checks tokens against a marker table, which has a row for each resource with the largest token accepted. Rows
// are small and stay for ever; to delete one is to accept any token again, so do it only where no older holder can be
// left. It may be used by any number of goroutines.
type Guard struct {
	marker marker
	begin  *sql.TxOptions
	engine *engine
	trace  *locktrace.Trace
}

// Option changes a default of New.
type Option func(*options)

type options struct {
	table     string
	isolation sql.IsolationLevel
	trace     *locktrace.Trace
}

// WithTable sets the marker table, fencelock_guard by default: NAME or SCHEMA.NAME of letters, digits and underscores.
// The name is put in quotes, so that upper and lower case count where the database says so.
func WithTable(name string) Option { return func(o *options) { o.table = name } }

// WithIsolation sets the isolation of the transactions that Do begins; without it they have the database's default. The
// check needs none above READ COMMITTED: choose by what the rest of the transaction needs.
func WithIsolation(level sql.IsolationLevel) Option {
	return func(o *options) { o.isolation = level }
}

// WithTrace makes the guard call t.WriteRefused for each write that it refuses because of a newer token. The caller gets the error all
// the same. It is for New and for NewColumn.
func WithTrace(t *locktrace.Trace) Option { return func(o *options) { o.trace = t } }

// New returns a guard for databases of this dialect. It asks no one; an error is one in the arguments.
func New(d Dialect, opts ...Option) (*Guard, error) {
	o := options{table: "fencelock_guard"}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	table, err := d.quoteTable(o.table)
	if err != nil {
		return nil, fmt.Errorf("sqlguard: WithTable: %w", err)
	}
	return &Guard{newMarker(d, table), &sql.TxOptions{Isolation: o.isolation}, newEngine(d, o.table), o.trace}, nil
}

// Rower reads a row: *sql.DB, *sql.Conn or *sql.Tx.
type Rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Execer creates a table: *sql.DB or *sql.Conn.
type Execer interface {
	Rower
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Schema returns the statement that creates the marker table where it is not there, for people with migrations.
func (g *Guard) Schema() string { return g.marker.schema }

// Create creates the marker table if it is not there. Any number of processes may do it at once; one that may not
// create tables succeeds where the table is there. Errors are the database's, and that the table is there in another
// engine of MySQL than InnoDB.
func (g *Guard) Create(ctx context.Context, db Execer) error {
	_, err := db.ExecContext(ctx, g.marker.schema)
	var token int64
	if err != nil && errors.Is(db.QueryRowContext(ctx, g.marker.there).Scan(&token), sql.ErrNoRows) {
		err = nil // there: PostgreSQL fails one of two that create it at once, and whoever lacks the right
	}
	if err == nil {
		err = g.engine.check(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: create: %w", err)
	}
	return nil
}

// Check accepts the token for the resource, or returns an error that is guard.ErrStale if a larger one was accepted
// before; see guard.StaleError. Make it the first statement of tx, and roll back on any error: from then on the resource
// belongs to tx, until tx ends. An accepted token counts once tx is committed, not before. Several checks of one tx are
// several locks: do them in the same order everywhere, else the database ends one of two with a deadlock.
//
// A resource is 1 to MaxResource bytes, compared byte by byte; a token is 1 or more (guard.ErrToken). Other errors are
// the database's (a lost connection, or one of [Retryable]), and that the marker table is in another engine of MySQL than
// InnoDB. Nothing was accepted then.
func (g *Guard) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	_, err := g.check(ctx, tx, resource, token)
	return err
}

// check is Check. It returns the number of the transaction, 0 where the database has none.
func (g *Guard) check(ctx context.Context, tx *sql.Tx, resource string, token int64) (number int64, err error) {
	if tx == nil {
		return 0, fmt.Errorf("sqlguard: check %q: no transaction: begin one, and write by the same", resource)
	}
	if err := checkShown(resource, token); err != nil {
		return 0, err
	}
	name := []byte(resource)
	number, accepted, err := g.marker.show(ctx, tx, name, token)
	if err == nil {
		err = g.engine.check(ctx, tx)
	}
	if err != nil {
		return 0, fmt.Errorf("sqlguard: check %q: %w", resource, err)
	}
	if accepted {
		return number, nil
	}
	var seen int64
	if err := tx.QueryRowContext(ctx, g.marker.locked, name).Scan(&seen); err != nil {
		return 0, fmt.Errorf("sqlguard: check %q: read the token seen: %w", resource, err)
	}
	switch {
	case seen > token:
		return 0, refused(ctx, g.trace, resource, token, seen)
	case seen < token:
		return 0, fmt.Errorf("sqlguard: check %q: the mark stayed at %d: the marker table needs the columns of Schema, and no trigger, rule or policy", resource, seen)
	}
	return 0, nil
}

// Seen returns the largest token accepted for the resource, 0 if there is none. It is for people and for tests: by the
// time it is read it may be larger, so decide nothing by it. Errors are the database's.
func (g *Guard) Seen(ctx context.Context, db Rower, resource string) (int64, error) {
	var seen int64
	err := db.QueryRowContext(ctx, g.marker.read, []byte(resource)).Scan(&seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("sqlguard: seen %q: %w", resource, err)
	}
	return seen, nil
}

// refused tells the trace of a write that is refused, and returns its error.
func refused(ctx context.Context, t *locktrace.Trace, resource string, token, seen int64) error {
	t.Refused(locktrace.WriteRefused{Context: ctx, Guard: "sql", Resource: resource, Token: token, Seen: seen})
	return &guard.StaleError{Resource: resource, Token: token, Seen: seen}
}

// checkShown finds what is wrong with the arguments of a check.
func checkShown(resource string, token int64) error {
	if len(resource) == 0 || len(resource) > MaxResource {
		return fmt.Errorf("sqlguard: a resource of %d bytes: name it with 1 to %d", len(resource), MaxResource)
	}
	return guard.Check(resource, token)
}

// affected is how many rows a statement wrote.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
