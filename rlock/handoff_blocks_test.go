package rlock_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// withBlocks runs a test with a client whose fenced lock "l" has token blocks.
func withBlocks(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock), opts ...rlock.Option) {
	t.Helper()
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, opts...)
		test(t, m, locktest.SpyOn(rdb), c, fenced.NewLock(c, "l", fenced.WithTokenBlocks()))
	})
}

// Tokens of a block are as many as there are waiters, and each is used by one of them, in order, without a command.
func TestBlocksAreUsedInOrder(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		const n = 20
		first := takeToken(t, l, t.Context(), 1)
		var in section
		done := queueUp(n, func(i int) {
			held, token, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			leave := in.enter(t, held, token)
			if token != int64(i+2) {
				t.Errorf("waiter %d has token %d", i, token)
			}
			if i == 0 {
				locktest.Equal(t, "the counter", fmt.Sprint(mustGet(m, tokenKey)), fmt.Sprint(n+1)) // no more than there are waiters
			}
			if count, err := l.HoldCount(held); count != 1 || err != nil {
				t.Errorf("hold count %d, %v", count, err)
			}
			leave()
			if err := l.Unlock(held); err != nil {
				t.Error(err)
			}
			if count, err := l.HoldCount(held); count != 0 || err != nil {
				t.Errorf("hold count of the former holder %d, %v", count, err)
			}
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		done()
		synctest.Wait()
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		locktest.Equal(t, "releases", spy.Count("unlock"), 1)
		locktest.Equal(t, "acquires", spy.Count("acquire"), 0)
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// Inv2: tokens are reserved for goroutines that come back, and those that are left over when they do not are given back:
// in the end as many tokens were taken as there were holds.
func TestBlocksGiveBackWhatIsLeft(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		const n, rounds = 10, 5
		var most atomic.Int64
		first := takeToken(t, l, t.Context(), 1)
		done := queueUp(n, func(int) {
			for range rounds {
				held, token, err := l.LockAndGetToken(longContext(t))
				locktest.NoError(t, err)
				if counter, err := strconv.ParseInt(mustGet(m, tokenKey), 10, 64); err == nil {
					most.Store(max(most.Load(), counter-token))
				}
				time.Sleep(100 * time.Microsecond)
				if err := l.Unlock(held); err != nil {
					t.Error(err)
				}
			}
		})
		locktest.NoError(t, l.Unlock(first))
		done()
		synctest.Wait()
		locktest.Equal(t, "the counter", mustGet(m, tokenKey), fmt.Sprint(1+n*rounds))
		if most.Load() <= n {
			t.Errorf("no more than %d tokens were ahead at any time: none was reserved for those who come back", most.Load())
		}
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

func mustGet(m *miniredis.Miniredis, key string) string {
	v, _ := m.Get(key)
	return v
}

// Inv1, Inv2: clients with the option and one without share a lock.
func TestBlocksOfSeveralClients(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		link := &slowLink{way: 100 * time.Microsecond}
		var in section
		var all sync.WaitGroup
		var clients []*rlock.Client
		for i := range 3 {
			c := newClient(t, link.redis(t, m))
			clients = append(clients, c)
			var opts []fenced.Option
			if i > 0 {
				opts = append(opts, fenced.WithTokenBlocks())
			}
			l := fenced.NewLock(c, "l", opts...)
			for j := range 6 {
				all.Go(func() {
					for k := range 30 {
						held, token, err := l.LockAndGetToken(longContext(t))
						if err != nil {
							t.Error(err)
							return
						}
						leave := in.enter(t, held, token)
						time.Sleep(time.Duration((i*j*k)%3) * 300 * time.Microsecond)
						leave()
						if err := l.Unlock(held); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		locktest.Equal(t, "holds", len(in.tokens), 3*6*30)
		if counter := mustGet(m, tokenKey); counter != fmt.Sprint(3*6*30) {
			t.Logf("%s tokens for %d holds", counter, 3*6*30)
		}
		wantFree(t, m, 100*time.Millisecond, clients...)
	})
}

// P9: a re-entry in the middle of a block takes a token above all that are reserved, and ends the block.
func TestBlocksEndWithAReentry(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		first := takeToken(t, l, t.Context(), 1)
		var tokens []int64
		done := queueUp(6, func(i int) {
			held, token, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			tokens = append(tokens, token)
			if i == 2 {
				reserved, err := strconv.ParseInt(mustGet(m, tokenKey), 10, 64)
				locktest.NoError(t, err)
				inner, token, err := l.LockAndGetToken(held)
				locktest.NoError(t, err)
				if token <= reserved {
					t.Errorf("the re-entry has token %d, and up to %d are reserved", token, reserved)
				}
				tokens = append(tokens, token)
				if now, err := l.Token(held); err != nil || now != token {
					t.Errorf("the current token is %v, %v; want %d", now, err, token)
				}
				locktest.NoError(t, l.Unlock(inner))
			}
			locktest.NoError(t, l.Unlock(held))
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		done()
		if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != 7 {
			t.Errorf("tokens %v", tokens)
		}
		locktest.Equal(t, "transfers", spy.Count("transfer"), 2)
		locktest.Sleep(time.Millisecond)
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// P9: an acquire that took its tokens and was answered too late is repeated when more, or fewer, wait behind it: no
// token comes twice.
func TestBlocksRepeatedAcquire(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, later int // waiters behind it when it asks, and when it asks again
		late          func(lease time.Duration, next func() error) error
	}{
		{"more wait, answered late", 0, 3, func(lease time.Duration, next func() error) error {
			time.Sleep(lease + 5*time.Millisecond)
			return next()
		}},
		{"fewer wait, answered late", 3, 0, func(lease time.Duration, next func() error) error {
			time.Sleep(lease + 5*time.Millisecond)
			return next()
		}},
		{"more wait, not answered", 0, 3, func(_ time.Duration, next func() error) error { _ = next(); return io.EOF }},
		{"fewer wait, not answered", 3, 0, func(_ time.Duration, next func() error) error { _ = next(); return io.EOF }},
		{"more wait, answered at the deadline", 0, 3, func(lease time.Duration, next func() error) error {
			time.Sleep(lease / 2)
			err := next()
			time.Sleep(lease/2 - time.Millisecond)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				const lease = 200 * time.Millisecond
				var opts []rlock.Option
				c := newClient(t, rdb, opts...)
				l := fenced.NewLock(c, "l", fenced.WithTokenBlocks())
				other := fenced.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
				theirs := takeToken(t, other, t.Context(), 1)
				theirs2, token, err := other.LockAndGetToken(theirs)
				locktest.NoError(t, err)
				locktest.NoError(t, other.Unlock(theirs2))
				var in section
				in.most = token
				spy := locktest.SpyOn(rdb)
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				wait := func(ctx context.Context) func(int) {
					return func(int) {
						held, token, err := l.LockLeaseAndGetToken(ctx, lease)
						if err != nil {
							locktest.IsError(t, err, context.Canceled)
							return
						}
						in.enter(t, held, token)()
						_ = l.Unlock(held)
					}
				}
				leader := queueUp(1, wait(longContext(t)))
				behind := queueUp(test.before, wait(ctx))
				locktest.Sleep(10 * time.Millisecond)
				armed := true
				spy.Wrap(func(ops []string, next func() error) error {
					if armed && ops[0] == "acquire" {
						armed = false
						return test.late(lease, next)
					}
					return next()
				})
				locktest.NoError(t, other.Unlock(theirs))
				synctest.Wait()
				giveUp()
				later := queueUp(test.later, wait(longContext(t)))
				leader()
				behind()
				later()
				locktest.Sleep(time.Second)
				if armed {
					t.Error("no acquire was held up")
				}
				locktest.Equal(t, "holds", len(in.tokens), 1+test.later)
				wantFree(t, m, time.Second, c)
			})
		})
	}
}

// A block is used for 5 ms; then Redis must have been asked, also where it does not answer who asked ahead.
func TestBlocksAgeSoon(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("reserve hangs ", hangs), func(t *testing.T) {
			withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
				first := takeToken(t, l, t.Context(), 1)
				var asked atomic.Int64
				spy.Wrap(func(ops []string, next func() error) error {
					switch ops[0] {
					case "reserve":
						if hangs {
							time.Sleep(50 * time.Millisecond)
							return next()
						}
						fallthrough
					case "transfer", "acquire":
						asked.Store(time.Now().UnixNano())
					}
					return next()
				})
				last := int64(1)
				done := queueUp(12, func(i int) {
					held, token, err := l.LockAndGetToken(longContext(t))
					locktest.NoError(t, err)
					if age := time.Since(time.Unix(0, asked.Load())); age > 5*time.Millisecond {
						t.Errorf("waiter %d got the lock %v after Redis was asked", i, age)
					}
					if token <= last {
						t.Errorf("token %d after %d", token, last)
					}
					last = token
					time.Sleep(2 * time.Millisecond)
					locktest.NoError(t, l.Unlock(held))
				})
				spy.Reset()
				locktest.NoError(t, l.Unlock(first))
				done()
				if n := spy.Count("transfer") + spy.Count("acquire") + spy.Count("reserve"); n < 4 || n > 12 {
					t.Errorf("Redis was asked %d times for 12 holds of 2 ms: %v", n, spy)
				}
				wantFree(t, m, 100*time.Millisecond, c)
				time.Sleep(time.Second) // what hangs ends
			})
		})
	}
}

// A waiter with another lease, or without the option, is not given a token of the block, nor those behind it.
func TestBlocksEndAtAnotherKindOfWaiter(t *testing.T) {
	for _, kind := range []string{"lease", "option", "unfenced"} {
		t.Run(kind, func(t *testing.T) {
			withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
				first := takeToken(t, l, t.Context(), 1)
				var in section
				var asked []int // how often, at each hold
				done := queueUp(5, func(i int) {
					var held context.Context
					var token int64
					var err error
					switch {
					case i != 2:
						held, token, err = l.LockAndGetToken(longContext(t))
					case kind == "lease":
						held, token, err = l.LockLeaseAndGetToken(longContext(t), 10*time.Second)
						locktest.Equal(t, "TTL", m.TTL("l"), 10*time.Second)
					case kind == "option":
						held, token, err = fenced.NewLock(c, "l").LockAndGetToken(longContext(t))
					default:
						held, err = rlock.NewLock(c, "l").Lock(longContext(t))
					}
					locktest.NoError(t, err)
					asked = append(asked, spy.Count("transfer")+spy.Count("acquire"))
					in.enter(t, held, token)()
					locktest.NoError(t, l.Unlock(held))
				})
				spy.Reset()
				locktest.NoError(t, l.Unlock(first))
				done()
				if asked[1] != asked[0] || asked[2] == asked[1] || asked[3] == asked[2] {
					t.Errorf("Redis had been asked so often at each hold: %v; want it for the third and the fourth", asked)
				}
				wantFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// Inv2: a stranger takes the lock in the middle of a block, after it was forced open or deleted: whoever has the block's
// tokens then has older ones than the stranger, hears of the loss when Redis is asked next, and the stranger keeps the
// lock.
func TestBlocksForcedOpen(t *testing.T) {
	for forced := range 3 {
		t.Run(fmt.Sprint("at hold ", forced), func(t *testing.T) {
			withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
				other := newClient(t, redistest.PipeClient(t, m))
				theirs := fenced.NewLock(other, "l")
				first := takeToken(t, l, t.Context(), 1)
				var in section
				var stranger context.Context
				var above int64
				lost := 0
				wait := func(i int) {
					held, token, err := l.LockAndGetToken(longContext(t))
					locktest.NoError(t, err)
					in.enter(t, held, token)()
					if i == forced {
						freed, err := theirs.ForceUnlock(t.Context())
						locktest.NoError(t, err)
						locktest.Equal(t, "freed", freed, true)
						stranger, above, err = theirs.LockAndGetToken(longContext(t))
						locktest.NoError(t, err)
					}
					if i > forced && theirs.Check(stranger) == nil && token >= above {
						t.Errorf("waiter %d has token %d, the stranger %d", i, token, above)
					}
					time.Sleep(10 * time.Microsecond) // what was sent meanwhile is answered
					if err := l.Unlock(held); err != nil {
						locktest.IsError(t, err, rlock.ErrLost)
						lost++
						locktest.NoError(t, theirs.Check(stranger))
						fields, _ := m.HKeys("l")
						fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasSuffix(f, "#") }) // P36
						locktest.Equal(t, "holds", len(fields), 1)
						locktest.NoError(t, theirs.Unlock(stranger))
					}
				}
				done := queueUp(5, wait)
				unlocked := locktest.Start(func() error { return l.Unlock(first) })
				late := queueUp(4, func(i int) { wait(5 + i) }) // these are not in the first block
				locktest.NoError(t, <-unlocked)
				done()
				late()
				locktest.Equal(t, "holders who heard of the loss", lost, 1)
				wantFree(t, m, 200*time.Millisecond, c, other)
			})
		})
	}
}

// Inv8, P3: a waiter that gives up at the moment in which it is granted the lock frees it at once.
func TestBlocksGrantedWaiterGivesUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		other := newClient(t, redistest.PipeClient(t, m))
		theirs := fenced.NewLock(other, "l")
		gaveUp := 0
		for i := range 300 {
			first, _, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			one := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
			synctest.Wait()
			ctx, giveUp := context.WithCancel(t.Context())
			two := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(ctx) })
			synctest.Wait()
			spy.Reset()
			locktest.NoError(t, l.Unlock(first))
			got := <-one
			locktest.NoError(t, got.Err)
			synctest.Wait()
			switch i % 3 {
			case 0:
				locktest.NoError(t, l.Unlock(got.Ctx))
				giveUp() // before the one who was granted the lock has run
			case 1:
				go giveUp()
				locktest.NoError(t, l.Unlock(got.Ctx))
			default:
				unlocked := locktest.Start(func() error { return l.Unlock(got.Ctx) })
				giveUp()
				locktest.NoError(t, <-unlocked)
			}
			freed := time.Now()
			if got := <-two; got.Err == nil {
				locktest.NoError(t, l.Unlock(got.Ctx))
			} else {
				gaveUp++
			}
			held, _, err := theirs.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			if late := time.Since(freed); late > 25*time.Millisecond {
				t.Errorf("another client waited %v for a free lock", late)
			}
			locktest.NoError(t, theirs.Unlock(held))
			giveUp()
			locktest.Sleep(30 * time.Millisecond)
		}
		t.Logf("%d of 300 gave up", gaveUp)
		wantFree(t, m, 200*time.Millisecond, c, other)
	})
}

