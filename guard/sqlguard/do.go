package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnknown tells that the outcome is not known here: the commit failed, and the connection may have broken before or
// after the database committed, or fn has ended the transaction itself. From Do. The driver's error is wrapped too, and may
// be a certain no (one of [Retryable], a deferred constraint). Otherwise look at what was to be written, in a new
// transaction with a check of the same token; what is safe to do twice may just be done again.
var ErrUnknown = errors.New("the write may or may not have happened")

// Beginner begins transactions: *sql.DB or *sql.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Do begins a transaction, checks the token (see Check), runs fn and commits. It rolls back if the token is refused,
// without running fn; if fn fails, and returns fn's error as it is; if fn panics, and goes on panicking; and if ctx is
// over before the commit, which the context of a lock is when the lock was lost: at once, also while fn runs.
//
// fn reads and writes by tx, does not end it, and returns the error of every statement: with some errors (a deadlock)
// MySQL and SQLite have rolled back everything, the mark included, and what follows would be committed by itself. No
// CREATE, ALTER or other DDL, LOCK TABLES, BEGIN or COMMIT as text in fn: MySQL commits at them, and what follows is not
// covered. Where fn ends the transaction by tx.Commit or tx.Rollback, the error is ErrUnknown. Where fn does it by a COMMIT
// or ROLLBACK as text and returns nil, Do notices in PostgreSQL, by the transaction's number, for which Do asks before it
// commits, and in SQLite, by a savepoint: the error is ErrUnknown. In MySQL nobody notices, and nowhere where fn fails or
// ctx is over after such a text.
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
	if ctx == nil {
		return fmt.Errorf("sqlguard: do %q: ctx is nil: pass the caller's, or context.Background() where there is none", resource)
	}
	own := &ownContext{Context: ctx, done: make(chan struct{})}
	begun := context.AfterFunc(ctx, own.end)
	tx, err := db.BeginTx(own, g.begin)
	if err != nil {
		return fmt.Errorf("sqlguard: begin for %q: %w", resource, err)
	}
	rollback := sync.OnceValue(tx.Rollback) // sql.ErrTxDone: the transaction has ended before
	if begun() {
		stop := context.AfterFunc(ctx, func() {
			defer time.AfterFunc(maxRollback, own.end).Stop()
			if rollback() == sql.ErrTxDone {
				own.end() // for a commit that does not return
			}
		})
		defer stop()
	}
	defer func() { _ = rollback() }() // after a commit it does nothing; where it fails, the connection's end rolls back
	number, err := g.check(ctx, tx, resource, token)
	if err == nil && g.marker.savepoint {
		_, err = tx.ExecContext(ctx, "SAVEPOINT "+savepoint)
	}
	if err != nil {
		return err
	}
	err = fn(tx)
	if err == nil && ctx.Err() != nil {
		err = rolledBack(ctx, resource)
	}
	if err != nil {
		if rollback() == sql.ErrTxDone {
			return fmt.Errorf("sqlguard: do %q: fn has ended the transaction itself: %w: %w", resource, ErrUnknown, err)
		}
		return err
	}
	if err = g.marker.same(ctx, tx, number); err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("sqlguard: commit %q: %w: %w", resource, ErrUnknown, err)
	}
	return nil
}

// rolledBack is the error of a transaction that was rolled back because ctx is over.
func rolledBack(ctx context.Context, resource string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("sqlguard: do %q: rolled back: %w", resource, err)
}

// maxRollback is how long a rollback may take when the context is over. Then drivers cut off the connection.
const maxRollback = time.Second

// ownContext is the context of a transaction, which ends later than the one it is made of. database/sql rolls back when
// the context of a transaction is over, and does not say whether it did: Do could not tell that from a Commit of fn. So
// Do rolls back itself, and then this context ends.
type ownContext struct {
	context.Context
	done chan struct{}
	once sync.Once
}

func (c *ownContext) end()                  { c.once.Do(func() { close(c.done) }) }
func (c *ownContext) Done() <-chan struct{} { return c.done }

func (c *ownContext) Err() error {
	select {
	case <-c.done:
		return c.Context.Err()
	default:
		return nil
	}
}
