package leader_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// lease is that of the default.
const lease = 30 * time.Second

// watching is Watch by another process, which listens already.
func watching(t *testing.T, rdb *redis.Client, opts ...rlock.Option) (<-chan leader.Leader, *rlock.Client) {
	t.Helper()
	client, err := rlock.New(rdb, opts...)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	leaders, err := leader.Watch(t.Context(), client, "scheduler")
	locktest.NoError(t, err)
	locktest.Sleep(time.Second)
	return leaders, client
}

// tells requires that the channel tells within this time that the process with this token leads, 0 for nobody.
func tells(t *testing.T, leaders <-chan leader.Leader, token int64, within time.Duration) (got leader.Leader) {
	t.Helper()
	select {
	case l, open := <-leaders:
		if leads := l.Client != ""; !open || leads != (token > 0) || leads && l.Token != token {
			t.Fatalf("the channel tells %+v, %v, and the token is %d", l, open, token)
		}
		return named(t, leaders, l)
	case <-time.After(within):
		t.Fatalf("the channel tells nothing for %v, and the token is %d", within, token)
	}
	return leader.Leader{}
}

// named is the leader with its name: it may lead with its first call, and be named a moment later.
func named(t *testing.T, leaders <-chan leader.Leader, l leader.Leader) leader.Leader {
	t.Helper()
	if l.Client == "" || l.Name != "" {
		return l
	}
	select {
	case again := <-leaders:
		locktest.Equal(t, "the token of the leader with a name", again.Token, l.Token)
		return again
	case <-time.After(atOnce):
		return l
	}
}

// leads is a campaign that is not in vain.
func leads(t *testing.T, e *leader.Election) *leader.Term {
	t.Helper()
	term, err := e.Campaign(t.Context())
	locktest.NoError(t, err)
	return term
}

// atOnce is more than a message takes, and far less than a look.
const atOnce = 50 * time.Millisecond

// A watcher is told by messages of a term that begins, of one that follows another, and of one that ends with nobody behind it; and of nothing else.
func TestWatchByMessages(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m), rlock.WithPollInterval(time.Hour))
		tells(t, leaders, 0, atOnce)
		a, _ := process(t, rdb)
		b, _ := process(t, redistest.PipeClient(t, m))
		c, _ := process(t, redistest.PipeClient(t, m))
		first := leads(t, a)
		got := tells(t, leaders, first.Token(), atOnce)
		locktest.Equal(t, "its name", got.Name, "worker")
		next, last := campaign(t, b), campaign(t, c)
		locktest.NothingComes(t, leaders, 5*time.Minute, "a leader leads on")
		for term := first; ; { // where several wait a release is told on the lock's own channel now and then alone
			locktest.NoError(t, term.StepDown(t.Context()))
			select {
			case term = <-next:
				next = nil
			case term = <-last:
				last = nil
			}
			if got, gap := <-leaders, atOnce; got.Client == "" { // it may have looked between the two
				tells(t, leaders, term.Token(), gap)
			} else {
				locktest.Equal(t, "the token", named(t, leaders, got).Token, term.Token())
			}
			if next == nil && last == nil {
				locktest.NoError(t, term.StepDown(t.Context()))
				break
			}
		}
		tells(t, leaders, 0, atOnce)
	})
}

// Of a leader that dies the watcher is told when the lease is over, and of the next one at once.
func TestWatchALeaderThatDies(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m), rlock.WithPollInterval(time.Hour))
		tells(t, leaders, 0, atOnce)
		dies, _, client := electionNamed(t, rdb)
		term := leads(t, dies)
		tells(t, leaders, term.Token(), atOnce)
		locktest.Sleep(time.Minute)
		locktest.NoError(t, term.Err())
		locktest.NoError(t, client.Close()) // without a release, nor a message
		tells(t, leaders, 0, lease+atOnce)
		next, _ := process(t, redistest.PipeClient(t, m))
		tells(t, leaders, leads(t, next).Token(), atOnce)
	})
}

// electionNamed is electionOf for the lock that is watched.
func electionNamed(t *testing.T, rdb *redis.Client) (*leader.Election, *fenced.Lock, *rlock.Client) {
	t.Helper()
	client, err := rlock.New(rdb, rlock.WithPresence("worker"))
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	lock := fenced.NewLock(client, "scheduler")
	e, err := leader.New(lock)
	locktest.NoError(t, err)
	return e, lock, client
}

// What no message tells, the watcher sees within a lease: its client's, where the holder's is longer.
func TestWatchWithoutMessages(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m))
		tells(t, leaders, 0, atOnce)
		_, lock, _ := electionNamed(t, rdb)
		for _, held := range []time.Duration{5 * time.Second, time.Hour} {
			_, token, err := lock.LockLeaseAndGetToken(t.Context(), held)
			locktest.NoError(t, err)
			tells(t, leaders, token, time.Second+atOnce)
			if held > lease {
				locktest.Sleep(lease / 2)
				_, err = lock.ForceUnlock(t.Context())
				locktest.NoError(t, err)
			}
			tells(t, leaders, 0, min(held, lease)+atOnce)
		}
		locktest.NoError(t, rdb.HSet(t.Context(), "scheduler", "6b1f0d1e-0000-4000-8000-000000000001:83", 1).Err()) // and without an expiry
		got := <-leaders
		locktest.Equal(t, "the client", got.Client, "6b1f0d1e-0000-4000-8000-000000000001")
		locktest.NothingComes(t, leaders, time.Hour, "a lock that never expires")
	})
}

