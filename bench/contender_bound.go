package main

import (
	"context"
	"sync"
)

// mutexes are the process's, by key. Keys are a round's own, so none is used twice.
var mutexes sync.Map

func dialMutex(string) (*client, error) {
	return &client{close: func() {}, lock: func(key string) lockFunc {
		entry, _ := mutexes.LoadOrStore(key, new(sync.Mutex))
		mu := entry.(*sync.Mutex)
		unlock := func() error { mu.Unlock(); return nil }
		return func(context.Context) (int64, func() error, error) {
			mu.Lock()
			return 0, unlock, nil
		}
	}}, nil
}
