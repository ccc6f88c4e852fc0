package rlock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// P3, P12, Inv1, Inv2, Inv8: whatever becomes of a retain, Unlock is back within its bound and says that the lock is
// released, another client that waits gets it within that and a moment more, and nothing is left.
func TestRetainFault(t *testing.T) {
	const bound = 300 * time.Millisecond // of Unlock; a third of it is given to the retain
	broken := &net.OpError{Op: "read", Err: io.EOF}
	for _, test := range []struct {
		name   string
		unlock time.Duration // at most
		fault  func(s *retainSite, next func() error) error
	}{
		{"executed, the connection broken", 10 * time.Millisecond, func(s *retainSite, next func() error) error {
			return errors.Join(next(), broken)
		}},
		{"not executed, the connection broken", 10 * time.Millisecond, func(*retainSite, func() error) error { return broken }},
		{"all connections broken", 50 * time.Millisecond, func(s *retainSite, next func() error) error {
			s.link.cut(false)
			return next()
		}},
		{"executed, answered late", bound, func(s *retainSite, next func() error) error {
			defer time.Sleep(400 * time.Millisecond)
			return next()
		}},
		{"executed late", bound, func(s *retainSite, next func() error) error {
			time.Sleep(400 * time.Millisecond)
			return next()
		}},
		{"answered never", bound, func(s *retainSite, next func() error) error {
			_ = next()
			time.Sleep(3 * time.Second)
			return broken
		}},
		{"refused: OOM", 10 * time.Millisecond, func(*retainSite, func() error) error {
			return bhReply("OOM command not allowed when used memory > 'maxmemory'.")
		}},
		{"refused: READONLY", 10 * time.Millisecond, func(*retainSite, func() error) error {
			return bhReply("READONLY You can't write against a read only replica.")
		}},
		{"refused: LOADING", 10 * time.Millisecond, func(*retainSite, func() error) error {
			return bhReply("LOADING Redis is loading the dataset in memory")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb, rlock.WithUnlockTimeout(bound), rlock.WithLease(2*time.Second))
				other := s.other(t)
				s.retain(t)
				var met atomic.Bool
				var in handInside
				var gotAt time.Time
				var theirs <-chan handGot
				s.spy.wrap(func(ops []string, next func() error) error {
					if ops[0] != "retain" || met.Swap(true) {
						return next()
					}
					theirs = handGo(func() (context.Context, int64, error) {
						held, token, err := other.LockAndGetToken(handCtx(t))
						if err == nil {
							gotAt = time.Now()
							leave := in.enter(t, held, token)
							time.Sleep(time.Second) // what is late comes
							leave()
							err = other.Unlock(held)
						}
						return held, token, err
					})
					synctest.Wait()
					return test.fault(s, next)
				})
				_, took := s.until(t, met.Load)
				if took > test.unlock {
					t.Errorf("Unlock took %v", took)
				}
				began := time.Now()
				mine := <-s.call(t) // it may be first: both only know that the lock is free
				bhOK(t, mine.err)
				leave := in.enter(t, mine.ctx, mine.token)
				time.Sleep(time.Millisecond)
				leave()
				s.unlock(t, mine)
				got := <-theirs
				bhOK(t, got.err)
				if late := gotAt.Sub(began); late > free20 {
					t.Errorf("Inv8: the other client got the lock %v after Unlock", late)
				}
				mine = <-s.call(t)
				bhOK(t, mine.err)
				leave = in.enter(t, mine.ctx, mine.token)
				bhAsleep(10 * time.Second)
				bhOK(t, s.l.Check(mine.ctx))
				bhEqual(t, "fields", len(s.fields()), 1)
				leave()
				s.unlock(t, mine)
				s.free(t, 2*time.Second)
			})
		})
	}
}

