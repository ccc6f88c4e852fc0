package guard

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The same write under a mutex, and under the guard; and that of many goroutines at once, each at a resource of its own.
func BenchmarkGuarded(b *testing.B) {
	balance := 0
	write := func(context.Context) error { balance++; return nil }
	b.Run("plain", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			_ = write(b.Context())
			mu.Unlock()
		}
	})
	for name, m := range map[string]*Memory{"memory": NewMemory(), "memory-forgets": NewMemory(WithForgetUnused(time.Hour))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = m.Do(b.Context(), "r", 1, write)
			}
		})
		b.Run(name+"-parallel", func(b *testing.B) {
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				own, resource := 0, strconv.FormatInt(n.Add(1), 10)
				write := func(context.Context) error { own++; return nil }
				for pb.Next() {
					_ = m.Do(b.Context(), resource, 1, write)
				}
			})
		})
	}
}

// What a mark takes.
func BenchmarkNewResources(b *testing.B) {
	m := NewMemory(WithMaxResources(1 << 30))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		_ = m.Check(b.Context(), "account:"+strconv.Itoa(n), 1)
	}
}
