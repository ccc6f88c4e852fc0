package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// BenchmarkPair is an acquire and its unlock with nobody else there, one caller or many with a key each.
func BenchmarkPair(b *testing.B) {
	for _, kind := range []struct {
		name string
		dial func(string) (*client, error)
	}{{"fenced", dialFenced}, {"unfenced", dialUnfenced}} {
		for _, g := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("%s/g=%d", kind.name, g), func(b *testing.B) {
				c := benchClients(b, kind.dial, 1)[0]
				locks := make([]lockFunc, g)
				for i := range locks {
					locks[i] = c.lock(fmt.Sprintf("pair:%d", i))
				}
				pairs(b, locks)
			})
		}
	}
}

// BenchmarkContended is the same with one key, from 4 clients.
func BenchmarkContended(b *testing.B) {
	for _, g := range []int{4, 64, 512} {
		b.Run(fmt.Sprintf("g=%d", g), func(b *testing.B) {
			clients := benchClients(b, dialFenced, 4)
			locks := make([]lockFunc, g)
			for i := range locks {
				locks[i] = clients[i%len(clients)].lock("contended")
			}
			pairs(b, locks)
		})
	}
}

// BenchmarkReentry is a nested acquire and its unlock within a hold.
func BenchmarkReentry(b *testing.B) {
	_, rdb := testServer(b)
	c, err := rlock.New(rdb)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lock := fenced.NewLock(c, "reentry")
	held, err := lock.Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		inner, _, err := lock.LockAndGetToken(held)
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Unlock(inner); err != nil {
			b.Fatal(err)
		}
	}
	if err := lock.Unlock(held); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCheck asks a hold whether it can be trusted, without Redis.
func BenchmarkCheck(b *testing.B) {
	_, rdb := testServer(b)
	c, err := rlock.New(rdb)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lock := fenced.NewLock(c, "check")
	held, err := lock.Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := lock.Check(held); err != nil {
			b.Fatal(err)
		}
	}
	if err := lock.Unlock(held); err != nil {
		b.Fatal(err)
	}
}

func benchClients(b *testing.B, dial func(string) (*client, error), n int) []*client {
	b.Helper()
	addr, _ := testServer(b)
	clients := make([]*client, n)
	for i := range clients {
		c, err := dial(addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.close)
		clients[i] = c
	}
	return clients
}

// pairs does b.N pairs in all, with a goroutine for each lock.
func pairs(b *testing.B, locks []lockFunc) {
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i, lock := range locks {
		n := b.N / len(locks)
		if i < b.N%len(locks) {
			n++
		}
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range n {
				_, unlock, err := lock(ctx)
				if err == nil {
					err = unlock()
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
