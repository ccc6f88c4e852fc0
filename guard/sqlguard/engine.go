package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// engine looks once at what MySQL keeps a table in. Other engines than InnoDB have no transactions, or lock no row.
type engine struct {
	table string
	query string // "" where the database has no engines
	known atomic.Bool
}

// newEngine is for a table whose name quoteTable has accepted.
func newEngine(d Dialect, table string) *engine {
	e := &engine{table: table}
	if d != MySQL {
		return e
	}
	schema, name := "DATABASE()", table
	if before, after, found := strings.Cut(table, "."); found {
		schema, name = "'"+before+"'", after
	}
	// A view has none: the tables behind it are not looked at. Names that differ in case only can be two tables.
	e.query = fmt.Sprintf("SELECT COALESCE(engine = 'InnoDB', 1) FROM information_schema.tables"+
		" WHERE table_schema = %s AND table_name = '%s' ORDER BY BINARY table_name = '%s' DESC LIMIT 1", schema, name, name)
	return e
}

// check is for after the first statement that writes the table: nothing is read before it.
func (e *engine) check(ctx context.Context, db Rower) error {
	if e.query == "" || e.known.Load() {
		return nil
	}
	var innodb bool
	switch err := db.QueryRowContext(ctx, e.query).Scan(&innodb); {
	case errors.Is(err, sql.ErrNoRows): // a temporary table, which no other connection has
	case err != nil:
		return fmt.Errorf("ask for the engine of %s: %w", e.table, err)
	case !innodb:
		return fmt.Errorf("the table %s is not of InnoDB, and stale writes would be accepted: ALTER TABLE %s ENGINE=InnoDB", e.table, e.table)
	}
	e.known.Store(true)
	return nil
}
