package fenced_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func TestSemaphoreTry(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	s := fenced.NewSemaphore(c, "jobs", 2)
	a, err := s.Acquire(t.Context(), rlock.Wait(0))
	locktest.NoError(t, err)
	b, err := s.Acquire(t.Context(), rlock.Wait(0))
	locktest.NoError(t, err)
	locktest.Equal(t, "slot", a.Slot(), 0)
	locktest.Equal(t, "slot", b.Slot(), 1)
	locktest.Equal(t, "name", b.Name(), "{jobs}:1")
	_, err = s.Acquire(t.Context(), rlock.Wait(0))
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	locktest.NoError(t, a.Unlock(t.Context()))
	d, err := s.Acquire(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "slot", d.Slot(), 0)
	locktest.Equal(t, "token", d.Token(), 2)
	locktest.NoError(t, d.Unlock(t.Context()))
	locktest.NoError(t, b.Unlock(t.Context()))
	locktest.NoError(t, c.Close())
}

func TestSemaphoreWaits(t *testing.T) {
	rdb := redistest.New(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	inside := map[int]bool{}
	for range 6 {
		c := newClient(t, rdb)
		s := fenced.NewSemaphore(c, "jobs", 3)
		for range 4 {
			all.Go(func() {
				for range 20 {
					err := s.Do(t.Context(), func(ctx context.Context, p *fenced.Hold) error {
						mu.Lock()
						if inside[p.Slot()] {
							t.Error("two in a slot")
						}
						inside[p.Slot()] = true
						mu.Unlock()
						time.Sleep(time.Millisecond)
						mu.Lock()
						delete(inside, p.Slot())
						mu.Unlock()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	began := time.Now()
	all.Wait()
	t.Log(time.Since(began))
}