// A leader that has said nothing of itself when its term begins is named soon.
func TestWatchNamesTheLeaderLater(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m))
		tells(t, leaders, 0, atOnce)
		client, err := rlock.New(rdb, rlock.WithPresence("worker"))
		locktest.NoError(t, err)
		defer func() { _ = client.Close() }()
		locktest.NoError(t, rdb.HSet(t.Context(), "scheduler", client.ID()+":5", 1).Err())
		locktest.NoError(t, rdb.Expire(t.Context(), "scheduler", lease).Err())
		locktest.Equal(t, "its name", (<-leaders).Name, "")
		_, err = rlock.NewLock(client, "other").Acquire(t.Context()) // with the first acquire a client says who it is
		locktest.NoError(t, err)
		began := time.Now()
		locktest.Equal(t, "its name", (<-leaders).Name, "worker")
		if took := time.Since(began); took > time.Second+atOnce {
			t.Errorf("it took %v", took)
		}
	})
}

// While the server stands still the leader stands, until its lease is over as far as it was seen; the log says so once. Behind that
// the watcher is told who leads.
func TestWatchWhileRedisStandsStill(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var gate memredis.Gate
		var log locktest.Log
		leaders, _ := watching(t, redistest.GatedClient(t, m, &gate), rlock.WithLogger(log.Logger()))
		tells(t, leaders, 0, atOnce)
		e, _ := process(t, rdb)
		term := leads(t, e)
		tells(t, leaders, term.Token(), atOnce)
		gate.Shut()
		locktest.NothingComes(t, leaders, lease-10*time.Second, "the lease lasts")
		tells(t, leaders, 0, 10*time.Second+2*lookTakes)
		locktest.NothingComes(t, leaders, time.Minute, "nothing is known")
		locktest.Equal(t, "said", log.Count("cannot see who leads"), 1)
		gate.Open()
		tells(t, leaders, term.Token(), 2*lookTakes)
		for range 10 {
			gate.Shut()
			locktest.NothingComes(t, leaders, 8*time.Second, "a short silence")
			gate.Open()
			locktest.NothingComes(t, leaders, 9*time.Second, "behind it")
		}
		locktest.NoError(t, term.StepDown(t.Context()))
	})
}

// lookTakes is longer than a look waits for an answer, with the pause behind it.
const lookTakes = 5 * time.Second

// A watcher that begins while Redis is away is told when it answers.
func TestWatchBeginsWhileRedisIsAway(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, _ := process(t, rdb)
		term := leads(t, e)
		m.SetError("LOADING away")
		leaders, _ := watching(t, redistest.PipeClient(t, m))
		locktest.NothingComes(t, leaders, 5*time.Second, "nothing is known")
		m.SetError("")
		tells(t, leaders, term.Token(), 2*time.Second)
		locktest.NoError(t, term.StepDown(t.Context()))
	})
}

// A reader that comes late gets the latest leader alone, and nobody waits for it.
func TestWatchASlowReader(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m))
		e, _ := process(t, rdb)
		for range 5 {
			term := leads(t, e)
			locktest.Sleep(atOnce)
			locktest.NoError(t, term.StepDown(t.Context()))
			locktest.Sleep(atOnce)
		}
		last := leads(t, e)
		locktest.Sleep(atOnce)
		tells(t, leaders, last.Token(), atOnce)
		locktest.NothingComes(t, leaders, 2*time.Minute, "what was before")
		locktest.NoError(t, last.StepDown(t.Context()))
		locktest.Sleep(atOnce)
		again := leads(t, e)
		locktest.Sleep(atOnce)
		tells(t, leaders, again.Token(), atOnce)
	})
}

