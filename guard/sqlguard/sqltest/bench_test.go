package sqltest

import (
	"context"
	"database/sql"
	"testing"
)

// BenchmarkWrite is a transaction with one update: as it is, behind a marker, behind the row's own token, and with the
// token in the same statement. The servers do not wait for a disk, so that the cost of a guard shows most.
func BenchmarkWrite(b *testing.B) {
	ctx := context.Background()
	columnThenWrite := way{"column-check", nil, func(ctx context.Context, a account, tx *sql.Tx, token, v int64) error {
		if err := a.column.Check(ctx, tx, 1, token); err != nil {
			return err
		}
		return a.set(ctx, tx, v)
	}}
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			a := newAccount(b, kind.open(b))
			var token int64
			for _, w := range []way{unguarded, byMarker, columnThenWrite, byColumn} {
				for _, newToken := range []bool{false, true} {
					if newToken && w.name == unguarded.name {
						continue
					}
					b.Run(w.name+map[bool]string{false: "/same-token", true: "/new-token"}[newToken], func(b *testing.B) {
						token++
						for b.Loop() {
							if newToken {
								token++
							}
							err := a.inTx(ctx, sql.LevelDefault, func(tx *sql.Tx) error { return w.write(ctx, a, tx, token, int64(b.N)) })
							if err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		})
	}
}
