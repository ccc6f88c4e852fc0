package leader_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// warnings are the log's records of this level and above.
func warnings(log *locktest.Log) (texts []string) {
	for _, r := range log.Records() {
		if r.Level >= slog.LevelWarn {
			texts = append(texts, r.Message)
		}
	}
	return texts
}

// A lost term is one warning in a log that the client and the election share, whatever lead returns then, and whoever finds the loss.
func TestALostTermIsOneWarning(t *testing.T) {
	for name, lead := range map[string]func(ctx context.Context, term *leader.Term, lose func()) error{
		"lead returns the end of its context": func(ctx context.Context, _ *leader.Term, lose func()) error { lose(); <-ctx.Done(); return ctx.Err() },
		"lead returns its cause": func(ctx context.Context, _ *leader.Term, lose func()) error {
			lose()
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"lead steps down": func(ctx context.Context, term *leader.Term, lose func()) error {
			lose()
			<-ctx.Done()
			return term.StepDown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				log, terms := runTwice(t, rdb, func(ctx context.Context, term *leader.Term, lock *fenced.Lock) error {
					return lead(ctx, term, func() {
						_, err := lock.ForceUnlock(t.Context())
						locktest.NoError(t, err)
					})
				})
				locktest.DeepEqual(t, "warnings", warnings(log), []string{"rlock: lock lost"})
				locktest.Equal(t, "says that the term was lost", log.Count("leader: the term was lost"), 1)
				locktest.Equal(t, "terms", terms, 2)
			})
		})
	}
	t.Run("found by the release at the end of a turn", func(t *testing.T) {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			ctx, end := context.WithCancel(t.Context())
			var log locktest.Log
			e, _ := logging(t, rdb, &log)
			done := locktest.Start(func() error {
				return e.Run(ctx, func(ctx context.Context, term *leader.Term) error { <-ctx.Done(); return ctx.Err() })
			})
			synctest.Wait()
			m.Del("scheduler") // and nobody has heard of it
			end()
			locktest.IsError(t, <-done, context.Canceled)
			locktest.DeepEqual(t, "warnings", warnings(&log), []string{"leader: the term was lost"})
		})
	})
}

// A StepDown of lead's own is told without the words of an error, and is no warning.
func TestAStepDownIsNoFault(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		log, _ := runTwice(t, rdb, func(ctx context.Context, term *leader.Term, _ *fenced.Lock) error {
			locktest.NoError(t, term.StepDown(ctx))
			<-ctx.Done()
			return ctx.Err()
		})
		locktest.Equal(t, "warnings", len(warnings(log)), 0)
		locktest.Equal(t, "says why", log.Count("this process steps down lock=scheduler token=1 why=lead called StepDown"), 1)
		locktest.Equal(t, "the words of an error", log.Count("used after"), 0)
	})
}

// logging returns an election whose client has the same log.
func logging(t *testing.T, rdb *redis.Client, log *locktest.Log, opts ...fenced.Option) (*leader.Election, *fenced.Lock) {
	t.Helper()
	client, err := rlock.New(rdb, rlock.WithLogger(log.Logger()))
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	lock := fenced.NewLock(client, "scheduler", opts...)
	e, err := leader.New(lock, leader.WithLogger(log.Logger()))
	locktest.NoError(t, err)
	return e, lock
}

// runTwice is Run with lead, and another term after that, which ends it. It returns the log, and how many terms there were.
func runTwice(t *testing.T, rdb *redis.Client, lead func(ctx context.Context, term *leader.Term, lock *fenced.Lock) error) (log *locktest.Log, terms int) {
	t.Helper()
	log = &locktest.Log{}
	e, lock := logging(t, rdb, log)
	locktest.NoError(t, e.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
		if terms++; terms > 1 {
			return nil
		}
		return lead(ctx, term, lock)
	}))
	synctest.Wait()
	return log, terms
}

// After Redis has lost the counter of tokens a term whose token is not larger than that of the one before is told of once, and with a floor no term.
func TestALostCounterIsToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []fenced.Option
		terms int // before the loss
		told  []string
	}{
		"a smaller token": {nil, 3, []string{"lock=scheduler token=1 last token=3"}},
		"the same token":  {nil, 1, []string{"lock=scheduler token=1 last token=1"}},
		"a floor":         {[]fenced.Option{fenced.WithClockFloor()}, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var log locktest.Log
				e, _ := logging(t, rdb, &log, c.opts...)
				lead := func(terms int) {
					for range terms {
						term, err := e.Campaign(t.Context())
						locktest.NoError(t, err)
						locktest.NoError(t, term.StepDown(t.Context()))
					}
				}
				lead(c.terms)
				locktest.Sleep(time.Second)
				m.FlushAll()
				lead(3)
				const says = "leader: this term's token is not larger than that of the last one: Redis has lost the counter of tokens, and guards refuse this leader. " +
					"Set the counter, and make the lock with fenced.WithClockFloor "
				var want []string
				for _, told := range c.told {
					want = append(want, says+told)
				}
				locktest.DeepEqual(t, "it says", log.With("token="), want)
				locktest.Equal(t, "warnings", len(warnings(&log)), len(want))
			})
		})
	}
}
