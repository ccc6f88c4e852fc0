package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A store is a number with the tokens of the writes that it has accepted, in their order.
type store interface {
	read(token int64) (int, error)
	write(token int64, value int) error
	history() (value int, tokens []int64)
}

// memory is such a store in the process. Without a guard it accepts everything.
type memory struct {
	guard  *guard.Memory
	mu     sync.Mutex // used without a guard
	value  int
	tokens []int64
}

func (s *memory) do(token int64, what func()) error {
	if s.guard != nil { // which lets in one at a time
		return s.guard.Do(context.Background(), resource, token, func(context.Context) error { what(); return nil })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
	return nil
}

func (s *memory) read(token int64) (value int, err error) {
	err = s.do(token, func() { value = s.value })
	return value, err
}

func (s *memory) write(token int64, value int) error {
	return s.do(token, func() { s.value, s.tokens = value, append(s.tokens, token) })
}

func (s *memory) history() (int, []int64) { return s.value, s.tokens }

// inRedis is such a store in Redis.
type inRedis struct {
	t     testing.TB
	rdb   *redis.Client
	guard *redisguard.Guard // nil: accepts everything
}

const (
	log        = "log:{account:42}"
	writeValue = "redis.call('SET', KEYS[1], ARGV[2]) redis.call('RPUSH', KEYS[2], ARGV[1])"
)

func (s inRedis) read(token int64) (int, error) {
	cmd := s.rdb.Do
	if s.guard != nil {
		cmd = s.guard.Writer(resource, token).Do
	}
	value, err := cmd(context.Background(), "GET", key).Int()
	if err == redis.Nil {
		return 0, nil
	}
	return value, err
}

func (s inRedis) write(token int64, value int) error {
	cmd := s.rdb.Eval
	if s.guard != nil {
		cmd = s.guard.Writer(resource, token).Eval
	}
	if err := cmd(context.Background(), writeValue, []string{key, log}, token, value).Err(); err != redis.Nil {
		return err
	}
	return nil
}

func (s inRedis) history() (int, []int64) {
	s.t.Helper()
	value, err := s.rdb.Get(context.Background(), key).Int()
	locktest.NoError(s.t, err)
	var tokens []int64
	for _, text := range s.rdb.LRange(context.Background(), log, 0, -1).Val() {
		token, err := strconv.ParseInt(text, 10, 64)
		locktest.NoError(s.t, err)
		tokens = append(tokens, token)
	}
	return value, tokens
}

// violations is what is wrong with a history in which every accepted write has added 1 to what was read before it.
func violations(s store, accepted []int64) []string {
	var wrong []string
	value, tokens := s.history()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] < tokens[i-1] {
			wrong = append(wrong, fmt.Sprintf("stale: token %d was accepted after %d", tokens[i], tokens[i-1]))
		}
	}
	if value != len(accepted) {
		wrong = append(wrong, fmt.Sprintf("lost: %d writes were accepted, and their sum is %d", len(accepted), value))
	}
	told := slices.Sorted(slices.Values(accepted))
	if kept := slices.Sorted(slices.Values(tokens)); !slices.Equal(kept, told) {
		wrong = append(wrong, fmt.Sprintf("the writers were told of %v, the store has accepted %v", told, kept))
	}
	return wrong
}

// stores are the guarded ones, and the same with the guard taken out.
func stores() map[string]func(t *testing.T, guarded bool) store {
	return map[string]func(*testing.T, bool) store{
		"memory": func(_ *testing.T, guarded bool) store {
			if guarded {
				return &memory{guard: guard.NewMemory()}
			}
			return &memory{}
		},
		"redis": func(t *testing.T, guarded bool) store {
			rdb := redistest.New(t)
			if guarded {
				return inRedis{t, rdb, newGuard(t, rdb)}
			}
			return inRedis{t, rdb, nil}
		},
	}
}

// A writer takes a token, reads and writes, over and over.
type writer struct {
	token   int64 // 0: it has none
	hasRead bool
	value   int
	left    int // writes to go
}

