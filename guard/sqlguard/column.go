package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Column checks tokens against a column of the caller's own table: each row has the largest token that it was written
// with. It may be used by any number of goroutines.
//
// The column is of an integer type with 64 bits (BIGINT; INTEGER in SQLite). A smaller one cuts tokens off where MySQL's mode
// is not strict, and stale tokens are accepted then. Best make the column NOT NULL DEFAULT 0; NULL counts as 0. All writers
// of the table must show a token: a writer without one is not refused. A row that is deleted takes its token with it, and an
// older holder may insert the row again: where that matters, mark the row as deleted, or use a Guard.
//
// The resource of a Column's errors is TABLE.KEY=VALUE, such as account.id=42, which httpguard.Error shows to the client.
// Bytes that are no text are written in hexadecimal.
type Column struct {
	dialect Dialect
	what    string // the table and the key column, for people
	update  string // before what is set
	token   string // the token column
	key     string // the key column
	locked  string
	engine  *engine
	trace   *locktrace.Trace
}

// NewColumn returns a guard by the column token of the table, whose rows are told apart by the column key. The table is
// NAME or SCHEMA.NAME; all names are of letters, digits and underscores, and are put in quotes. Of the options only WithTrace is for
// columns. An error is one in the arguments.
func NewColumn(d Dialect, table, key, token string, opts ...Option) (*Column, error) {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.table != "" || o.isolation != 0 {
		return nil, errors.New("sqlguard: NewColumn: WithTable and WithIsolation are for New: a column is in the table that it guards, and its transaction is the caller's")
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	c := &Column{dialect: d, what: table + "." + key, engine: newEngine(d, table), trace: o.trace}
	table, err := d.quoteTable(table)
	if err == nil {
		c.key, err = d.quote(key)
	}
	if err == nil {
		c.token, err = d.quote(token)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlguard: NewColumn: %w", err)
	}
	c.update = "UPDATE " + table + " SET "
	c.locked = fmt.Sprintf("SELECT COALESCE(%s, 0) FROM %s WHERE %s = %s%s", c.token, table, c.key, d.mark(1), d.forUpdate())
	return c, nil
}

// Check accepts the token for the row, or returns an error that is guard.ErrStale if the row has a larger one; see
// guard.StaleError. Make it the first statement of tx, and roll back on any error: from then on the row belongs to tx,
// and may be read and written by plain SQL. Where there is no such row, the error is sql.ErrNoRows. Other errors are
// guard.ErrToken, the database's, and that the table is in another engine of MySQL than InnoDB.
func (c *Column) Check(ctx context.Context, tx *sql.Tx, key any, token int64) error {
	return c.Update(ctx, tx, key, token, "")
}

// Update is Check and a write of the same row in one statement. set is what stands between SET and WHERE, without the
// token, such as "balance = balance + ?", and args are its arguments, as many as it has placeholders. In PostgreSQL they
// are $1 to $n. More than assignments (a WHERE, a second statement) is an error before anything is sent, and so is what
// databases do not read alike: a comment, a backslash in quotes, a dollar quote of PostgreSQL. Write set in the program, and
// put what comes from outside into args: Update does not look at what set assigns.
//
// A value in args that was read before must have been read in tx after a check, or under the same token that was checked
// then. On MySQL an update that changes nothing may be sent twice. The errors are those of Check.
func (c *Column) Update(ctx context.Context, tx *sql.Tx, key any, token int64, set string, args ...any) error {
	row := c.what + "=" + keyText(key)
	if tx == nil {
		return fmt.Errorf("sqlguard: update %s: no transaction: begin one, and write by the same", row)
	}
	if err := guard.Check(row, token); err != nil {
		return err
	}
	if err := c.dialect.checkSet(set, len(args)); err != nil {
		return fmt.Errorf("sqlguard: update %s: %w", row, err)
	}
	query, args := c.statement(key, token, set, args)
	var seen int64
	for range 2 {
		n, err := affected(tx.ExecContext(ctx, query, args...))
		if err == nil {
			err = c.engine.check(ctx, tx)
		}
		switch {
		case err != nil:
			return fmt.Errorf("sqlguard: update %s: %w", row, err)
		case n > 1:
			return fmt.Errorf("sqlguard: update %s: %d rows have this key: roll back, and name a column that is unique", row, n)
		case n == 1:
			return nil
		}
		err = tx.QueryRowContext(ctx, c.locked, key).Scan(&seen)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("sqlguard: update %s: no such row: insert it with its token: %w", row, err)
		case err != nil:
			return fmt.Errorf("sqlguard: update %s: read the token seen: %w", row, err)
		case seen > token:
			return refused(ctx, c.trace, row, token, seen)
		case seen == token && set == "":
			return nil // MySQL counts no row that stays as it is; it is locked all the same
		}
		// The row has come since, or it has what was to be written, and MySQL counts no row. It is locked now: the second
		// round tells.
	}
	if c.dialect == MySQL && seen == token {
		return nil
	}
	return fmt.Errorf("sqlguard: update %s: its token stayed at %d: the column must be a 64-bit integer that no trigger, rule or policy keeps", row, seen)
}

// statement is the guarded update and its arguments.
func (c *Column) statement(key any, token int64, set string, args []any) (string, []any) {
	if set != "" {
		set += ", "
	}
	n := len(args)
	query := fmt.Sprintf("%s%s%s = %s WHERE %s = %s AND COALESCE(%s, 0) <= %s", c.update, set,
		c.token, c.dialect.mark(n+1), c.key, c.dialect.mark(n+2), c.token, c.dialect.mark(n+3))
	return query, append(slices.Clip(args), token, key, token)
}

// keyText is a key as the database gets it, for people: a pointer is what it points to.
func keyText(key any) string {
	value, err := driver.DefaultParameterConverter.ConvertValue(key)
	if err != nil {
		value = key // of a type that the driver knows
	}
	if b, ok := value.([]byte); ok {
		if utf8.Valid(b) {
			return string(b)
		}
		return fmt.Sprintf("0x%x", b)
	}
	return fmt.Sprint(value)
}
