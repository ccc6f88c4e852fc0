package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// MaxResource is how many bytes the name of a resource may have. MySQL's indexes end at 767 in old row formats.
const MaxResource = 512

// marker is the SQL of a marker table.
type marker struct {
	schema   string
	there    string // asks whether the table is
	check    string
	args     func(resource []byte, token int64) []any // of check
	accepted int64                                    // the count of rows by which check says yes at once
	number   string                                   // asks for the transaction's number, which check returns too; or ""
	read     string
	locked   string // read, of the newest committed row, which stays locked

	savepoint bool // whether Do makes one: there is no number
}

// newMarker returns the SQL for the table, whose name is in quotes. A resource is bytes to the database: text would be
// compared by a collation, which may take "a", "A", "á" and "a " for the same, or be refused for a zero byte.
func newMarker(d Dialect, table string) marker {
	m := marker{
		there:    "SELECT token FROM " + table + " WHERE 1 = 0",
		args:     func(resource []byte, token int64) []any { return []any{resource, token} },
		accepted: 1,
		read:     fmt.Sprintf("SELECT token FROM %s WHERE resource = %s", table, d.mark(1)),
	}
	m.locked = m.read + d.forUpdate()
	switch d {
	case PostgreSQL:
		m.schema = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource bytea PRIMARY KEY, token bigint NOT NULL)", table)
		m.check = fmt.Sprintf("INSERT INTO %s AS mark (resource, token) VALUES ($1, $2)"+
			" ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token RETURNING txid_current()", table)
		m.number = "SELECT COALESCE(txid_current_if_assigned(), 0)"
	case SQLite:
		m.schema = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource BLOB NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID", table)
		m.check = fmt.Sprintf("INSERT INTO %s AS mark (resource, token) VALUES (?, ?)"+
			" ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token", table)
		m.savepoint = true
	case MySQL:
		// The count of rows must tell an accepted token from a refused one, also when it is the token that the row has.
		// Hence the column accepted, which changes with each: 2 rows are an update that changed the row. 0 or 1 is a new
		// row, or one that stayed as it was, by how the connection counts (clientFoundRows).
		m.schema = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource VARBINARY(%d) NOT NULL PRIMARY KEY, token BIGINT NOT NULL,"+
			" accepted BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB", table, MaxResource)
		m.check = fmt.Sprintf("INSERT INTO %s (resource, token) VALUES (?, ?)"+
			" ON DUPLICATE KEY UPDATE accepted = accepted + (token <= ?), token = GREATEST(token, ?)", table)
		m.args = func(resource []byte, token int64) []any { return []any{resource, token, token, token} }
		m.accepted = 2
	}
	return m
}

// show shows a token. It returns whether that was accepted at once, and the transaction's number, if that has one.
func (m marker) show(ctx context.Context, tx *sql.Tx, resource []byte, token int64) (number int64, accepted bool, err error) {
	args := m.args(resource, token)
	if m.number == "" {
		n, err := affected(tx.ExecContext(ctx, m.check, args...))
		return 0, n == m.accepted, err
	}
	err = tx.QueryRowContext(ctx, m.check, args...).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return number, err == nil, err
}

// savepoint is the name of the one that Do makes. It goes with the transaction that it was made in.
const savepoint = "fencelock_do"

// errEnded is for people; Do says ErrUnknown with it.
var errEnded = errors.New("fn has ended the transaction, by COMMIT or ROLLBACK as text or a procedure that has one")

// same returns an error if this is not the transaction any more that has the number, or the savepoint, or if the database
// does not say so.
func (m marker) same(ctx context.Context, tx *sql.Tx, number int64) error {
	if m.savepoint {
		if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+savepoint); err != nil {
			return fmt.Errorf("%w: %w", errEnded, err)
		}
	}
	if number == 0 {
		return nil
	}
	var now int64
	if err := tx.QueryRowContext(ctx, m.number).Scan(&now); err != nil {
		return fmt.Errorf("ask for the transaction's number: %w", err)
	}
	if now != number {
		return errEnded
	}
	return nil
}
