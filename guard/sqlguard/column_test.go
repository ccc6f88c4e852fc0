package sqlguard_test

import (
	"database/sql"
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
			`UPDATE "bank"."account" SET balance = balance + $1, note = $2` + "\n/**/, " + `"fence" = $3 WHERE "id" = $4 AND COALESCE("fence", 0) <= $5 [10 x 7 42 7]`,
			`UPDATE "bank"."account" SET "fence" = $1 WHERE "id" = $2 AND COALESCE("fence", 0) <= $3 [7 42 7]`,
		}, {
			sqlguard.MySQL,
			"UPDATE `bank`.`account` SET balance = balance + ?, note = ?\n/**/, `fence` = ? WHERE `id` = ? AND COALESCE(`fence`, 0) <= ? [10 x 7 42 7]",
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
