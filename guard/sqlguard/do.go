package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrUnknown tells that the commit failed, and that its outcome is not known here: the connection may have broken before
// or after the database committed. From Do. The driver's error is wrapped too, and may be a certain no (a serialization
// failure, a deferred constraint). Otherwise look at what was to be written, in a new transaction with a check of the
// same token; what is safe to do twice may just be done again.
var ErrUnknown = errors.New("the commit failed: the write may or may not have happened")

// Beginner begins transactions: *sql.DB or *sql.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Do begins a transaction, checks the token (see Check), runs fn and commits. It rolls back if the token is refused,
// without running fn; if fn fails, and returns fn's error as it is; if fn panics, and goes on panicking; and if ctx is
// over before the commit, which the context of a lock is when the lock was lost.
//
// fn reads and writes by tx, does not end it, and returns the error of every statement: with some errors (a deadlock)
// MySQL and SQLite have rolled back everything, the mark included, and what follows would be committed by itself. No
// CREATE, ALTER or other DDL, LOCK TABLES, BEGIN or COMMIT as text in fn: MySQL commits at them, and what follows is not
// covered.
//
// Errors: guard.ErrStale, guard.ErrToken, fn's, the context's, ErrUnknown, or the database's. With all but ErrUnknown
// nothing was written.
func (g *Guard) Do(ctx context.Context, db Beginner, resource string, token int64, fn func(tx *sql.Tx) error) error {
	if fn == nil {
		return fmt.Errorf("sqlguard: do %q: no function: pass one that reads and writes by tx", resource)
	}
	if err := checkShown(resource, token); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, g.begin)
	if err != nil {
		return fmt.Errorf("sqlguard: begin for %q: %w", resource, err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing; where it fails, the connection's end rolls back
	if err := g.Check(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return fmt.Errorf("sqlguard: do %q: rolled back: %w", resource, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlguard: commit %q: %w: %w", resource, ErrUnknown, err)
	}
	return nil
}
