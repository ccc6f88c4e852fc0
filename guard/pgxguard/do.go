package pgxguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencelock/fencelock/guard/sqlguard"
)

// Beginner begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, begin pgx.TxOptions) (pgx.Tx, error)
}

// maxRollback is how long a rollback may take. Then the connection is closed, at whose end the database rolls back.
const maxRollback = time.Second

// errEnded is for people; Do says ErrUnknown with it.
var errEnded = errors.New("fn has ended the transaction, by COMMIT or ROLLBACK as text or a procedure that has one")

// Do begins a transaction, checks the token (see Check), runs fn and commits. It rolls back if the token is refused, without running fn; if
// fn fails, and returns fn's error as it is; if fn panics, and goes on panicking; and if ctx is over before the commit, which the context
// of a lock is when the lock was lost: at once, also while fn runs, by closing the connection.
//
// fn reads and writes by tx, returns the error of every statement, and does not end tx. Where it does, by tx.Commit or tx.Rollback, or
// returns nil after a COMMIT or ROLLBACK as text, the error is sqlguard.ErrUnknown: Do knows by the transaction's number, for which it asks
// before it commits. Nobody notices such a text where fn fails or ctx is over after it.
//
// Errors: guard.ErrStale, guard.ErrToken, fn's, the context's, sqlguard.ErrUnknown, or the database's. With all but ErrUnknown nothing was
// written.
func (g *Guard) Do(ctx context.Context, db Beginner, resource string, token int64, fn func(tx pgx.Tx) error) error {
	if fn == nil {
		return fmt.Errorf("pgxguard: do %q: no function: pass one that reads and writes by tx", resource)
	}
	if err := checkShown(ctx, resource, token); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, g.begin)
	if err != nil {
		return fmt.Errorf("pgxguard: begin for %q: %w", resource, err)
	}
	defer func() { _ = rollback(ctx, tx) }() // after a commit it does nothing; where it fails, the connection's end rolls back
	number, err := g.show(ctx, tx, resource, token)
	if err != nil {
		return err
	}
	err = run(ctx, tx, fn)
	if ctx.Err() != nil {
		err = over(ctx, resource, err)
	}
	if err != nil {
		if rollback(ctx, tx) == pgx.ErrTxClosed {
			return fmt.Errorf("pgxguard: do %q: fn has ended the transaction itself: %w: %w", resource, sqlguard.ErrUnknown, err)
		}
		return err
	}
	var now int64
	if err = tx.QueryRow(ctx, "SELECT COALESCE(txid_current_if_assigned(), 0)").Scan(&now); err == nil && now != number {
		err = errEnded
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("pgxguard: commit %q: %w: %w", resource, sqlguard.ErrUnknown, err)
	}
	return nil
}

// run calls fn. Where ctx ends meanwhile, run cuts the connection: a transaction of pgx is not for two goroutines, and another holder need
// not wait for fn.
func run(ctx context.Context, tx pgx.Tx, fn func(tx pgx.Tx) error) error {
	if conn := tx.Conn(); conn != nil { // a fake may have none
		line := conn.PgConn().Conn()
		defer context.AfterFunc(ctx, func() { _ = line.Close() })()
	}
	return fn(tx)
}

// rollback returns pgx.ErrTxClosed where the transaction has ended before. The context may be over.
func rollback(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRollback)
	defer cancel()
	return tx.Rollback(ctx)
}

// over is the error of a transaction that is rolled back because ctx is over, with what fn has said.
func over(ctx context.Context, resource string, said error) error {
	err := ctx.Err()
	for _, more := range []error{context.Cause(ctx), said} {
		if more != nil && !errors.Is(err, more) {
			err = fmt.Errorf("%w: %w", err, more)
		}
	}
	return fmt.Errorf("pgxguard: do %q: rolled back: %w", resource, err)
}