// P3: Close gives up what is retained, Shutdown waits until it is, and an Unlock that retains it for a client that is closed
// meanwhile releases it.
func TestRetainAndClose(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *retainSite){
		"Close":    func(t *testing.T, s *retainSite) { bhOK(t, s.c.Close()) },
		"Shutdown": func(t *testing.T, s *retainSite) { bhOK(t, s.c.Shutdown(t.Context())) },
		"Shutdown, late": func(t *testing.T, s *retainSite) {
			s.retainLate(t)
			bhOK(t, s.c.Shutdown(t.Context()))
		},
		"Unlock after Close, and Redis hangs": func(t *testing.T, s *retainSite) {
			got := <-s.call(t)
			s.spy.wrap(func(ops []string, next func() error) error {
				if ops[0] != "retain" {
					time.Sleep(10 * time.Second)
					return next()
				}
				defer func() {
					go s.c.Close() // which waits for this very Unlock
					time.Sleep(1600 * time.Millisecond)
				}()
				return next()
			})
			began := time.Now()
			s.unlock(t, got)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("P12: Unlock took %v", took)
			}
			bhAsleep(10 * time.Second)
		},
		"Unlock after Close": func(t *testing.T, s *retainSite) {
			got := <-s.call(t)
			var once sync.Once
			s.spy.wrap(func(ops []string, next func() error) error {
				err := next()
				if ops[0] == "retain" {
					once.Do(func() {
						go s.c.Close() // which waits for this very Unlock
						time.Sleep(time.Millisecond)
					})
				}
				return err
			})
			s.unlock(t, got)
			bhEqual(t, "commands", s.spy.String(), "retain unlock")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb)
				s.retain(t)
				end(t, s)
				bhEqual(t, "left in Redis", len(s.fields()), 0)
				handFree(t, m, retainOver, s.c)
			})
		})
	}
}

// Inv1, Inv3: who took what was retained, and whose renewals fail, has lost it before another client gets it.
func TestRetainIsNotRenewed(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		other := s.other(t)
		s.retain(t)
		s.spy.wrap(func(ops []string, next func() error) error {
			if ops[0] == "renew" {
				return &net.OpError{Op: "write", Err: io.EOF}
			}
			return next()
		})
		got := <-s.call(t)
		bhOK(t, got.err)
		began := time.Now()
		held, err := other.Lock(handCtx(t))
		bhOK(t, err)
		bhIs(t, got.ctx.Err(), rlock.ErrLost)
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the other client got it after %v", took)
		}
		bhIs(t, s.l.Unlock(got.ctx), rlock.ErrLost)
		bhOK(t, other.Check(held))
		bhOK(t, other.Unlock(held))
		s.free(t, time.Minute)
	})
}

// Close ends the contexts of held locks at once, also where Redis does not answer to the release of what was retained.
func TestRetainCloseWhileRedisHangs(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		held, err := rlock.NewLock(s.c, "other").Lock(t.Context())
		bhOK(t, err)
		s.retain(t)
		s.spy.wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "unlock") {
				time.Sleep(3 * time.Second)
			}
			return next()
		})
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.c.Close()
		}()
		synctest.Wait()
		bhIs(t, held.Err(), rlock.ErrClosed)
		<-closed
		bhAsleep(10 * time.Second)
		bhEqual(t, "left in Redis", len(s.fields()), 0)
	})
}

// Inv9: the subscription of a client that has retained the lock ends also where the lock was gone when it gave it up: by
// itself, or as it was forced open.
func TestRetainLeavesNoSubscription(t *testing.T) {
	for name, happen := range map[string]func(s *retainSite){
		"released": func(*retainSite) {},
		"deleted":  func(s *retainSite) { s.m.Del("l") },
		"forced":   func(s *retainSite) { _, _ = s.l.ForceUnlock(context.Background()) },
		"cancelled": func(s *retainSite) {
			ctx, cancel := context.WithCancel(context.Background())
			_, _ = s.l.Lock(&endsLater{ctx, cancel, 0})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb)
				s.retainLate(t)
				happen(s)
				s.free(t, time.Minute)
			})
		})
	}
}
