package scripts

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
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
		if n := sent.Load(); n != 1+4 {
			t.Errorf("%d were sent, want the renewal, and copies after 0.3, 0.6, 1.2 and 2.4 s", n)
		}
	})
}

// P8: a command has few copies, and all commands of a client no more than maxCopies; none while a confirmation is waited for.
func TestP8_CopiesAreFew(t *testing.T) {
	for name, c := range map[string]struct {
		renewals int
		confirm  time.Duration
		want     int64 // how many renewals and copies are under way after 4.9 of 5 s
	}{
		"one renewal":    {renewals: 1, want: 1 + 5}, // after 0.3, 0.6, 1.2, 2.4 and 4.8 s
		"many renewals":  {renewals: 10, want: 10 + maxCopies},
		"a confirmation": {renewals: 1, confirm: 2 * time.Second, want: 1 + 2}, // after 2.3 and 4.6 s
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				_, rdb := redistest.Pipe(t)
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
				synctest.Wait()
				if n := len(s.copies); n != 0 {
					t.Errorf("%d copies are under way in the end", n)
				}
			})
		})
	}
}

// P8: a server that answers nothing, on connections that are there and on new ones, gets no copies, and few PINGs.
func TestP8_ASilentServerGetsNoCopies(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		var dials atomic.Int64
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
			dial := redistest.Unprobed(o.Dialer)
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, network, addr)
			}
		})
		g := newGate(t, rdb)
		redistest.LeaveIdle(t, rdb, 8)
		s := New(rdb)
		before := dials.Load()
		g.close(true)
		const silence = 2 * time.Minute
		for began := time.Now(); time.Since(began) < silence; time.Sleep(time.Second) {
			sendAcquires(t, s, 1)
		}
		if sizes := g.sizes(); len(sizes) > int(silence/time.Second) {
			t.Errorf("%d batches were sent, of %d ops", len(sizes), silence/time.Second)
		}
		if n := dials.Load() - before; n > int64(silence/time.Second)+int64(silence/quietFor) {
			t.Errorf("%d connections were made", n)
		}
	})
}
