package inspect_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// What Redis refuses as a whole, from a connection on that it does not let in, is an error of each method, and no free lock.
func TestConnectionThatIsRefused(t *testing.T) {
	server := redistest.Real(t)
	locktest.NoError(t, server.Client().Do(t.Context(), "acl", "setuser", "reader", "on", ">secret", "~*", "&*", "+@all").Err())
	held, err := rlock.NewLock(newClient(t, server.Client()), "account:1").Lock(t.Context())
	locktest.NoError(t, err)
	shown := look(t, newInspector(t, server.Client()), "account:1")
	for what, c := range map[string]struct {
		change func(o *redis.Options)
		want   string
	}{
		"a wrong password":             {func(o *redis.Options) { o.Username, o.Password = "reader", "wrong" }, "WRONGPASS"},
		"a user who is not there":      {func(o *redis.Options) { o.Username, o.Password = "nobody", "x" }, "WRONGPASS"},
		"a database that is not there": {func(o *redis.Options) { o.DB = 77 }, "DB index is out of range"},
	} {
		in := newInspector(t, server.Client(c.change))
		several, err := inspect.NewQuorum([]redis.UniversalClient{redistest.Client(t, server.Addr(), c.change)})
		locktest.NoError(t, err)
		says := func(of string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: the error of %s is %v, want %s", what, of, err, c.want)
			}
		}
		_, err = in.Look(t.Context(), "account:1")
		says("Look", err)
		_, err = in.Slots(t.Context(), "jobs", 0)
		says("Slots", err)
		_, err = in.SlotsWith(t.Context(), nil, "jobs")
		says("SlotsWith", err)
		_, err = in.Known(t.Context())
		says("Known", err)
		_, err = in.Contended(t.Context())
		says("Contended", err)
		_, err = in.Listeners(t.Context(), "account:1")
		says("Listeners", err)
		_, err = in.Free(t.Context(), shown)
		says("Free", err)
		err = nil
		for _, wrong := range in.Scan(t.Context(), "*", inspect.Pace{}) {
			err = wrong
		}
		says("Scan", err)
		_, err = several.Servers(t.Context())
		says("Servers of a quorum", err)
		_, err = several.Look(t.Context(), "account:1")
		says("Look of a quorum", err)
	}
	locktest.NoError(t, held.Err())
}

// Where Redis answers nothing while it loads its data, and such, no lock is taken for free.
func TestErrorThatIsNotOfOneKey(t *testing.T) {
	server := redistest.Real(t)
	locktest.NoError(t, server.Client().HSet(t.Context(), "account:1", "10000000-0000-4000-8000-000000000001:1", 1).Err())
	proxy := redistest.NewProxy(t, server.Addr())
	in := newInspector(t, redistest.Client(t, proxy.Addr(), func(o *redis.Options) { o.MaxRetries = -1 }))
	for _, command := range []string{"HSCAN", "PTTL", "GET", "ZRANGE", "ZCARD"} {
		for _, refusal := range []string{"LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required.", "ERR max number of clients reached"} {
			proxy.On(command+" "+refusal, redistest.Command(command), redistest.Refuse(refusal))
			if locks, err := in.Look(t.Context(), "account:1"); err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s after %s: %+v, %v", refusal, command, locks, err)
			}
		}
	}
}
