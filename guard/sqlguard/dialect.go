package sqlguard

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Dialect is the SQL that a database speaks.
type Dialect int

// The dialects.
const (
	PostgreSQL Dialect = iota + 1
	MySQL              // and MariaDB; the tables are InnoDB's
	SQLite             // 3.24 or newer
)

// String implements fmt.Stringer.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

func (d Dialect) check() error {
	if d < PostgreSQL || d > SQLite {
		return fmt.Errorf("sqlguard: %v: use PostgreSQL, MySQL or SQLite", d)
	}
	return nil
}

// mark is the placeholder of the statement's n-th argument, counted from 1.
func (d Dialect) mark(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// forUpdate makes a SELECT read the newest committed row, and keep it locked. SQLite needs neither: the statement before
// it was a write, and there is one writer at a time.
func (d Dialect) forUpdate() string {
	if d == SQLite {
		return ""
	}
	return " FOR UPDATE"
}

// PostgreSQL would cut off what is longer; MySQL allows one more.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// quote returns an identifier in quotes, so that it may be a word of SQL too, and means what is written.
func (d Dialect) quote(name string) (string, error) {
	if !identifier.MatchString(name) {
		return "", fmt.Errorf("%q is no name: use letters, digits and underscores, 63 at most, no digit first", name)
	}
	if d == MySQL {
		return "`" + name + "`", nil
	}
	return `"` + name + `"`, nil
}

// quoteTable is quote for a table, which may have a schema before it.
func (d Dialect) quoteTable(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("%q is no table: use NAME or SCHEMA.NAME", name)
	}
	for i, part := range parts {
		quoted, err := d.quote(part)
		if err != nil {
			return "", err
		}
		parts[i] = quoted
	}
	return strings.Join(parts, "."), nil
}
