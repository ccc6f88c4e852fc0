package redisguard_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Where a server insists on declared keys, the first Do is refused, and sent again with its keys, as all later ones are.
func TestAServerThatInsistsOnDeclaredKeys(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	var refused atomic.Int32
	questions := &counting{what: "command"}
	rdb.AddHook(locktest.Insists(&refused))
	rdb.AddHook(questions)
	w := newGuard(t, rdb).Writer(resource, 3)
	for i := range 3 {
		for _, w := range []redisguard.Writer{w, w.Once(fmt.Sprint(i))} {
			locktest.NoError(t, w.Do(t.Context(), "INCR", key).Err())
		}
	}
	holds(t, server.Client(), key, "6")
	locktest.NoError(t, w.Do(t.Context(), "SORT", "l", "STORE", "m").Err())
	locktest.Equal(t, "refused scripts", refused.Load(), 1)
	locktest.Equal(t, "questions", questions.sent.Load(), 2) // for all commands, and for the keys of SORT
	never(t, w.Do(t.Context(), "PING").Err())                // which has no keys: what the server refuses then is an error, and sent no third time
	locktest.Equal(t, "refused scripts", refused.Load(), 2)
}

// Under a hook that changes keys Eval has the keys of the hook, also where the server has not got the script, and Do, in whose command the
// hook changes nothing, writes nothing.
func TestKeysWithAPrefix(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	rdb.AddHook(locktest.KeyPrefix("tenant:"))
	w := newGuard(t, rdb).Writer(resource, 3)
	for _, w := range []redisguard.Writer{w, w.Once("id")} {
		err := w.Do(t.Context(), "INCR", key).Err()
		never(t, err)
		locktest.ErrorSays(t, err, "changes the names of keys")
	}
	locktest.Equal(t, "keys", server.Client().DBSize(t.Context()).Val(), int64(0))
	for range 2 {
		locktest.NoError(t, w.Eval(t.Context(), increment, []string{key}).Err())
	}
	holds(t, server.Client(), "tenant:"+key, "2")
	holds(t, server.Client(), "tenant:"+marker, "3")
	locktest.Equal(t, "keys", server.Client().DBSize(t.Context()).Val(), int64(2))
}