// P3: the same during Shutdown, of a server that is well: nothing stays in Redis, not even until the end of the lease.
func TestBlocksGrantedWaiterGivesUpDuringShutdown(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range 20 {
		withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
			first := takeToken(t, l, t.Context(), 1)
			one := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
			synctest.Wait()
			ctx, giveUp := context.WithCancel(t.Context())
			two := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(ctx) })
			synctest.Wait()
			locktest.NoError(t, l.Unlock(first))
			got := <-one
			locktest.NoError(t, got.Err)
			synctest.Wait()
			locktest.NoError(t, l.Unlock(got.Ctx))
			down := make(chan error, 1)
			if i%2 == 0 {
				go func() { down <- c.Shutdown(t.Context()) }()
				giveUp()
			} else {
				go giveUp()
				go func() { down <- c.Shutdown(t.Context()) }()
			}
			if got := <-two; got.Err == nil {
				locktest.NoError(t, l.Unlock(got.Ctx))
			}
			locktest.NoError(t, <-down)
			giveUp()
			wantFree(t, m, time.Second, c)
		})
		if t.Failed() {
			t.Fatalf("round %d", i)
		}
	}
}

// Shutdown at the moment of a grant waits for the hold that it makes.
func TestBlocksGrantDuringShutdown(t *testing.T) {
	for i := range 60 {
		withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
			first := takeToken(t, l, t.Context(), 1)
			one := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
			synctest.Wait()
			two := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
			synctest.Wait()
			locktest.NoError(t, l.Unlock(first))
			got := <-one
			locktest.NoError(t, got.Err)
			synctest.Wait()
			locktest.NoError(t, l.Unlock(got.Ctx))
			down := locktest.Start(func() error { return c.Shutdown(t.Context()) })
			got = <-two
			locktest.NoError(t, got.Err)
			locktest.NothingComes(t, down, time.Millisecond, "Shutdown is done although a lock is held")
			locktest.NoError(t, l.Check(got.Ctx))
			locktest.NoError(t, l.Unlock(got.Ctx))
			locktest.NoError(t, <-down)
			wantFree(t, m, 100*time.Millisecond, c)
		})
		if t.Failed() {
			t.Fatalf("round %d", i)
		}
	}
}

