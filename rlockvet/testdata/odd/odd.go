// Package odd uses locks in ways that are right, and not the usual ones.
package odd

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

type Server struct {
	*rlock.Lock
	open  []context.Context
	store interface {
		Save(context.Context, int) error
	}
}

func (s *Server) embedded(ctx context.Context) error {
	held, err := s.Lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer s.Unlock(held)
	return s.store.Save(held, 1)
}

func (s *Server) appended(ctx context.Context) error {
	held, err := s.Lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.open = append(s.open, held)
	return nil
}

func loopAll(ctx context.Context, ls []*rlock.Lock) (context.Context, func(), error) {
	var undo []func()
	release := func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	for _, l := range ls {
		next, err := l.Lock(ctx)
		if err != nil {
			release()
			return nil, nil, err
		}
		undo = append(undo, func() { _ = l.Unlock(next) })
		ctx = next
	}
	return ctx, release, nil
}

func middleware(l *rlock.Lock, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held, err := l.Lock(r.Context())
		if err != nil {
			http.Error(w, "busy", 503)
			return
		}
		defer l.Unlock(held)
		next.ServeHTTP(w, r.WithContext(held))
	})
}

func swap(ctx context.Context, l *rlock.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	for i := 0; i < 3; i++ {
		if err := l.Unlock(held); err != nil {
			return err
		}
		time.Sleep(time.Second)
		held, err = l.Lock(ctx)
		if err != nil {
			return err
		}
	}
	return l.Unlock(held)
}

func either(ctx context.Context, l *rlock.Lock, wait bool) error {
	var held context.Context
	var err error
	if wait {
		held, err = l.Lock(ctx)
	} else {
		held, err = l.TryLock(ctx, 0, 0)
	}
	if err != nil {
		return err
	}
	defer l.Unlock(held)
	return nil
}

func optional(ctx context.Context, l *rlock.Lock, lock bool) error {
	if lock {
		var err error
		if ctx, err = l.Lock(ctx); err != nil {
			return err
		}
		defer l.Unlock(ctx)
	}
	return work(ctx)
}

func switched(ctx context.Context, c *rlock.Client) error {
	l := fenced.NewLock(c, "x")
	held, token, err := l.LockAndGetToken(ctx)
	switch err {
	case nil:
		defer l.Unlock(held)
		_ = token
		return work(held)
	default:
		return err
	}
}

type lease struct {
	ctx  context.Context
	lock *rlock.Lock
}

func newLease(ctx context.Context, l *rlock.Lock) (*lease, error) {
	held, err := l.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return &lease{held, l}, nil
}

func (l *lease) Close() error { return l.lock.Unlock(l.ctx) }

func once(ctx context.Context, l *rlock.Lock) error {
	var o sync.Once
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	unlock := func() { o.Do(func() { _ = l.Unlock(held) }) }
	defer unlock()
	return work(held)
}

func labels(ctx context.Context, l *rlock.Lock, jobs chan int) {
loop:
	for {
		held, err := l.Lock(ctx)
		if err != nil {
			break loop
		}
		for j := range jobs {
			if j == 0 {
				_ = l.Unlock(held)
				continue loop
			}
			if j == 1 {
				_ = l.Unlock(held)
				break loop
			}
		}
		_ = l.Unlock(held)
		return
	}
}

func work(context.Context) error { return nil }
