package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

func newGuard(t *testing.T, d sqlguard.Dialect, opts ...sqlguard.Option) *sqlguard.Guard {
	t.Helper()
	g, err := sqlguard.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// isStale requires the refusal with these figures.
func isStale(t *testing.T, err error, want guard.StaleError) {
	t.Helper()
	var stale *guard.StaleError
	if !errors.As(err, &stale) || *stale != want || !errors.Is(err, guard.ErrStale) {
		t.Errorf("error %v, want %v", err, &want)
	}
}

// says requires an error with this text that is none of a refused token.
func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || errors.Is(err, guard.ErrStale) {
		t.Errorf("error %v, want one that says %q", err, text)
	}
}

func TestNewArguments(t *testing.T) {
	for _, d := range []sqlguard.Dialect{0, sqlguard.SQLite + 1, -1} {
		_, err := sqlguard.New(d)
		says(t, err, "use PostgreSQL, MySQL or SQLite")
		_, err = sqlguard.NewColumn(d, "account", "id", "fence")
		says(t, err, "use PostgreSQL, MySQL or SQLite")
	}
	for _, name := range []string{"", "a b", "1a", `a"`, "a`", "a;--", "a.b.c", ".a", "a.", "é", "a\x00", strings.Repeat("a", 64)} {
		_, err := sqlguard.New(sqlguard.MySQL, sqlguard.WithTable(name))
		says(t, err, "WithTable")
		_, err = sqlguard.NewColumn(sqlguard.MySQL, name, "id", "fence")
		says(t, err, "NewColumn")
	}
	for _, name := range []string{"", "a.b", "a b"} {
		_, err := sqlguard.NewColumn(sqlguard.SQLite, "account", name, "fence")
		says(t, err, "NewColumn")
		_, err = sqlguard.NewColumn(sqlguard.SQLite, "account", "id", name)
		says(t, err, "NewColumn")
	}
	newGuard(t, sqlguard.SQLite, nil, sqlguard.WithTable("Order."+strings.Repeat("a", 63)))
}

func TestSchema(t *testing.T) {
	for _, c := range []struct {
		dialect sqlguard.Dialect
		want    string
	}{
		{sqlguard.PostgreSQL, `CREATE TABLE IF NOT EXISTS "s"."Marks" (resource bytea PRIMARY KEY, token bigint NOT NULL)`},
		{sqlguard.MySQL, "CREATE TABLE IF NOT EXISTS `s`.`Marks` (resource VARBINARY(512) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, accepted BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB"},
		{sqlguard.SQLite, `CREATE TABLE IF NOT EXISTS "s"."Marks" (resource BLOB NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID`},
	} {
		if got := newGuard(t, c.dialect, sqlguard.WithTable("s.Marks")).Schema(); got != c.want {
			t.Errorf("%v: %s", c.dialect, got)
		}
	}
}

