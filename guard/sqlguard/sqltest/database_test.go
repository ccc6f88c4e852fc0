package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/fencelock/fencelock/guard/sqlguard"
)

// database is a database of a test's own, and how its kind behaves.
type database struct {
	*sql.DB
	dialect sqlguard.Dialect
	// waiting asks how many transactions of the whole server wait for a lock; "" where nobody can be asked.
	waiting string
	levels  []sql.IsolationLevel
}

var (
	wal      = []sql.IsolationLevel{sql.LevelDefault}
	ordinary = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	schemas  atomic.Int64
)

// kinds are the databases, and the ways of their connections that change what a guard is told.
var kinds = []struct {
	name string
	open func(t testing.TB) database
}{
	{"postgres", openPostgres},
	{"mariadb", func(t testing.TB) database { return openMariaDB(t, "") }},
	{"mariadb-found-rows", func(t testing.TB) database { return openMariaDB(t, "clientFoundRows=true&interpolateParams=true") }},
	{"sqlite-wal", func(t testing.TB) database { return openSQLite(t, "WAL") }},
	{"sqlite-rollback", func(t testing.TB) database { return openSQLite(t, "DELETE") }},
}

// forEach runs the test on each kind of database.
func forEach(t *testing.T, test func(t *testing.T, db database)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.open(t)) })
	}
}

// forEachLevel runs the test on each kind of database and isolation level.
func forEachLevel(t *testing.T, test func(t *testing.T, db database, level sql.IsolationLevel)) {
	for _, kind := range kinds {
		for _, level := range kind.open(t).levels {
			t.Run(fmt.Sprint(kind.name, "/", level), func(t *testing.T) { test(t, kind.open(t), level) })
		}
	}
}

func openPostgres(t testing.TB) database {
	if servers.postgresErr != nil {
		t.Fatal(servers.postgresErr)
	}
	schema := fmt.Sprint("test", schemas.Add(1))
	admin := open(t, "pgx", postgresDSN(servers.postgres, "public"))
	execute(t, admin, "CREATE SCHEMA "+schema)
	return database{open(t, "pgx", postgresDSN(servers.postgres, schema)), sqlguard.PostgreSQL,
		"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", ordinary}
}

func openMariaDB(t testing.TB, params string) database {
	if servers.mariadbErr != nil {
		t.Fatal(servers.mariadbErr)
	}
	schema := fmt.Sprint("test", schemas.Add(1))
	admin := open(t, "mysql", mariadbDSN(servers.mariadb, "", ""))
	execute(t, admin, "CREATE DATABASE "+schema)
	return database{open(t, "mysql", mariadbDSN(servers.mariadb, schema, params)), sqlguard.MySQL,
		"SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'", ordinary}
}

func openSQLite(t testing.TB, journal string) database {
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(" + journal + ")&_pragma=synchronous(OFF)"
	return database{open(t, "sqlite", dsn), sqlguard.SQLite, "", wal}
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	noError(t, err)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.Exec(query, args...)
	noError(t, err)
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin begins a transaction that is rolled back when the test ends.
func begin(t *testing.T, db database, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	noError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// awaitWaiting waits until so many transactions wait for a lock. Where the database cannot tell it returns at once: the
// test then holds in either order.
func awaitWaiting(t *testing.T, db database, n int) {
	t.Helper()
	if db.waiting == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		var waiting int
		noError(t, db.QueryRowContext(ctx, db.waiting).Scan(&waiting))
		if waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// newGuard returns a guard whose table is there.
func newGuard(t testing.TB, db database, opts ...sqlguard.Option) *sqlguard.Guard {
	t.Helper()
	g, err := sqlguard.New(db.dialect, opts...)
	noError(t, err)
	noError(t, g.Create(context.Background(), db))
	return g
}
