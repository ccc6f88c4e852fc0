package watchdog

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkAddRemove is the watchdog's part of a hold that is over before its first renewal.
func BenchmarkAddRemove(b *testing.B) {
	for _, held := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			w := New(func(_ context.Context, batch []Renewal) []error { return nil })
			defer w.Close()
			for range max(held, 1) { // one, so that the goroutine neither starts nor ends
				o := newOwner(30 * time.Second)
				w.Add(&o.Lease, Now(), 30*time.Second)
			}
			time.Sleep(1500 * time.Millisecond) // they have settled
			o := newOwner(30 * time.Second)
			b.ReportAllocs()
			for b.Loop() {
				w.Add(&o.Lease, Now(), 30*time.Second)
				w.Remove(&o.Lease)
			}
		})
	}
}

// BenchmarkRenewal is the watchdog's part of one renewal: from the calendar into a batch, and back.
func BenchmarkRenewal(b *testing.B) {
	const leases = 10_000
	w := New(func(_ context.Context, batch []Renewal) []error { return nil })
	defer w.Close()
	owners := make([]*owner, leases)
	for i := range owners {
		owners[i] = newOwner(30 * time.Second)
		w.Add(&owners[i].Lease, Now(), 30*time.Second)
	}
	in := &slotQueue{}
	due := make([]*Lease, 0, maxBatch)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		due = due[:0]
		w.mu.Lock()
		for j := range maxBatch {
			l := &owners[(i*maxBatch+j)%leases].Lease
			w.leases.remove(l)
			l.early, l.settles = true, 0
			due = append(due, l)
		}
		w.backlog.turn = time.Now().Add(time.Hour) // fly below is instead of what launch would start
		w.tick(due, w.since(time.Now()))
		renewals := w.queues[0].waiting[0].renewals
		clear(w.queues)
		w.backlog = backlog{}
		in.flying++
		w.mu.Unlock()
		w.fly(in, renewals)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxBatch, "ns/lease")
}
