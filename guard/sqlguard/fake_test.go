package sqlguard_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// fake is a database that answers each statement as the test says, in order, and notes what it was asked. Questions for the
// engine of a table and the number of the transaction it answers itself.
type fake struct {
	answers   []answer
	asked     []string
	commitErr error
	engines   []int64 // whether a table is of InnoDB, of each question; 1 where the list has ended
	ended     bool    // the transaction has another number now
	silent    bool    // a rollback waits until the transaction's context is over
	ctx       context.Context
}

// answer is what one statement gives: the count of rows that it wrote, or the rows that it reads, or an error.
type answer struct {
	affected int64
	rows     []int64
	err      error
}

// db returns a connection pool of the fake. When the test ends, each answer must have been asked for.
func (f *fake) db(t *testing.T) *sql.DB {
	db := sql.OpenDB(f)
	t.Cleanup(func() {
		_ = db.Close()
		if len(f.answers) > 0 {
			t.Errorf("%d answers were not asked for; asked: %q", len(f.answers), f.asked)
		}
	})
	return db
}

// tx returns a transaction of the fake.
func (f *fake) tx(t *testing.T) *sql.Tx {
	tx, err := f.db(t).Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (f *fake) next(query string, args []driver.NamedValue) (answer, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
		if b, ok := arg.Value.([]byte); ok {
			values[i] = string(b)
		}
	}
	f.asked = append(f.asked, fmt.Sprint(query, " ", values))
	if len(f.answers) == 0 {
		return answer{}, fmt.Errorf("no answer for %q", query)
	}
	a := f.answers[0]
	f.answers = f.answers[1:]
	return a, a.err
}

func (f *fake) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fake) Driver() driver.Driver                        { return nil }
func (f *fake) Prepare(string) (driver.Stmt, error)          { panic("not used") }
func (f *fake) Close() error                                 { return nil }
func (f *fake) Begin() (driver.Tx, error)                    { panic("not used") }

func (f *fake) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	f.ctx = ctx
	f.asked = append(f.asked, "BEGIN "+sql.IsolationLevel(opts.Isolation).String())
	return f, nil
}

func (f *fake) Commit() error {
	f.asked = append(f.asked, "COMMIT")
	return f.commitErr
}

func (f *fake) Rollback() error {
	f.asked = append(f.asked, "ROLLBACK")
	if f.silent {
		<-f.ctx.Done()
		return f.ctx.Err()
	}
	return nil
}

func (f *fake) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	a, err := f.next(query, args)
	return driver.RowsAffected(a.affected), err
}

func (f *fake) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.Contains(query, "information_schema"):
		innodb := int64(1)
		if len(f.engines) > 0 {
			innodb, f.engines = f.engines[0], f.engines[1:]
		}
		return &rows{[]int64{innodb}}, nil
	case strings.Contains(query, "txid_current_if_assigned"):
		f.asked = append(f.asked, "NUMBER")
		if f.ended {
			return &rows{[]int64{0}}, nil
		}
		return &rows{[]int64{77}}, nil
	}
	a, err := f.next(query, args)
	if a.affected > 0 && strings.HasSuffix(query, "RETURNING txid_current()") {
		a.rows = []int64{77}
	}
	return &rows{a.rows}, err
}

type rows struct{ left []int64 }

func (r *rows) Columns() []string { return []string{"token"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	dest[0] = r.left[0]
	r.left = r.left[1:]
	return nil
}

// isAsked requires that the fake was asked just this.
func isAsked(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked\n%q, want\n%q", f.asked, want)
	}
}