// The channel is closed at once when ctx ends, or the client is closed, whatever Redis does, and whether somebody reads or not.
func TestWatchEnds(t *testing.T) {
	for how, end := range map[string]func(cancel context.CancelFunc, client *rlock.Client){
		"ctx":    func(cancel context.CancelFunc, _ *rlock.Client) { cancel() },
		"Close":  func(_ context.CancelFunc, client *rlock.Client) { _ = client.Close() },
		"before": nil,
	} {
		for _, silent := range []bool{false, true} {
			t.Run(how, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					var gate memredis.Gate
					client, err := rlock.New(redistest.GatedClient(t, m, &gate))
					locktest.NoError(t, err)
					defer func() { _ = client.Close() }()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if end == nil {
						cancel()
					}
					leaders, err := leader.Watch(ctx, client, "scheduler")
					locktest.NoError(t, err)
					unread, err := leader.Watch(ctx, client, "scheduler")
					locktest.NoError(t, err)
					if end != nil {
						tells(t, leaders, 0, atOnce)
					}
					if silent {
						gate.Shut()
						locktest.Sleep(time.Minute) // a look is under way
					}
					began := time.Now()
					if end != nil {
						end(cancel, client)
					}
					for _, ch := range []<-chan leader.Leader{leaders, unread} {
						for open := true; open; {
							_, open = <-ch
						}
					}
					if took := time.Since(began); took > atOnce && how == "ctx" {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// Watch works on a quorum, by messages and by a majority.
func TestWatchOfAQuorum(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var minis []*miniredis.Miniredis
		began := time.Now().Add(-time.Hour)
		for i := range 3 {
			m, rdb := redistest.Pipe(t)
			locktest.NoError(t, rdb.Ping(t.Context()).Err()) // it runs
			redistest.TellUptime(m, fmt.Sprint("run", i), began)
			minis = append(minis, m)
		}
		newClient := func(opts ...rlock.Option) *rlock.Client {
			var nodes []redis.UniversalClient
			for i, m := range slices.Backward(minis) { // the home is not the first
				nodes = append(nodes, redistest.PipeClient(t, m, func(o *redis.Options) { o.Addr = fmt.Sprint("node", i) }))
			}
			client, err := quorum.New(nodes, opts...)
			locktest.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			return client
		}
		leaders, err := leader.Watch(t.Context(), newClient(), "scheduler")
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		tells(t, leaders, 0, atOnce)
		dies := newClient()
		e, err := leader.New(fenced.NewLock(dies, "scheduler"))
		locktest.NoError(t, err)
		term := leads(t, e)
		tells(t, leaders, term.Token(), atOnce)
		for i, m := range minis {
			m.SetError("LOADING one is away, maybe the home, which tells")
			locktest.NothingComes(t, leaders, time.Minute, "a majority has it")
			locktest.NoError(t, term.StepDown(t.Context()))
			tells(t, leaders, 0, 2*time.Second)
			term = leads(t, e)
			tells(t, leaders, term.Token(), 2*time.Second)
			redistest.TellUptime(m, fmt.Sprint("run", i), began) // it is back
			locktest.Sleep(time.Minute)
		}
		locktest.NoError(t, term.Err())
		locktest.NoError(t, dies.Close())
		locktest.Sleep(atOnce)
		for _, m := range minis[:2] {
			m.SetError("LOADING")
		}
		locktest.NothingComes(t, leaders, lease/3, "a minority is no answer")
		tells(t, leaders, 0, lease+atOnce)
	})
}

// A lateHook holds up what is read, and PUBLISH.
type lateHook struct{ reads, publish time.Duration }

func (lateHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h lateHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "publish" {
			time.Sleep(h.publish)
		}
		return next(ctx, cmd)
	}
}

func (h lateHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		time.Sleep(h.reads)
		return err
	}
}

// A message that comes while a look is under way brings another look: the first may have been too early.
func TestWatchIsToldDuringALook(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		late := redistest.PipeClient(t, m)
		late.AddHook(lateHook{reads: 700 * time.Millisecond})
		client, err := rlock.New(late, rlock.WithPollInterval(time.Hour))
		locktest.NoError(t, err)
		defer func() { _ = client.Close() }()
		leaders, err := leader.Watch(t.Context(), client, "scheduler")
		locktest.NoError(t, err)
		locktest.Sleep(atOnce)
		e, _ := process(t, rdb)
		term := leads(t, e)
		tells(t, leaders, 0, time.Second+atOnce) // what was read before
		tells(t, leaders, term.Token(), 3*time.Second)
		locktest.NoError(t, term.StepDown(t.Context()))
	})
}

// Close waits until it was told that the client's term is over.
func TestWatchALeaderThatStepsDownAndEnds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		leaders, _ := watching(t, redistest.PipeClient(t, m), rlock.WithPollInterval(time.Hour))
		tells(t, leaders, 0, atOnce)
		rdb.AddHook(lateHook{publish: 100 * time.Millisecond})
		e, _, client := electionNamed(t, rdb)
		term := leads(t, e)
		tells(t, leaders, term.Token(), 2*atOnce+atOnce)
		locktest.NoError(t, term.StepDown(t.Context()))
		locktest.NoError(t, client.Close())
		locktest.NoError(t, rdb.Close())
		tells(t, leaders, 0, atOnce)
	})
}

// Bad input of Watch is an error that says what to do.
func TestWatchOfBadInput(t *testing.T) {
	client, err := rlock.New(redistest.New(t))
	locktest.NoError(t, err)
	_, err = leader.Watch(t.Context(), client, "")
	locktest.ErrorSays(t, err, "leader: Watch", "name is empty")
	_, err = leader.Watch(t.Context(), nil, "l")
	locktest.ErrorSays(t, err, "leader: Watch", "client is nil")
	_, err = leader.Watch(t.Context(), new(rlock.Client), "l")
	locktest.ErrorSays(t, err, "leader: Watch", "rlock.New")
	var none context.Context
	_, err = leader.Watch(none, client, "l")
	locktest.ErrorSays(t, err, "leader: Watch", "ctx is nil")
	locktest.NoError(t, client.Close())
	_, err = leader.Watch(t.Context(), client, "l")
	locktest.IsError(t, err, rlock.ErrClosed)
}
