package sqlguard_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

func TestColumnStatement(t *testing.T) {
	for _, c := range []struct {
		dialect sqlguard.Dialect
		update  string
		check   string
	}{
		{
			sqlguard.PostgreSQL,
			`UPDATE "bank"."account" SET balance = balance + $1, note = $2, "fence" = $3 WHERE "id" = $4 AND COALESCE("fence", 0) <= $5 [10 x 7 42 7]`,
			`UPDATE "bank"."account" SET "fence" = $1 WHERE "id" = $2 AND COALESCE("fence", 0) <= $3 [7 42 7]`,
		}, {
			sqlguard.MySQL,
			"UPDATE `bank`.`account` SET balance = balance + ?, note = ?, `fence` = ? WHERE `id` = ? AND COALESCE(`fence`, 0) <= ? [10 x 7 42 7]",
			"UPDATE `bank`.`account` SET `fence` = ? WHERE `id` = ? AND COALESCE(`fence`, 0) <= ? [7 42 7]",
		},
	} {
		column, err := sqlguard.NewColumn(c.dialect, "bank.account", "id", "fence")
		if err != nil {
			t.Fatal(err)
		}
		set := "balance = balance + ?, note = ?"
		if c.dialect == sqlguard.PostgreSQL {
			set = "balance = balance + $1, note = $2"
		}
		args := append(make([]any, 0, 9), 10, "x")
		f := &fake{answers: []answer{{affected: 1}, {affected: 1}}}
		tx := f.tx(t)
		if err := column.Update(t.Context(), tx, 42, 7, set, args...); err != nil {
			t.Error(err)
		}
		if err := column.Check(t.Context(), tx, 42, 7); err != nil {
			t.Error(err)
		}
		isAsked(t, f, "BEGIN Default", c.update, c.check)
		if got := args[:3][2]; got != nil {
			t.Errorf("the caller's arguments were written over: %v", got)
		}
	}
}

// What 0 rows mean: stale, missing, come since, or the same as before.
func TestColumnAnswers(t *testing.T) {
	broken := errors.New("broken")
	none, one := answer{}, answer{affected: 1}
	seen := func(token int64) answer { return answer{rows: []int64{token}} }
	for _, c := range []struct {
		name    string
		dialect sqlguard.Dialect
		set     string
		answers []answer
		stale   bool
		says    string // "" for accepted
	}{
		{"written", sqlguard.PostgreSQL, "n = 1", []answer{one}, false, ""},
		{"stale", sqlguard.PostgreSQL, "n = 1", []answer{none, seen(8)}, true, ""},
		{"missing", sqlguard.PostgreSQL, "n = 1", []answer{none, none}, false, "no such row"},
		{"come since", sqlguard.PostgreSQL, "n = 1", []answer{none, seen(3), one}, false, ""},
		{"come since with the same token", sqlguard.PostgreSQL, "n = 1", []answer{none, seen(7), one}, false, ""},
		{"kept by a trigger", sqlguard.PostgreSQL, "n = 1", []answer{none, seen(7), none, seen(7)}, false, "stayed at 7"},
		{"a key of two rows", sqlguard.SQLite, "n = 1", []answer{{affected: 2}}, false, "2 rows have this key"},
		{"no answer", sqlguard.SQLite, "n = 1", []answer{{err: broken}}, false, "broken"},
		{"no answer to the second", sqlguard.SQLite, "n = 1", []answer{none, {err: broken}}, false, "broken"},
		{"come since with the same token", sqlguard.MySQL, "n = 1", []answer{none, seen(7), one}, false, ""},
		{"the same as before", sqlguard.MySQL, "n = 1", []answer{none, seen(7), none, seen(7)}, false, ""},
		{"kept by a trigger", sqlguard.MySQL, "n = 1", []answer{none, seen(6), none, seen(6)}, false, "stayed at 6"},
		{"the same token", sqlguard.MySQL, "", []answer{none, seen(7)}, false, ""},
		{"stale", sqlguard.MySQL, "", []answer{none, seen(8)}, true, ""},
	} {
		t.Run(fmt.Sprint(c.dialect, "/", c.name, "/", c.set), func(t *testing.T) {
			column, err := sqlguard.NewColumn(c.dialect, "account", "id", "fence")
			if err != nil {
				t.Fatal(err)
			}
			f := &fake{answers: c.answers}
			err = column.Update(t.Context(), f.tx(t), 42, 7, c.set)
			switch {
			case c.stale:
				isStale(t, err, guard.StaleError{Resource: "account.id=42", Token: 7, Seen: 8})
			case c.says != "":
				says(t, err, c.says)
				says(t, err, "sqlguard: update account.id=42")
			case err != nil:
				t.Error(err)
			}
			if missing := errors.Is(err, sql.ErrNoRows); missing != (c.name == "missing") {
				t.Errorf("missing: %v", missing)
			}
		})
	}
}

