package scripts

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
)

// pipesToo is a hook that is called for a pipeline too, with the first command of it.
type pipesToo struct{ locktest.Hook }

// ProcessPipelineHook implements redis.Hook.
func (h pipesToo) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.Hook(ctx, cmds[0], func() error { return next(ctx, cmds) })
	}
}

// P8: where Redis is slow, and the copies of a renewal fail at once, as in a pool that is used up, the answer to the renewal counts.
func TestP8_CopiesThatFailEndNoRenewal(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		holds := held(t, rdb, 2)
		s := New(rdb)
		s.Renew(t.Context(), holds) // the server knows the script
		for i := range holds {
			holds[i].Lease = 2 * time.Hour
		}
		var sent atomic.Int64
		rdb.AddHook(locktest.Hook(func(_ context.Context, _ redis.Cmder, send func() error) error {
			if sent.Add(1) > 1 {
				return errors.New("no connection is free")
			}
			time.Sleep(2500 * time.Millisecond)
			return send()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		s.Renew(ctx, holds)
		if took := time.Since(began); holds[0].Err != nil || holds[1].Err != nil || took != 2500*time.Millisecond {
			t.Errorf("%v, %v after %v", holds[0].Err, holds[1].Err, took)
		}
		if n := sent.Load(); n != 1+1+2 { // the one connection is idle meanwhile: the hook is in front of it
			t.Errorf("%d were sent, want the renewal, a copy after 1 s, and two after 2 s", n)
		}
	})
}

// P8: there are no more copies of a renewal than idle connections and one, nor more than maxCopies of all renewals, and none while a
// confirmation is waited for.
func TestP8_CopiesAreFew(t *testing.T) {
	for name, c := range map[string]struct {
		idle, renewals int
		confirm        time.Duration
		want           int64 // how many renewals and copies are under way after 4.9 of 5 s
	}{
		"no connection is idle": {renewals: 1, want: 1 + 4},
		"three are":             {idle: 3, renewals: 1, want: 1 + 1 + 2 + 4 + 4},
		"many are":              {idle: 50, renewals: 1, want: 1 + 1 + 2 + 4 + 8},
		"many renewals":         {renewals: 10, want: 10 + maxCopies},
		"a confirmation":        {renewals: 1, confirm: 2 * time.Second, want: 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				_, rdb := redistest.Pipe(t)
				redistest.LeaveIdle(t, rdb, c.idle)
				s := New(rdb)
				if c.confirm > 0 {
					s.Confirm(Confirmation{Replicas: 1, Timeout: c.confirm})
				}
				var underWay atomic.Int64
				away, over := errors.New("away"), make(chan struct{})
				rdb.AddHook(pipesToo{func(_ context.Context, cmd redis.Cmder, _ func() error) error {
					underWay.Add(1)
					<-over
					cmd.SetErr(away)
					return away
				}})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				var all sync.WaitGroup
				for range c.renewals {
					holds := []Renewal{{Keys: newKeys(t), Field: newField(), Lease: time.Hour}}
					all.Go(func() {
						if s.Renew(ctx, holds); !errors.Is(holds[0].Err, away) {
							t.Errorf("renew says %v", holds[0].Err)
						}
					})
				}
				time.Sleep(4900 * time.Millisecond)
				if n := underWay.Load(); n != c.want {
					t.Errorf("%d are under way, want %d", n, c.want)
				}
				close(over)
				all.Wait()
				if n := len(s.copies); n != 0 {
					t.Errorf("%d copies are under way in the end", n)
				}
			})
		})
	}
}
