package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkWrite is a transaction with one update: behind a marker, in Do, behind the row's own token, and with the token in the
// same statement; each with a token that the row has, and with a new one for each. Beside each guarded write runs a plain
// one, and x-plain is the ratio of their medians, which other load on the machine moves little. The servers do not wait
// for a disk, so that the cost of a guard shows most.
func BenchmarkWrite(b *testing.B) {
	columnThenWrite := way{"column-check", byColumn.check, func(ctx context.Context, a account, tx *sql.Tx, token, v int64) error {
		if err := a.column.Check(ctx, tx, 1, token); err != nil {
			return err
		}
		return a.set(ctx, tx, v)
	}}
	byDo := way{name: "marker-do"}
	for _, kind := range kinds {
		for _, w := range []way{byMarker, byDo, columnThenWrite, byColumn} {
			for _, fresh := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/fresh=%v", kind.name, w.name, fresh), func(b *testing.B) {
					a := newAccount(b, kind.open(b))
					token, v := int64(1), int64(0)
					var plain, guarded []time.Duration
					timed := func(into *[]time.Duration, w way) {
						v++
						began := time.Now()
						var err error
						if w.name == byDo.name {
							err = a.marks.Do(b.Context(), a, "account:1", token, func(tx *sql.Tx) error { return a.set(b.Context(), tx, v) })
						} else {
							err = a.inTx(b.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return w.write(b.Context(), a, tx, token, v) })
						}
						*into = append(*into, time.Since(began))
						noError(b, err)
					}
					for b.Loop() {
						if fresh {
							token++
						}
						timed(&plain, unguarded)
						timed(&guarded, w)
					}
					b.ReportMetric(0, "ns/op") // of both together: it says nothing
					b.ReportMetric(float64(median(plain).Nanoseconds())/1e3, "plain-µs")
					b.ReportMetric(float64(median(guarded).Nanoseconds())/1e3, "guarded-µs")
					b.ReportMetric(float64(median(guarded))/float64(median(plain)), "x-plain")
				})
			}
		}
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
