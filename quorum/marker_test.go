package quorum_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

const marker = "fencelock:quorum"

// before is a hook that runs something before each command with a name among these.
type before struct {
	names []string
	do    func(cmd redis.Cmder)
	after func(cmd redis.Cmder, err error) // if not nil, when it was sent by itself and is over
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		seen := b.see(cmd)
		err := next(ctx, cmd)
		if seen && b.after != nil {
			b.after(cmd, err)
		}
		return err
	}
}

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			b.see(cmd)
		}
		return next(ctx, cmds)
	}
}

func (b *before) see(cmd redis.Cmder) bool {
	for _, arg := range cmd.Args() {
		for _, name := range b.names {
			if text, isText := arg.(string); isText && strings.EqualFold(text, name) {
				b.do(cmd)
				return true
			}
		}
	}
	return false
}

// A client that is about to mark a node does not mark the run that follows: one that came back with nothing would count.
func TestReal_MarkerOfARunThatIsOver(t *testing.T) {
	s := masters(t, 1, "--appendonly", "yes", "--appendfsync", "always")
	var marked, writes atomic.Int64
	rdb := redistest.Client(t, s.servers[0].Addr())
	rdb.AddHook(&before{[]string{marker}, func(cmd redis.Cmder) {
		if cmd.Name() != "get" && writes.Add(1) == 1 {
			_ = s.direct[0].FlushAll(context.Background()) // a new disk
			s.servers[0].Restart()
			redistest.Eventually(t, bound, func() bool { return s.direct[0].Ping(context.Background()).Err() == nil }, "it has loaded its file")
		}
	}, func(cmd redis.Cmder, err error) {
		if cmd.Name() != "get" && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			marked.Add(1)
		}
	}})
	c, err := quorum.New([]redis.UniversalClient{rdb}, lease(rlock.WithPatience(2*time.Second)), patient())
	locktest.NoError(t, err)
	quorum.Hurry(c)
	t.Cleanup(func() { _ = c.Close() })
	l := fenced.NewLock(c, "a")
	redistest.Eventually(t, bound, func() bool {
		if held, _, err := l.TryLockAndGetToken(t.Context(), 0, 0); err == nil {
			_ = l.Unlock(held)
		}
		return marked.Load() > 0
	}, "the node restarts, and is marked after that")
	there, err := s.direct[0].Exists(t.Context(), marker).Result()
	locktest.NoError(t, err)
	if there == 1 {
		t.Errorf("an empty node says that it kept everything: %q", s.direct[0].Get(t.Context(), marker).Val())
	}
}

// A young node that keeps everything counts at once if it has the marker of a run before, and not with that of its own run: this one may have begun with
// nothing, and a client that took it for old has marked it since.
func TestMarkerOfARun(t *testing.T) {
	for marks, counts := range map[string]bool{"": false, "this": false, "before": true} {
		t.Run("marker: "+marks, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, s *site) {
				s.restart(0)
				now := s.starts[0]
				s.minis[0].Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
					switch {
					case cmd == "INFO" && len(args) == 1 && args[0] == "persistence":
						c.WriteBulk("# Persistence\r\naof_enabled:1\r\n")
					case cmd == "CONFIG":
						c.WriteStrings([]string{"appendfsync", "always", "no-appendfsync-on-rewrite", "no"})
					default:
						return memredis.Tells(c, cmd, args, now.id, now.began, time.Now())
					}
					return true
				})
				if id := map[string]string{"this": now.id, "before": "first0"}[marks]; id != "" {
					locktest.NoError(t, s.minis[0].Set(marker, id))
				}
				u := s.user()
				_, _, err := u.lock("other").TryLockAndGetToken(t.Context(), 0, 0) // asks the node what it keeps
				if !counts {
					locktest.IsError(t, err, quorum.ErrRestarted)
				}
				synctest.Wait()
				l := u.lock("l")
				held, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
				if !counts {
					locktest.IsError(t, err, quorum.ErrRestarted)
					return
				}
				locktest.NoError(t, err)
				locktest.NoError(t, l.Unlock(held))
			})
		})
	}
}

// A server that does not fsync while it rewrites its file does not keep everything.
func TestReal_NoFsyncOnRewrite(t *testing.T) {
	s := masters(t, 1, "--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes")
	rdb := redistest.Client(t, s.servers[0].Addr())
	c, err := quorum.New([]redis.UniversalClient{rdb}, lease(), patient())
	locktest.NoError(t, err)
	quorum.Hurry(c)
	t.Cleanup(func() { _ = c.Close() })
	locktest.NoError(t, fenced.NewLock(c, "a").Do(t.Context(), func(context.Context, int64) error { return nil }))
	redistest.Eventually(t, bound, func() bool { return quorum.Learned(c, 0) }, "the node has been asked what it keeps")
	if s.direct[0].Exists(t.Context(), marker).Val() == 1 {
		t.Error("the node is marked as one that keeps everything")
	}
}

// A user without rights on the marker, or to CONFIG, is asked once, not for ever: each refusal is an entry in the server's
// log.
func TestReal_MarkerRefused(t *testing.T) {
	s := masters(t, 1)
	locktest.NoError(t, s.direct[0].Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~a", "~*{a}*", "&*", "+@all", "-config").Err())
	var asked atomic.Int64
	rdb := redistest.Client(t, s.servers[0].Addr(), func(o *redis.Options) { o.Username, o.Password = "app", "pw" })
	rdb.AddHook(&before{names: []string{marker}, do: func(redis.Cmder) { asked.Add(1) }})
	c, err := quorum.New([]redis.UniversalClient{rdb}, lease(), patient())
	locktest.NoError(t, err)
	quorum.Hurry(c)
	t.Cleanup(func() { _ = c.Close() })
	l := fenced.NewLock(c, "a")
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(100 * time.Millisecond) {
		locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }, rlock.Wait(5*time.Second)))
	}
	locktest.Equal(t, "how often the marker was asked for", asked.Load(), 1)
}