// schedule lets many writers read and write in an order that the seed decides. Each may pause between any two steps for
// as long as all others take; whoever comes meanwhile gets the next token, as after the end of a lease.
func schedule(t *testing.T, s store, seed uint64, writers, writes int) (accepted []int64, refused int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	all := make([]*writer, writers)
	for i := range all {
		all[i] = &writer{left: writes}
	}
	token := int64(0)
	for len(all) > 0 {
		// Mostly the same one goes on, so that many get through.
		i := 0
		if rng.IntN(3) == 0 {
			i = rng.IntN(len(all))
			all[0], all[i] = all[i], all[0]
		}
		w := all[0]
		var err error
		switch {
		case w.token == 0:
			token++
			w.token, w.hasRead = token, false
		case !w.hasRead:
			w.value, err = s.read(w.token)
			w.hasRead = true
		default:
			if err = s.write(w.token, w.value+1); err == nil {
				accepted = append(accepted, w.token)
				if w.left--; w.left == 0 {
					all = all[1:]
				}
			}
			w.token = 0
		}
		if errors.Is(err, guard.ErrStale) {
			refused++
			w.token = 0
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return accepted, refused
}

// Inv4: not one stale write is accepted and no accepted write is lost, whatever the order; and without the guard the same
// orders show both.
func TestInv4_Writers(t *testing.T) {
	for name, newStore := range stores() {
		t.Run(name, func(t *testing.T) {
			refused := 0
			caught := map[string]int{}
			for seed := range uint64(8) {
				guarded := newStore(t, true)
				accepted, n := schedule(t, guarded, seed, 8, 10)
				refused += n
				if wrong := violations(guarded, accepted); len(wrong) > 0 || len(accepted) != 80 {
					t.Errorf("seed %d: %d accepted: %s", seed, len(accepted), strings.Join(wrong, "\n"))
				}
				plain := newStore(t, false)
				accepted, _ = schedule(t, plain, seed, 8, 10)
				for _, wrong := range violations(plain, accepted) {
					kind, _, _ := strings.Cut(wrong, ":")
					caught[kind]++
				}
			}
			if refused < 8 || caught["stale"] < 8 || caught["lost"] != 8 {
				t.Errorf("%d refused, without the guard %v: this test shows nothing", refused, caught)
			}
		})
	}
}

// crowd are goroutines that write under a real lock. One that pauses loses it, and waits until others have written or all
// the others pause too.
type crowd struct {
	mu      sync.Mutex
	changed *sync.Cond
	running int
	written int
}

func (c *crowd) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changed.Broadcast()
}

func (c *crowd) pause(writes int) {
	c.update(func() { c.running-- })
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.written + writes; c.written < until && c.running > 0; {
		c.changed.Wait()
	}
	c.running++
}

// race runs the crowd, and returns the tokens of the writes that it was told are done.
func race(t *testing.T, s store, seed uint64) (accepted []int64, refused int) {
	t.Helper()
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	defer func() { locktest.NoError(t, client.Close()) }()
	lock := fenced.NewLock(client, resource)
	c := &crowd{running: 6}
	c.changed = sync.NewCond(&c.mu)
	section := func(rng *rand.Rand) error {
		held, token, err := lock.LockLeaseAndGetToken(t.Context(), time.Minute)
		if err != nil {
			return err
		}
		value, err := s.read(token)
		if err == nil {
			if rng.IntN(3) == 0 {
				if _, err := lock.ForceUnlock(t.Context()); err != nil {
					return err
				}
				c.pause(1 + rng.IntN(3))
			}
			err = s.write(token, value+1)
		}
		c.update(func() {
			c.written++
			if err == nil {
				accepted = append(accepted, token)
			} else if errors.Is(err, guard.ErrStale) {
				refused++
				err = nil
			}
		})
		if unlocked := lock.Unlock(held); !errors.Is(unlocked, rlock.ErrLost) {
			err = errors.Join(err, unlocked)
		}
		return err
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			defer c.update(func() { c.running-- })
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 20 {
				if err := section(rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return accepted, refused
}

// The same with goroutines under a real lock that is forced open while its holder pauses.
func TestInv4_WritersUnderALock(t *testing.T) {
	for name, newStore := range stores() {
		t.Run(name, func(t *testing.T) {
			guarded := newStore(t, true)
			accepted, refused := race(t, guarded, 1)
			if wrong := violations(guarded, accepted); len(wrong) > 0 {
				t.Error(strings.Join(wrong, "\n"))
			}
			if len(accepted)+refused != 120 || refused == 0 {
				t.Errorf("%d accepted, %d refused", len(accepted), refused)
			}
			plain := newStore(t, false)
			accepted, _ = race(t, plain, 1)
			if wrong := violations(plain, accepted); len(wrong) < 2 {
				t.Errorf("without the guard: %s: this test shows nothing", wrong)
			}
		})
	}
}
