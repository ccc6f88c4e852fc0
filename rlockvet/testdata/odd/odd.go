// Package odd uses locks in ways that are right, and not the usual ones.
package odd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

type Server struct {
	*rlock.Lock
	locks map[string]*fenced.Lock
	mu    sync.Mutex
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

func (s *Server) fromMap(ctx context.Context, k string) (err error) {
	l := s.locks[k]
	held, tok, err := l.TryLockAndGetToken(ctx, time.Second, 0)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	} else if err != nil {
		return fmt.Errorf("x: %w", err)
	}
	defer func() {
		if e := l.Unlock(held); e != nil && err == nil {
			err = e
		}
	}()
	return s.store.Save(held, int(tok))
}

func (s *Server) appended(ctx context.Context) error {
	held, err := s.Lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.open = append(s.open, held)
	return nil
}

func (s *Server) closeAll() {
	for _, c := range s.open {
		_ = s.Unlock(c)
	}
}

func methodValue(ctx context.Context, l *rlock.Lock) error {
	unlock := l.Unlock
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock(held)
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

func goroutine(ctx context.Context, l *rlock.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer l.Unlock(held)
		time.Sleep(time.Second)
	}()
	return nil
}

func channel(ctx context.Context, l *rlock.Lock, ch chan<- context.Context) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	ch <- held
	return nil
}

func leader(ctx context.Context, l *rlock.Lock, run func(context.Context)) {
	for ctx.Err() == nil {
		held, err := l.TryLock(ctx, 5*time.Second, 0)
		switch {
		case errors.Is(err, rlock.ErrNotAcquired):
			continue
		case err != nil:
			time.Sleep(time.Second)
			continue
		}
		run(held)
		if err := l.Unlock(held); err != nil {
			fmt.Println(err)
		}
	}
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

func pair(ctx context.Context, a, b *rlock.Lock) error {
	ctxA, err := a.Lock(ctx)
	if err != nil {
		return err
	}
	ctxB, err := b.Lock(ctxA)
	if err != nil {
		_ = a.Unlock(ctxA)
		return err
	}
	err = work(ctxB)
	return errors.Join(err, b.Unlock(ctxB), a.Unlock(ctxA))
}

func switched(ctx context.Context, c *quorum.Client) error {
	l := quorum.NewLock(c, "x")
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

func result(ctx context.Context, l *rlock.Lock) (res int, err error) {
	if ctx, err = l.Lock(ctx); err != nil {
		return
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	return 1, work(ctx)
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

func viaHelper(ctx context.Context, l *rlock.Lock) error {
	outer, err := acquire(ctx, l)
	if err != nil {
		return err
	}
	inner, err := l.Lock(outer)
	if err != nil {
		return errors.Join(err, l.Unlock(outer))
	}
	_ = work(inner)
	return errors.Join(l.Unlock(inner), l.Unlock(outer))
}

func acquire(ctx context.Context, l *rlock.Lock) (context.Context, error) { return l.Lock(ctx) }

func watch(ctx context.Context, l *rlock.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	select {
	case <-held.Done():
		return context.Cause(held)
	case <-time.After(time.Second):
	}
	return l.Unlock(held)
}

func deadlines(ctx context.Context, l *rlock.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock(held)
	if d, ok := held.Deadline(); ok && time.Until(d) < time.Second {
		return errors.New("too late")
	}
	if held.Err() == context.DeadlineExceeded {
		return nil
	}
	return work(held)
}

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

func nested(ctx context.Context, outer *rlock.Lock, locks []*rlock.Lock) error {
	ctx, err := outer.Lock(ctx)
	if err != nil {
		return err
	}
	held, err := locks[0].Lock(ctx)
	if err != nil {
		return errors.Join(err, outer.Unlock(ctx))
	}
	_ = work(held)
	return errors.Join(locks[0].Unlock(ctx), outer.Unlock(ctx))
}

func declared(ctx context.Context, l *rlock.Lock) error {
	var use func(context.Context)
	use = func(ctx context.Context) { _ = work(ctx) }
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	use(held)
	return l.Unlock(held)
}

func expressions(ctx context.Context, s *Server) error {
	held, err := s.Lock.Lock(ctx)
	if err != nil {
		return err
	}
	_ = (*Server).embedded(s, held)
	return (*rlock.Lock).Unlock(s.Lock, held)
}

func work(context.Context) error { return nil }
