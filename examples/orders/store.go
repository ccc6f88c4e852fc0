package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/fencelock/fencelock/guard/sqlguard"
)

// order is what a customer has ordered so far.
type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
	Token int64    `json:"token"` // of the last write, for show
}

var errNoOrder = errors.New("no such order")

// store keeps orders in a SQL database.
type store struct {
	db    *sql.DB
	guard *sqlguard.Guard // nil: every token is accepted
}

const schema = "CREATE TABLE IF NOT EXISTS fencelock_orders (id TEXT PRIMARY KEY, items TEXT NOT NULL, token BIGINT NOT NULL)"

// openStore opens the PostgreSQL database at url, or SQLite in this process's memory.
func openStore(ctx context.Context, url string, guarded bool) (*store, error) {
	driver, source, dialect := "pgx", url, sqlguard.PostgreSQL
	if url == "" {
		driver, source, dialect = "sqlite", ":memory:", sqlguard.SQLite
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	if url == "" {
		db.SetMaxOpenConns(1) // the database is gone with its last connection
	}
	s := &store{db: db}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.create(ctx, dialect, guarded); err != nil {
		s.close()
		return nil, fmt.Errorf("the database: %w", err)
	}
	return s, nil
}

func (s *store) create(ctx context.Context, dialect sqlguard.Dialect, guarded bool) error {
	if _, err := s.db.ExecContext(ctx, schema); err != nil {
		return err
	}
	if !guarded {
		return nil
	}
	g, err := sqlguard.New(dialect)
	if err != nil {
		return err
	}
	s.guard = g
	return g.Create(ctx, s.db)
}

func (s *store) close() { _ = s.db.Close() }

// look reads an order for people.
func (s *store) look(ctx context.Context, id string) (order, error) {
	o := order{ID: id}
	err := o.scan(s.db.QueryRowContext(ctx, "SELECT items, token FROM fencelock_orders WHERE id = $1", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoOrder
	}
	return o, err
}

// read reads an order for a write that depends on it, and shows the token: from then on an older one is refused.
func (s *store) read(ctx context.Context, id string, token int64) (order, error) {
	o := order{ID: id}
	err := s.do(ctx, id, token, func(tx *sql.Tx) error {
		err := o.scan(tx.QueryRowContext(ctx, "SELECT items, token FROM fencelock_orders WHERE id = $1", id))
		if errors.Is(err, sql.ErrNoRows) {
			return nil // it begins with its first item
		}
		return err
	})
	return o, err
}

// write stores the order, if no newer token was shown.
func (s *store) write(ctx context.Context, o order, token int64) error {
	items, err := json.Marshal(o.Items)
	if err != nil {
		return err
	}
	return s.do(ctx, o.ID, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO fencelock_orders (id, items, token) VALUES ($1, $2, $3)"+
			" ON CONFLICT (id) DO UPDATE SET items = excluded.items, token = excluded.token", o.ID, string(items), o.Token)
		return err
	})
}

// do runs fn in a transaction that begins with the check of the token.
func (s *store) do(ctx context.Context, id string, token int64, fn func(tx *sql.Tx) error) error {
	if s.guard != nil {
		return s.guard.Do(ctx, s.db, lockName(id), token, fn)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (o *order) scan(row *sql.Row) error {
	var items string
	if err := row.Scan(&items, &o.Token); err != nil {
		return err
	}
	return json.Unmarshal([]byte(items), &o.Items)
}