// P3: a waiter whose own acquire got no answer is granted the lock by a block instead: what it asked for is released all
// the same, when it arrives.
func TestBlocksGrantToAWaiterInDoubt(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithPollInterval(time.Millisecond))
		for _, name := range []string{"acquire", "wait", "try"} { // the attempt that comes late is sent by its digest
			locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText(name)).Err())
		}
		spy, l := locktest.SpyOn(rdb), fenced.NewLock(c, "l", fenced.WithTokenBlocks())
		first := takeToken(t, l, t.Context(), 1)
		one := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
		synctest.Wait()
		two := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
		synctest.Wait()
		late := make(chan func() error, 1)
		spy.Wrap(func(ops []string, next func() error) error {
			if ops[0] == "acquire" && len(late) == 0 {
				late <- next
				return os.ErrDeadlineExceeded // and not EOF: after that the client looks whether another server has taken over (P38)
			}
			return next()
		})
		locktest.NoError(t, l.Unlock(first))
		got := <-one
		locktest.NoError(t, got.Err)
		locktest.Sleep(2 * time.Millisecond) // two looks, and its connection breaks
		if len(late) == 0 {
			t.Fatal("the waiter did not look: this test no longer shows anything")
		}
		locktest.NoError(t, l.Unlock(got.Ctx))
		got = <-two
		locktest.NoError(t, got.Err)
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1) // it was granted
		locktest.NoError(t, l.Unlock(got.Ctx))
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, (<-late)()) // the acquire that was lost arrives
		for range 110 {                 // until a third of the lease, which is 30 s
			if time.Sleep(100 * time.Millisecond); !m.Exists("l") {
				break
			}
		}
		if m.Exists("l") {
			t.Error("P3: a lock that nobody has, until the end of its lease")
		}
		wantFree(t, m, 45*time.Second, c)
	})
}

