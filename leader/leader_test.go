package leader_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 4)) }

// process returns an election as another process would have it: with a client of its own.
func process(t *testing.T, rdb *redis.Client, opts ...leader.Option) (*leader.Election, *fenced.Lock) {
	t.Helper()
	client, err := rlock.New(rdb, rlock.WithPresence("worker"))
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	lock := fenced.NewLock(client, "scheduler")
	e, err := leader.New(lock, opts...)
	locktest.NoError(t, err)
	return e, lock
}

// campaign is Campaign in the background.
func campaign(t *testing.T, e *leader.Election) <-chan *leader.Term {
	led := make(chan *leader.Term, 1)
	go func() {
		term, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		led <- term
	}()
	return led
}

// One process leads at a time, whatever becomes of the context of its campaign. The next one has a larger token.
func TestOneLeads(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, _ := process(t, rdb)
		b, _ := process(t, redistest.PipeClient(t, m))
		ctx, cancel := context.WithCancel(t.Context())
		first, err := a.Campaign(ctx)
		locktest.NoError(t, err)
		cancel()
		began := time.Now()
		next := campaign(t, b)
		<-first.Waited()
		locktest.Sleep(time.Hour)
		locktest.NoError(t, first.Err())
		locktest.Equal(t, "it leads since", first.Since(), began)
		locktest.NoError(t, first.StepDown(ctx)) // which has ended
		<-first.Done()
		locktest.IsError(t, first.Err(), rlock.ErrUnlocked)
		locktest.IsError(t, context.Cause(first.Context()), rlock.ErrUnlocked)
		locktest.IsError(t, first.StepDown(t.Context()), rlock.ErrNotHeld)
		second := <-next
		if second.Token() <= first.Token() {
			t.Errorf("the token %d after %d", second.Token(), first.Token())
		}
		locktest.NoError(t, second.StepDown(t.Context()))
	})
}

// A process that has lost a term does not campaign before its pause is over, and another one leads.
func TestPauseAfterALoss(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, lock := process(t, rdb, leader.WithPause(time.Minute))
		term, err := a.Campaign(t.Context())
		locktest.NoError(t, err)
		_, err = lock.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		<-term.Done()
		locktest.IsError(t, term.Err(), rlock.ErrLost)
		locktest.IsError(t, term.StepDown(t.Context()), rlock.ErrLost)
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.Campaign(short)
		locktest.IsError(t, err, context.DeadlineExceeded)
		term, err = a.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "it leads again after", time.Since(began), time.Minute)
		locktest.NoError(t, term.StepDown(t.Context()))
		began = time.Now()
		term, err = a.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "after a term that was given up", time.Since(began), 0)
		locktest.NoError(t, term.StepDown(t.Context()))
	})
}

// Run leads again after a term that was lost, with a context that says why it has ended, and ends when lead returns by itself.
func TestRun(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		e, lock := process(t, rdb, leader.WithLogger(log.Logger()))
		var tokens []int64
		done := errors.New("lead is done")
		ended := locktest.Start(func() error {
			return e.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
				tokens = append(tokens, term.Token())
				switch len(tokens) {
				case 1:
					<-ctx.Done()
					locktest.IsError(t, context.Cause(ctx), rlock.ErrLost)
					return errors.New("a write was refused")
				case 2:
					locktest.NoError(t, term.StepDown(ctx))
					<-ctx.Done()
					locktest.IsError(t, context.Cause(ctx), rlock.ErrUnlocked)
					return ctx.Err()
				}
				return done
			})
		})
		synctest.Wait()
		_, err := lock.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, <-ended, done)
		locktest.Equal(t, "terms", len(tokens), 3)
		if tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Errorf("tokens %v", tokens)
		}
		locktest.Equal(t, "the lock is taken", m.Exists("scheduler"), false)
		for part, times := range map[string]int{"this process leads": 3, "the term was lost": 1, "a write was refused": 1, "steps down": 2} {
			locktest.Equal(t, part, log.Count(part), times)
		}
	})
}

// Run ends with its context, after lead has returned, and the next process leads at once.
func TestRunEndsWithItsContext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, _ := process(t, rdb)
		b, _ := process(t, redistest.PipeClient(t, m))
		stop := errors.New("the process shuts down")
		ctx, cancel := context.WithCancelCause(t.Context())
		returned := false
		ended := locktest.Start(func() error {
			return a.Run(ctx, func(ctx context.Context, term *leader.Term) error {
				<-ctx.Done()
				locktest.IsError(t, context.Cause(ctx), stop)
				locktest.NoError(t, term.Err()) // it leads until it has returned
				time.Sleep(time.Second)
				returned = true
				return ctx.Err()
			})
		})
		synctest.Wait()
		next := campaign(t, b)
		locktest.Sleep(time.Minute)
		cancel(stop)
		term := <-next
		locktest.Equal(t, "lead has returned", returned, true)
		locktest.IsError(t, <-ended, stop)
		waits := locktest.Start(func() error { return a.Run(ctx, func(context.Context, *leader.Term) error { return nil }) })
		locktest.IsError(t, <-waits, stop)
		locktest.NoError(t, term.StepDown(t.Context()))
	})
}