// Create is content with a table that is there, whatever the attempt said, and not with one that is not.
func TestCreate(t *testing.T) {
	g := newGuard(t, sqlguard.PostgreSQL)
	const probe = `SELECT token FROM "fencelock_guard" WHERE 1 = 0 []`
	f := &fake{answers: []answer{{}, {err: io.ErrUnexpectedEOF}, {}, {err: io.ErrUnexpectedEOF}, {err: io.EOF}}}
	db := f.db(t)
	for _, want := range []error{nil, nil, io.ErrUnexpectedEOF} {
		if err := g.Create(t.Context(), db); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	isAsked(t, f, g.Schema()+" []", g.Schema()+" []", probe, g.Schema()+" []", probe)
}

// What a check sends, in each dialect.
func TestCheckStatements(t *testing.T) {
	const upsert = " ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token"
	for _, c := range []struct {
		dialect     sqlguard.Dialect
		check, read string
	}{
		{sqlguard.PostgreSQL, `INSERT INTO "fencelock_guard" AS mark (resource, token) VALUES ($1, $2)` + upsert + " RETURNING txid_current() [r 7]",
			`SELECT token FROM "fencelock_guard" WHERE resource = $1 FOR UPDATE [r]`},
		{sqlguard.MySQL, "INSERT INTO `fencelock_guard` (resource, token) VALUES (?, ?)" +
			" ON DUPLICATE KEY UPDATE accepted = accepted + (token <= ?), token = GREATEST(token, ?) [r 7 7 7]",
			"SELECT token FROM `fencelock_guard` WHERE resource = ? FOR UPDATE [r]"},
		{sqlguard.SQLite, `INSERT INTO "fencelock_guard" AS mark (resource, token) VALUES (?, ?)` + upsert + " [r 7]",
			`SELECT token FROM "fencelock_guard" WHERE resource = ? [r]`},
	} {
		f := &fake{answers: []answer{{}, {rows: []int64{8}}}}
		isStale(t, newGuard(t, c.dialect).Check(t.Context(), f.tx(t), "r", 7), guard.StaleError{Resource: "r", Token: 7, Seen: 8})
		isAsked(t, f, "BEGIN Default", c.check, c.read)
	}
}

// Bad arguments fail before the database is asked.
func TestCheckArguments(t *testing.T) {
	g := newGuard(t, sqlguard.SQLite)
	c, err := sqlguard.NewColumn(sqlguard.SQLite, "account", "id", "fence")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	tx := f.tx(t)
	never := func(*sql.Tx) error { t.Error("fn ran"); return nil }
	for _, token := range []int64{0, -1, math.MinInt64} {
		for _, err := range []error{
			g.Check(t.Context(), tx, "r", token), g.Do(t.Context(), f.db(t), "r", token, never),
			c.Check(t.Context(), tx, 1, token), c.Update(t.Context(), tx, 1, token, "n = ?", 1),
		} {
			if !errors.Is(err, guard.ErrToken) {
				t.Errorf("token %d: error %v", token, err)
			}
		}
	}
	for _, resource := range []string{"", strings.Repeat("r", sqlguard.MaxResource+1)} {
		says(t, g.Check(t.Context(), tx, resource, 1), "name it with 1 to 512")
		says(t, g.Do(t.Context(), f.db(t), resource, 1, never), "name it with 1 to 512")
	}
	says(t, g.Check(t.Context(), nil, "r", 1), "no transaction")
	says(t, c.Check(t.Context(), nil, 1, 1), "no transaction")
	says(t, g.Do(t.Context(), f.db(t), "r", 1, nil), "no function")
	isAsked(t, f, "BEGIN Default")
}

// By what the database counts and reads, a check is accepted, refused, or fails.
func TestCheckAnswers(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		dialect sqlguard.Dialect
		answers []answer
		stale   bool
		says    string // "" for accepted
	}{
		{"written", sqlguard.PostgreSQL, []answer{{affected: 1}}, false, ""},
		{"refused", sqlguard.PostgreSQL, []answer{{}, {rows: []int64{8}}}, true, ""},
		{"left as it was by a trigger", sqlguard.PostgreSQL, []answer{{}, {rows: []int64{6}}}, false, "stayed at 6"},
		{"kept away by a policy", sqlguard.PostgreSQL, []answer{{}, {}}, false, "no rows"},
		{"no answer", sqlguard.SQLite, []answer{{err: broken}}, false, "broken"},
		{"no answer to the second", sqlguard.SQLite, []answer{{}, {err: broken}}, false, "broken"},
		{"changed", sqlguard.MySQL, []answer{{affected: 2}}, false, ""},
		{"new", sqlguard.MySQL, []answer{{affected: 1}, {rows: []int64{7}}}, false, ""},
		{"refused", sqlguard.MySQL, []answer{{}, {rows: []int64{8}}}, true, ""},
		{"refused, rows found are counted", sqlguard.MySQL, []answer{{affected: 1}, {rows: []int64{8}}}, true, ""},
	} {
		t.Run(c.dialect.String()+"/"+c.name, func(t *testing.T) {
			f := &fake{answers: c.answers}
			err := newGuard(t, c.dialect).Check(t.Context(), f.tx(t), "r", 7)
			switch {
			case c.stale:
				isStale(t, err, guard.StaleError{Resource: "r", Token: 7, Seen: 8})
			case c.says != "":
				says(t, err, c.says)
				says(t, err, `sqlguard: check "r"`)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

func TestSeen(t *testing.T) {
	g := newGuard(t, sqlguard.MySQL, sqlguard.WithTable("marks"))
	broken := errors.New("broken")
	f := &fake{answers: []answer{{rows: []int64{7}}, {}, {err: broken}}}
	db := f.db(t)
	for _, want := range []int64{7, 0} {
		if seen, err := g.Seen(t.Context(), db, "r"); seen != want || err != nil {
			t.Errorf("seen %d, %v, want %d", seen, err, want)
		}
	}
	if _, err := g.Seen(t.Context(), db, "r"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	const read = "SELECT token FROM `marks` WHERE resource = ? [r]"
	isAsked(t, f, read, read, read)
}

// What Do does to the transaction, and what it says.
func TestDo(t *testing.T) {
	const check = `INSERT INTO "fencelock_guard" AS mark (resource, token) VALUES ($1, $2)` +
		` ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token RETURNING txid_current() [r 7]`
	const read = `SELECT token FROM "fencelock_guard" WHERE resource = $1 FOR UPDATE [r]`
	failed, lost := errors.New("fn failed"), errors.New("lock lost")
	ok := func(*sql.Tx) error { return nil }
	run := func(f *fake, ctx context.Context, fn func(*sql.Tx) error) error {
		g := newGuard(t, sqlguard.PostgreSQL, sqlguard.WithIsolation(sql.LevelSerializable))
		return g.Do(ctx, f.db(t), "r", 7, fn)
	}
	accepted := []answer{{affected: 1}}

	f := &fake{answers: accepted}
	if err := run(f, t.Context(), ok); err != nil {
		t.Error(err)
	}
	isAsked(t, f, "BEGIN Serializable", check, "NUMBER", "COMMIT")

	f = &fake{answers: accepted, ended: true}
	if err := run(f, t.Context(), ok); !errors.Is(err, sqlguard.ErrUnknown) || !strings.Contains(err.Error(), "fn has ended the transaction") {
		t.Errorf("error %v", err)
	}
	isAsked(t, f, "BEGIN Serializable", check, "NUMBER", "ROLLBACK")

	f = &fake{answers: []answer{{}, {rows: []int64{9}}}}
	err := run(f, t.Context(), func(*sql.Tx) error { t.Error("fn ran with a stale token"); return nil })
	isStale(t, err, guard.StaleError{Resource: "r", Token: 7, Seen: 9})
	isAsked(t, f, "BEGIN Serializable", check, read, "ROLLBACK")

	f = &fake{answers: accepted}
	if err := run(f, t.Context(), func(*sql.Tx) error { return failed }); err != failed {
		t.Errorf("error %v", err)
	}
	isAsked(t, f, "BEGIN Serializable", check, "ROLLBACK")

	f = &fake{answers: accepted}
	func() {
		defer func() {
			if recover() != failed {
				t.Error("the panic did not go on")
			}
		}()
		_ = run(f, t.Context(), func(*sql.Tx) error { panic(failed) })
	}()
	isAsked(t, f, "BEGIN Serializable", check, "ROLLBACK")

	f = &fake{answers: accepted}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = run(f, ctx, func(*sql.Tx) error { cancel(lost); return nil })
	if !errors.Is(err, lost) || !errors.Is(err, context.Canceled) || errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("error %v", err)
	}

	f = &fake{answers: accepted}
	ctx, cancel = context.WithCancelCause(t.Context())
	err = run(f, ctx, func(tx *sql.Tx) error { defer cancel(lost); return tx.Commit() })
	if !errors.Is(err, lost) || !errors.Is(err, sqlguard.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	isAsked(t, f, "BEGIN Serializable", check, "COMMIT")

	// SQLite has no number, and says that the savepoint is not there.
	f = &fake{answers: []answer{{affected: 1}, {}, {err: failed}}}
	err = newGuard(t, sqlguard.SQLite).Do(t.Context(), f.db(t), "r", 7, ok)
	if !errors.Is(err, failed) || !errors.Is(err, sqlguard.ErrUnknown) || f.asked[len(f.asked)-1] != "ROLLBACK" {
		t.Errorf("error %v, asked %q", err, f.asked)
	}

	f = &fake{answers: accepted, commitErr: io.ErrUnexpectedEOF}
	err = run(f, t.Context(), ok)
	if !errors.Is(err, sqlguard.ErrUnknown) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	isAsked(t, f, "BEGIN Serializable", check, "NUMBER", "COMMIT")
}

// A database that does not answer a rollback, or is not there to begin, does not hold up who has gone.
func TestDo_Silent(t *testing.T) {
	lost := errors.New("lock lost")
	f := &fake{answers: []answer{{affected: 1}}, silent: true}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := newGuard(t, sqlguard.PostgreSQL).Do(ctx, f.db(t), "r", 7, func(*sql.Tx) error { cancel(lost); return nil })
	if !errors.Is(err, lost) || errors.Is(err, sqlguard.ErrUnknown) || f.ctx.Err() != context.Canceled {
		t.Errorf("error %v, the transaction's context %v", err, f.ctx.Err())
	}

	full := (&fake{}).db(t)
	full.SetMaxOpenConns(1)
	if _, err := full.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	err = newGuard(t, sqlguard.PostgreSQL).Do(ctx, full, "r", 7, func(*sql.Tx) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// A table that is not of InnoDB is found at the first use, once for all, and by Create.
func TestEngine(t *testing.T) {
	g := newGuard(t, sqlguard.MySQL)
	c, err := sqlguard.NewColumn(sqlguard.MySQL, "account", "id", "fence")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{engines: []int64{0, 0, 0, 1, 1, 0}, answers: []answer{{affected: 2}, {affected: 1}, {}, {affected: 2}, {affected: 1}, {affected: 2}, {affected: 1}, {}}}
	tx := f.tx(t)
	db := f.db(t)
	says(t, g.Check(t.Context(), tx, "r", 7), "ALTER TABLE fencelock_guard ENGINE=InnoDB")
	says(t, c.Check(t.Context(), tx, 1, 7), "ALTER TABLE account ENGINE=InnoDB")
	says(t, g.Create(t.Context(), db), "not of InnoDB")
	for range 2 {
		for _, err := range []error{g.Check(t.Context(), tx, "r", 7), c.Check(t.Context(), tx, 1, 7)} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if err := g.Create(t.Context(), db); err != nil {
		t.Error(err)
	}
	if len(f.engines) != 1 {
		t.Errorf("%d answers are left, want that nobody asks again", len(f.engines))
	}
}

func TestOptionsOfAColumn(t *testing.T) {
	for _, opt := range []sqlguard.Option{sqlguard.WithTable("t"), sqlguard.WithIsolation(sql.LevelSerializable)} {
		_, err := sqlguard.NewColumn(sqlguard.SQLite, "account", "id", "fence", opt)
		says(t, err, "are for New")
	}
	_, err := sqlguard.NewColumn(sqlguard.SQLite, "account", "id", "fence", sqlguard.WithTrace(nil), nil)
	if err != nil {
		t.Error(err)
	}
}