// A long section at the end of a block is renewed as any other.
func TestBlocksAreRenewed(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		first := takeToken(t, l, t.Context(), 1)
		done := queueUp(3, func(i int) {
			held, token, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			if i == 2 {
				for range 20 {
					time.Sleep(10 * time.Second)
					locktest.NoError(t, l.Check(held))
					if now, err := l.Token(held); now != token || err != nil {
						t.Errorf("token %v, %v", now, err)
					}
					if m.TTL("l") < 15*time.Second {
						t.Errorf("TTL %v", m.TTL("l"))
					}
				}
			}
			locktest.NoError(t, l.Unlock(held))
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		done()
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// Inv3: the lease of a hold that was granted counts from when the block was reserved.
func TestBlocksDeadline(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		const lease = 100 * time.Millisecond
		first, err := l.LockLease(longContext(t), lease)
		locktest.NoError(t, err)
		done := queueUp(2, func(i int) {
			held, err := l.LockLease(longContext(t), lease)
			locktest.NoError(t, err)
			if i == 0 {
				time.Sleep(4 * time.Millisecond)
				locktest.NoError(t, l.Unlock(held))
				return
			}
			<-held.Done()
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			if !m.Exists("l") {
				t.Error("the lease was over in Redis before the context was")
			}
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		done()
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		wantFree(t, m, 200*time.Millisecond, c)
	})
}