// With WithTurns terms go round, and a term lasts for as long as nobody waits.
func TestTurns(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		var terms [2]atomic.Int64
		var leads atomic.Int64
		var ended []<-chan error
		start := func(i int, rdb *redis.Client) {
			e, _ := process(t, rdb, leader.WithTurns(time.Minute))
			ended = append(ended, locktest.Start(func() error {
				return e.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					terms[i].Add(1)
					locktest.Equal(t, "others lead", leads.Add(1), 1)
					<-ctx.Done()
					leads.Add(-1)
					return ctx.Err()
				})
			}))
		}
		start(0, rdb)
		locktest.Sleep(time.Hour)
		locktest.Equal(t, "terms alone", terms[0].Load(), 1)
		start(1, redistest.PipeClient(t, m))
		locktest.Sleep(time.Hour)
		for i := range terms {
			if n := terms[i].Load(); n < 29 || n > 32 {
				t.Errorf("process %d has led %d times in an hour", i, n)
			}
		}
		cancel()
		for _, one := range ended {
			locktest.IsError(t, <-one, context.Canceled)
		}
	})
}

// Run tries again while Redis is away, and ends when the client is closed.
func TestRunWhileRedisIsAway(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client, err := rlock.New(rdb)
		locktest.NoError(t, err)
		var log locktest.Log
		e, err := leader.New(fenced.NewLock(client, "scheduler"), leader.WithLogger(log.Logger()))
		locktest.NoError(t, err)
		m.SetError("LOADING away")
		led := make(chan struct{})
		ended := locktest.Start(func() error {
			return e.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
				close(led)
				<-ctx.Done()
				return term.StepDown(t.Context())
			})
		})
		locktest.Sleep(time.Minute)
		if n := log.Count("the campaign failed"); n < 4 || n > 7 {
			t.Errorf("%d campaigns have failed in a minute", n)
		}
		m.SetError("")
		<-led
		locktest.NoError(t, client.Close())
		locktest.IsError(t, <-ended, rlock.ErrClosed)
	})
}

// A panic in lead steps down, and goes on.
func TestAPanicStepsDown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, _ := process(t, rdb)
		defer func() {
			locktest.Equal(t, "the panic", recover(), any("oops"))
			locktest.Equal(t, "the lock is taken", m.Exists("scheduler"), false)
		}()
		_ = e.Run(t.Context(), func(context.Context, *leader.Term) error { panic("oops") })
	})
}

// Who tells who leads, and since when.
func TestWho(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in, err := inspect.New(redistest.PipeClient(t, m))
		locktest.NoError(t, err)
		_, leads, err := leader.Who(t.Context(), in, "scheduler")
		locktest.NoError(t, err)
		locktest.Equal(t, "somebody leads", leads, false)
		e, _ := process(t, rdb)
		term, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Minute)
		who, leads, err := leader.Who(t.Context(), in, "scheduler")
		locktest.NoError(t, err)
		locktest.Equal(t, "somebody leads", leads, true)
		locktest.Equal(t, "its name", who.Name, "worker")
		locktest.Equal(t, "its process", who.PID, os.Getpid())
		locktest.Equal(t, "its token", who.Token, term.Token())
		if who.For < 50*time.Second || who.For > time.Minute || who.Host == "" || who.Client == "" {
			t.Errorf("it is %+v", who)
		}
		locktest.NoError(t, term.StepDown(t.Context()))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = leader.Who(ended, in, "scheduler")
		locktest.IsError(t, err, context.Canceled)
	})
}

// Bad input is an error that says what to do.
func TestBadInput(t *testing.T) {
	client, err := rlock.New(redistest.New(t))
	locktest.NoError(t, err)
	defer func() { _ = client.Close() }()
	lock := fenced.NewLock(client, "l")
	_, err = leader.New(nil)
	locktest.ErrorSays(t, err, "fenced.NewLock")
	for says, opt := range map[string]leader.Option{
		"leave it out":      nil,
		"use 0 to 24 h":     leader.WithPause(-1),
		"a millisecond":     leader.WithTurns(0),
		"leave the option":  leader.WithTurns(-time.Second),
		"slog.DiscardHandl": leader.WithLogger(nil),
	} {
		_, err := leader.New(lock, opt)
		locktest.ErrorSays(t, err, "leader: New", says)
	}
	e, err := leader.New(lock)
	locktest.NoError(t, err)
	locktest.ErrorSays(t, e.Run(t.Context(), nil), "lead is nil")
}