// Set is assignments, with as many placeholders as there are arguments: nothing else is sent.
func TestColumnSet(t *testing.T) {
	all := []sqlguard.Dialect{sqlguard.PostgreSQL, sqlguard.MySQL, sqlguard.SQLite}
	pg, my, lite := all[:1], all[1:2], all[2:]
	good := []struct {
		dialects []sqlguard.Dialect
		set      string
		args     int
	}{
		{all, "v = 5", 0}, {all, "v = (1 + (2)) * 3, w = f('a''b', \"c\")", 0}, {all, "v = ';--/*', w = 'WHERE $1 ? ('", 0},
		{all, "v = (SELECT max(v) FROM t WHERE id > 1)", 0}, {all, "whereabouts = 'here', v_where = 1.5e3", 0}, {all, "caf\u00e9 = 1", 0},
		{pg, "v = $1", 1}, {pg, "v = $2 + $1, w = $1", 2}, {pg, "v = v || '{\"a\": 1}'::jsonb - 'b' #- '{c}', w = v ? 'a'", 0}, {pg, "v[1] = $1", 1}, {pg, "a$9 = $1", 1},
		{my, "v = ?, `w h` = ? + 1", 2}, {lite, "v = ?, [a ' b] = ?2, w = ?1", 2}, {lite, "v = ?2, w = ?1 + ?", 3}, {lite, "v = j->'$.a'", 0},
	}
	bad := []struct {
		dialects []sqlguard.Dialect
		set      string
		args     int
		says     string
	}{
		{pg, "v = $1", 0, "placeholders for 1 arguments, and there are 0"}, {pg, "v = $3", 2, "for 3 arguments, and there are 2"}, {pg, "v = 1", 1, "for 0 arguments, and there are 1"},
		{my, "v = ?", 0, "and there are 0"}, {my, "v = ?", 2, "and there are 2"}, {lite, "v = ?1", 0, "and there are 0"}, {lite, "v = 5", 1, "and there are 1"},
		{all, "v = 5 WHERE id = 1", 0, "has a WHERE"}, {all, "v = 5 where id = 1", 0, "has a WHERE"}, {all, "v = (5)WHERE(id = 1)", 0, "has a WHERE"},
		{all, "v = 5 WHERE id = 1; DELETE FROM account /*", 0, "has a WHERE"}, {all, "v = 5;", 0, "one statement"}, {all, "v = 5\x00", 0, "one statement"},
		{all, "v = 5 -- why", 0, "comment"}, {all, "v = 5 /* why */", 0, "comment"}, {my, "v = 5 # why", 0, "comment"}, {all, "v = 'a' /*!50000 */", 0, "comment"},
		{all, "v = 'it", 0, "does not close its '"}, {all, "v = \"it", 0, "does not close its \""}, {my, "v = `it", 0, "does not close its `"}, {lite, "v = [it", 0, "does not close its ["},
		{all, "v = (5", 0, "does not close a parenthesis"}, {all, "v = 5)", 0, "has not opened"},
		{all, `v = 'it\'s'`, 0, "backslash"}, {pg, `v = E'it\'s'`, 0, "backslash"}, {pg, "v = $$it$$", 0, "dollar quote"}, {pg, "v = $a$it$a$", 0, "dollar quote"},
		{pg, "v = $99999999999999999999", 0, "write the arguments as $1"}, {my, "v = ?1", 1, "write the arguments as ?"}, {lite, "v = :v", 1, "write the arguments as ?"}, {lite, "v = @v", 1, "write the arguments as ?"},
	}
	write := func(d sqlguard.Dialect, f *fake, set string, args int) error {
		column, err := sqlguard.NewColumn(d, "account", "id", "fence")
		if err != nil {
			t.Fatal(err)
		}
		return column.Update(t.Context(), f.tx(t), 42, 7, set, make([]any, args)...)
	}
	for _, c := range good {
		for _, d := range c.dialects {
			if err := write(d, &fake{answers: []answer{{affected: 1}}}, c.set, c.args); err != nil {
				t.Errorf("%v: %s: %v", d, c.set, err)
			}
		}
	}
	for _, c := range bad {
		for _, d := range c.dialects {
			f := &fake{}
			says(t, write(d, f, c.set, c.args), c.says)
			isAsked(t, f, "BEGIN Default")
		}
	}
}

type id [2]byte

func (i id) Value() (driver.Value, error) { return fmt.Sprintf("id-%x", i[:]), nil }

// The resource names the key as the database gets it.
func TestColumnKeys(t *testing.T) {
	n, text := 42, "a b"
	p := &n
	column, err := sqlguard.NewColumn(sqlguard.SQLite, "account", "id", "fence")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  any
		want string
	}{
		{42, "42"}, {p, "42"}, {&p, "42"}, {text, "a b"}, {&text, "a b"}, {[]byte("a b"), "a b"}, {[]byte{0xff, 1}, "0xff01"},
		{id{1, 2}, "id-0102"}, {&id{1, 2}, "id-0102"}, {sql.NullInt64{Int64: 7, Valid: true}, "7"}, {uint8(9), "9"},
	} {
		f := &fake{answers: []answer{{}, {rows: []int64{8}}}}
		isStale(t, column.Check(t.Context(), f.tx(t), c.key, 7), guard.StaleError{Resource: "account.id=" + c.want, Token: 7, Seen: 8})
	}
}
