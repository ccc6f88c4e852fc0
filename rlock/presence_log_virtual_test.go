package rlock_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What WithPresence tells is not written: the log names rights where Redis refuses the command, and not where no answer comes.
func TestALogOfPresenceThatIsNotWritten(t *testing.T) {
	for rights, why := range map[string]error{
		"no answer":                 os.ErrDeadlineExceeded,
		"The Redis user needs HSET": locktest.Reply("NOPERM User x has no permissions to run the 'evalsha' command"),
	} {
		t.Run(rights, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
					if args := cmd.Args(); len(args) > 3 && strings.HasPrefix(args[3].(string), "fencelock_client") {
						cmd.SetErr(why)
						return why
					}
					return send()
				}))
				var log locktest.Log
				c, err := rlock.New(rdb, rlock.WithPresence("x"), rlock.WithLogger(log.Logger()))
				locktest.NoError(t, err)
				defer func() { _ = c.Close() }()
				l := rlock.NewLock(c, "l")
				locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "it says so", log.Count("is not written"), 1)
				locktest.Equal(t, "names rights", log.Count("The Redis user needs") == 1, rights != "no answer")
			})
		})
	}
}
