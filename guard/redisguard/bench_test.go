package redisguard_test

import (
	"strconv"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The same command plain and guarded, one at a time.
func BenchmarkGuarded(b *testing.B) {
	rdb := redistest.Real(b).Client()
	ctx := b.Context()
	w := newGuard(b, rdb).Writer(resource, 1)
	do := func(name string, command func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := command(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	do("plain", func() error { return rdb.Do(ctx, "INCR", key).Err() })
	sha := rdb.ScriptLoad(ctx, increment).Val()
	do("plain-eval", func() error { return rdb.EvalSha(ctx, sha, []string{key}).Err() })
	do("do", func() error { return w.Do(ctx, "INCR", key).Err() })
	do("eval", func() error { return w.Eval(ctx, increment, []string{key}).Err() })
	n := 0
	do("once", func() error { n++; return w.Once(strconv.Itoa(n)).Do(ctx, "INCR", key).Err() })
}
