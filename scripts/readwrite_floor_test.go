package scripts

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A flooredPage is a read-write lock whose tokens have a floor.
type flooredPage struct {
	testing.TB
	name string
}

// take takes the lock for a hold, on the server of rdb, and returns the token. company: the op shares a command.
func (p flooredPage) take(rdb redis.UniversalClient, side Side, field string, floor, company bool) int64 {
	p.Helper()
	keys := ReadWriteOf(p.name, side)
	op := Acquire(keys, true, keys.FieldOf(field), time.Minute).InTurn(Turn{})
	if floor {
		op = op.WithFloor(0)
	}
	var got outcome
	if company {
		got = together(New(rdb), Unlock(ReadWriteOf(p.name+"+", Reads), "nobody:1", false), op)[1]
	} else {
		got.Answer, got.err = New(rdb).Do(p.Context(), op)
	}
	locktest.NoError(p, got.err)
	locktest.Equal(p, field+" has the lock", got.Held, true)
	return got.Token
}

func (p flooredPage) give(rdb redis.UniversalClient, side Side, field string) {
	p.Helper()
	keys := ReadWriteOf(p.name, side)
	a, err := New(rdb).Do(p.Context(), Unlock(keys, keys.FieldOf(field), false).Calling("", 0))
	locktest.NoError(p, err)
	locktest.Equal(p, field+" was there", a.Held, true)
}

// P48: a replica that is promoted has a phase that was over on its master. Who joins its readers there gets a token larger than that of the writer whom
// the replica does not know. The others who join share that. Without a floor, and without the right to INFO, the phase goes on.
func TestP48_AFailoverEndsAPhaseWithAFloor(t *testing.T) {
	site := redistest.Replicated(t, 1)
	master, replica := site.Master.Client(), site.Replicas[0].Client()
	page, bare := flooredPage{t, "page"}, flooredPage{t, "bare"}
	before, began := page.take(master, Reads, "a:1", true, false), bare.take(master, Reads, "a:1", false, false)
	locktest.Equal(t, "the token of one who joins", page.take(master, Reads, "b:1", true, false), before)
	page.give(master, Reads, "b:1")
	site.Sync()
	site.Replicas[0].Detach()
	page.give(master, Reads, "a:1")
	writes := page.take(master, Writes, "c:1", true, false)
	locktest.NoError(t, replica.Do(t.Context(), "replicaof", "no", "one").Err())
	blind := as(t, site.Replicas[0], "blind", "~*", "&*", "+@all", "-info")
	locktest.Equal(t, "a token without the right to ask for the id", page.take(blind, Reads, "d:1", true, false), before)
	after := page.take(replica, Reads, "a:2", true, false)
	if after <= writes {
		t.Errorf("Inv2: token %d reads after %d, which was forgotten, and %d", after, writes, before)
	}
	locktest.Equal(t, "the token of the next one", page.take(replica, Reads, "b:2", true, true), after)
	locktest.Equal(t, "of one without the right", page.take(blind, Reads, "d:2", true, false), after)
	locktest.Equal(t, "of one without a floor", page.take(replica, Reads, "c:2", false, false), after)
	locktest.Equal(t, "where no token has a floor", bare.take(replica, Reads, "a:2", false, false), began)
	if token := bare.take(replica, Reads, "b:2", true, true); token <= began+1000 {
		t.Errorf("the first token with a floor is %d, in a phase of %d", token, began)
	}
}

// P48: one who may not ask for the server's id joins a phase whatever its id is. One who may joins no phase without an id.
func TestP48_WithoutTheRightToINFO(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		locktest.NoError(t, rdb.Ping(t.Context()).Err()) // it serves
		page, tells := flooredPage{t, "page"}, func() { redistest.TellUptime(m, "first", time.Now()) }
		tells()
		token := page.take(rdb, Reads, "a:1", true, false)
		m.Server().SetPreHook(nil) // miniredis refuses INFO
		locktest.Equal(t, "the token of one who may not ask", page.take(rdb, Reads, "b:1", true, false), token)
		tells()
		locktest.Equal(t, "the token of the next one who may", page.take(rdb, Reads, "c:1", true, false), token)
		for _, field := range []string{"a:1", "b:1", "c:1"} {
			page.give(rdb, Reads, field)
		}
		m.Server().SetPreHook(nil)
		token = page.take(rdb, Reads, "a:2", true, false)
		locktest.Equal(t, "where nobody may ask", page.take(rdb, Reads, "b:2", true, false), token)
		tells()
		time.Sleep(time.Second)
		if next := page.take(rdb, Reads, "c:2", true, false); next <= token {
			t.Errorf("Inv2: the token is %d in a phase of %d whose server nobody knows", next, token)
		}
	})
}

// P48: a server that was started anew is another one too. While one server runs, a phase with a floor has one token.
func TestP48_AStartEndsAPhaseWithAFloor(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		locktest.NoError(t, rdb.Ping(t.Context()).Err()) // it serves
		for _, company := range []bool{false, true} {
			page := flooredPage{t, newKeys(t).Lock}
			redistest.TellUptime(m, "first", time.Now())
			token := page.take(rdb, Reads, "a:1", true, company)
			time.Sleep(time.Second)
			locktest.Equal(t, "the token of one who joins", page.take(rdb, Reads, "b:1", true, company), token)
			redistest.TellUptime(m, "second", time.Now())
			next := page.take(rdb, Reads, "c:1", true, company)
			if next < token+time.Second.Microseconds() {
				t.Errorf("the token is %d, a second after %d, on another server", next, token)
			}
			locktest.Equal(t, "the token of one who joins there", page.take(rdb, Reads, "d:1", true, company), next)
		}
	})
}
