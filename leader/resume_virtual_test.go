package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// P58: a term that is exported goes on in the next process, before all who campaign, without a gap and without a warning; the process
// that led campaigns again, without a pause.
func TestP58_ATermTravels(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		logged := leader.WithLogger(log.Logger())
		old, _, _ := electionOf(t, rdb, logged)
		next, _, _ := electionOf(t, redistest.PipeClient(t, m), logged)
		other, _, _ := electionOf(t, redistest.PipeClient(t, m))
		ctx, cancel := context.WithCancel(t.Context())
		terms := make(chan *leader.Term, 9)
		ends := make(chan error, 9)
		lead := func(ctx context.Context, term *leader.Term) error {
			terms <- term
			<-ctx.Done()
			ends <- context.Cause(ctx)
			return nil
		}
		over := locktest.Start(func() error { return old.Run(ctx, lead) })
		first := <-terms
		text, err := first.Export()
		locktest.NoError(t, err)
		waits := campaign(t, other)
		locktest.Sleep(time.Minute)

		locktest.NoError(t, next.Resume(t.Context(), text))
		synctest.Wait()
		locktest.IsError(t, <-ends, rlock.ErrImported)
		nextCtx, nextEnd := context.WithCancel(t.Context())
		nextOver := locktest.Start(func() error { return next.Run(nextCtx, lead) })
		second := <-terms
		locktest.Equal(t, "token", second.Token(), first.Token()+1)
		locktest.IsError(t, next.Resume(t.Context(), text), rlock.ErrNotHeld)
		locktest.Sleep(10 * time.Minute)
		locktest.NoError(t, second.Err())
		nextEnd()
		locktest.IsError(t, <-nextOver, context.Canceled)
		third := <-waits
		locktest.NoError(t, third.StepDown(t.Context()))
		fourth := <-terms // the old process, which has campaigned since the import
		locktest.Equal(t, "token", fourth.Token(), third.Token()+1)
		cancel()
		locktest.IsError(t, <-over, context.Canceled)
		locktest.Equal(t, "warnings", len(warnings(&log)), 0)
	})
}

// A term that was resumed, and is over before anybody leads with it, is not led with.
func TestAResumedTermThatIsOver(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		old, _, _ := electionOf(t, rdb)
		next, lock, _ := electionOf(t, redistest.PipeClient(t, m))
		term := <-campaign(t, old)
		text, err := term.Export()
		locktest.NoError(t, err)
		locktest.Sleep(time.Second) // its client listens by then
		locktest.NoError(t, next.Resume(t.Context(), text))
		_, err = lock.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		anew := <-campaign(t, next)
		locktest.NoError(t, anew.Err())
		locktest.Equal(t, "token", anew.Token(), term.Token()+2)
		_, err = term.Export()
		locktest.IsError(t, err, rlock.ErrUnlocked)
		locktest.NoError(t, anew.StepDown(t.Context()))
	})
}

// A campaign that waits, or pauses after a loss, has the term that is resumed meanwhile.
func TestResumeWhileRunWaits(t *testing.T) {
	for _, pauses := range []bool{false, true} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			old, _, _ := electionOf(t, rdb)
			next, _, _ := electionOf(t, redistest.PipeClient(t, m), leader.WithPause(time.Hour))
			if pauses {
				lost := <-campaign(t, next)
				m.Del("s")
				<-lost.Done()
				locktest.IsError(t, lost.StepDown(t.Context()), rlock.ErrLost)
			}
			term := <-campaign(t, old)
			ctx, cancel := context.WithCancel(t.Context())
			led := make(chan int64, 1)
			over := locktest.Start(func() error {
				return next.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					led <- term.Token()
					<-ctx.Done()
					return nil
				})
			})
			locktest.Sleep(time.Minute)
			text, err := term.Export()
			locktest.NoError(t, err)
			locktest.Sleep(time.Second)
			locktest.NoError(t, next.Resume(t.Context(), text))
			began := time.Now()
			locktest.Equal(t, "token", <-led, term.Token()+1)
			locktest.Equal(t, "it leads after", time.Since(began), 0)
			cancel()
			locktest.IsError(t, <-over, context.Canceled)
		})
	}
}

// Run leaves an exported term to who resumes it, after the end of its context and after Close; one that lead has done with it gives back.
func TestRunLeavesAnExportedTerm(t *testing.T) {
	for how, there := range map[string]bool{"Close": true, "its context ends": true, "lead is done": false} {
		t.Run(how, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				old, _, client := electionOf(t, rdb)
				next, _, _ := electionOf(t, redistest.PipeClient(t, m))
				ctx, cancel := context.WithCancel(t.Context())
				texts, done := make(chan string, 1), make(chan struct{})
				over := locktest.Start(func() error {
					return old.Run(ctx, func(ctx context.Context, term *leader.Term) error {
						text, err := term.Export()
						locktest.NoError(t, err)
						texts <- text
						select {
						case <-ctx.Done():
						case <-done:
						}
						return nil
					})
				})
				text := <-texts
				switch how {
				case "Close":
					locktest.NoError(t, client.Close())
				case "its context ends":
					cancel()
				default:
					close(done)
				}
				<-over
				locktest.Sleep(10 * time.Second)
				if err := next.Resume(t.Context(), text); (err == nil) != there {
					t.Errorf("Resume says %v", err)
				}
				cancel()
			})
		})
	}
}
