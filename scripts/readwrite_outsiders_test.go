package scripts

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P37: where a reader in the line comes after a writer, Redisson's readers are told whose turn it is or not.
func TestP37_ReadersOutsideTheLineComeToo(t *testing.T) {
	realtime.Test(t, "a message within 10 s")
	rdb := redistest.New(t)
	s, name := New(rdb), newKeys(t).Lock
	read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
	for i := range 12 { // the field says whose turn it is
		heard := rdb.Subscribe(t.Context(), write.Channel(), read.Calls("b"), read.Calls("c"))
		for range 3 {
			_, err := heard.Receive(t.Context())
			locktest.NoError(t, err)
		}
		field := write.FieldOf(fmt.Sprint("a:-", i+1))
		a, err := s.Do(t.Context(), Acquire(write, true, field, time.Minute).InTurn(Turn{}))
		locktest.NoError(t, err)
		locktest.Equal(t, "it writes", a.Held, true)
		for _, client := range []string{"b", "c"} {
			ticket := read.TicketOf(fmt.Sprint(client, ":", i+1))
			a, err := s.Do(t.Context(), Acquire(read, true, fmt.Sprint(client, ":-", i+1), time.Minute).InTurn(Turn{Ticket: ticket}))
			locktest.NoError(t, err)
			locktest.Equal(t, client+" reads", a.Held, false)
		}
		_, err = s.Do(t.Context(), Unlock(write, field, false).Calling("", 0))
		locktest.NoError(t, err)
		for told := false; !told; {
			message, err := heard.ReceiveTimeout(t.Context(), 10*time.Second)
			locktest.NoError(t, err)
			m, is := message.(*redis.Message)
			told = is && m.Channel == write.Channel() && m.Payload == "1"
		}
		locktest.NoError(t, heard.Close())
		for _, client := range []string{"b", "c"} {
			_, err := s.Do(t.Context(), Leave(read, read.TicketOf(fmt.Sprint(client, ":", i+1)), false))
			locktest.NoError(t, err)
		}
	}
}

// P51: a hold of Redisson's has a lease for each level. Whoever releases it for its holder deletes the hash where no other hold is left.
func TestP51_ReleaseOfAHoldWithLevels(t *testing.T) {
	rdb := redistest.New(t)
	s, name := New(rdb), newKeys(t).Lock
	read := ReadWriteOf(name, Reads)
	ctx := t.Context()
	locktest.NoError(t, rdb.HSet(ctx, name, "mode", "read", "java:7", "2").Err())
	locktest.NoError(t, rdb.Expire(ctx, name, time.Hour).Err())
	for level, lease := range []time.Duration{time.Minute, time.Hour} {
		locktest.NoError(t, rdb.Set(ctx, fmt.Sprintf("{%s}:java:7:rwlock_timeout:%d", name, level+1), "1", lease).Err())
	}
	a, err := s.Do(ctx, Unlock(read, "java:7", false).Calling("", NotTheHolder))
	locktest.NoError(t, err)
	locktest.Equal(t, "it was there", a.Held, true)
	locktest.Equal(t, "the hash is there", rdb.Exists(ctx, name).Val(), int64(0))
}
