package pgxguard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Guard checks tokens against a marker table, which has a row for each resource with the largest token accepted. Rows are small and stay
// for ever; to delete one is to accept any token again, so do it only where no older holder can be left. It may be used by any number of
// goroutines.
type Guard struct {
	schema string
	there  string // asks whether the table is
	check  string
	read   string
	begin  pgx.TxOptions
	trace  *locktrace.Trace
}

// Option changes a default of New.
type Option func(*options)

type options struct {
	table string
	begin pgx.TxOptions
	trace *locktrace.Trace
}

// WithTable sets the marker table, fencelock_guard by default: NAME or SCHEMA.NAME of letters, digits and underscores, as in
// sqlguard.WithTable. The name is put in quotes, so that upper and lower case count.
func WithTable(name string) Option { return func(o *options) { o.table = name } }

// WithTxOptions sets how Do begins its transactions; without it they have the database's defaults. The check needs no isolation above READ
// COMMITTED: choose by what the rest of the transaction needs.
func WithTxOptions(begin pgx.TxOptions) Option { return func(o *options) { o.begin = begin } }

// WithTrace makes the guard call t.WriteRefused for each write that it refuses because of a newer token. The caller gets the error all
// the same.
func WithTrace(t *locktrace.Trace) Option { return func(o *options) { o.trace = t } }

// New returns a guard. It asks no one; an error is one in the arguments.
func New(opts ...Option) (*Guard, error) {
	o := options{table: "fencelock_guard"}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	same, err := sqlguard.New(sqlguard.PostgreSQL, sqlguard.WithTable(o.table)) // which knows what a name may be
	if err != nil {
		return nil, fmt.Errorf("pgxguard: %w", err)
	}
	table := `"` + strings.ReplaceAll(o.table, ".", `"."`) + `"`
	return &Guard{
		schema: same.Schema(),
		there:  "SELECT token FROM " + table + " WHERE false",
		check: "INSERT INTO " + table + " AS mark (resource, token) VALUES ($1, $2) ON CONFLICT (resource)" +
			" DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token RETURNING txid_current()",
		read:  "SELECT token FROM " + table + " WHERE resource = $1",
		begin: o.begin,
		trace: o.trace,
	}, nil
}

// DB is what tables are made and read by: a *pgxpool.Pool, a *pgx.Conn, a pgx.Tx.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Schema returns the statement that creates the marker table where it is not there, for people with migrations. It is sqlguard's.
func (g *Guard) Schema() string { return g.schema }

// Create creates the marker table if it is not there. Any number of processes may do it at once; one that may not create tables succeeds
// where the table is there. Errors are the database's. In a transaction that has been ended by such an error nobody can look: give it
// a pool or a connection.
func (g *Guard) Create(ctx context.Context, db DB) error {
	_, err := db.Exec(ctx, g.schema)
	if err != nil {
		var token int64
		if errors.Is(db.QueryRow(ctx, g.there).Scan(&token), pgx.ErrNoRows) {
			return nil // there: PostgreSQL fails one of two that create it at once, and whoever lacks the right
		}
		return fmt.Errorf("pgxguard: create: %w", err)
	}
	return nil
}

// Check accepts the token for the resource, or returns an error that is guard.ErrStale if a larger one was accepted before; see
// guard.StaleError. Make it the first statement of tx, and roll back on any error: from then on the resource belongs to tx, until tx ends.
// An accepted token counts once tx is committed, not before; rolling back to a savepoint (tx.Begin) from before the check takes it back.
// Several checks of one tx are several locks: do them in the same order everywhere, else the database ends one of two with a deadlock.
//
// A resource is 1 to sqlguard.MaxResource bytes, compared byte by byte; a token is 1 or more (guard.ErrToken). Other errors are the
// database's. Nothing was accepted then.
func (g *Guard) Check(ctx context.Context, tx pgx.Tx, resource string, token int64) error {
	_, err := g.show(ctx, tx, resource, token)
	return err
}

// show is Check. It returns the transaction's number.
func (g *Guard) show(ctx context.Context, tx pgx.Tx, resource string, token int64) (number int64, err error) {
	if tx == nil {
		return 0, fmt.Errorf("pgxguard: check %q: no transaction: begin one, and write by the same", resource)
	}
	if err := checkShown(ctx, resource, token); err != nil {
		return 0, err
	}
	name := []byte(resource) // text would be compared by a collation, or be refused for a zero byte
	err = tx.QueryRow(ctx, g.check, name, token).Scan(&number)
	if err == nil {
		return number, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("pgxguard: check %q: %w", resource, err)
	}
	var seen int64
	if err := tx.QueryRow(ctx, g.read+" FOR UPDATE", name).Scan(&seen); err != nil {
		return 0, fmt.Errorf("pgxguard: check %q: read the token seen: %w", resource, err)
	}
	if seen <= token {
		return 0, fmt.Errorf("pgxguard: check %q: the mark stayed at %d: the marker table needs the columns of Schema, and no trigger, rule or policy", resource, seen)
	}
	g.trace.Refused(locktrace.WriteRefused{Context: ctx, Guard: "sql", Resource: resource, Token: token, Seen: seen})
	return 0, &guard.StaleError{Resource: resource, Token: token, Seen: seen}
}

// Seen returns the largest token accepted for the resource, 0 if there is none. It is for people and for tests: by the time it is read it
// may be larger, so decide nothing by it. Errors are the database's.
func (g *Guard) Seen(ctx context.Context, db DB, resource string) (int64, error) {
	var seen int64
	err := db.QueryRow(ctx, g.read, []byte(resource)).Scan(&seen)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("pgxguard: seen %q: %w", resource, err)
	}
	return seen, nil
}

// checkShown finds what is wrong with the arguments of a check.
func checkShown(ctx context.Context, resource string, token int64) error {
	if ctx == nil {
		return fmt.Errorf("pgxguard: %q: ctx is nil: pass the caller's, or context.Background() where there is none", resource)
	}
	if len(resource) == 0 || len(resource) > sqlguard.MaxResource {
		return fmt.Errorf("pgxguard: a resource of %d bytes: name it with 1 to %d", len(resource), sqlguard.MaxResource)
	}
	return guard.Check(resource, token)
}
