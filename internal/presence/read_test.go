package presence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 2)) }

// id is a client's, made of a number.
func id(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

// counted counts what is read from connections.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// counting is a client of the same server whose connections count what is read from them.
func counting(t *testing.T, rdb *redis.Client) (reader *redis.Client, bytes *atomic.Int64) {
	t.Helper()
	bytes = new(atomic.Int64)
	reader = redistest.Client(t, rdb.Options().Addr, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return counted{conn, bytes}, err
		}
	})
	return reader, bytes
}

// forge lets somebody write these fields as what the client says, for an hour.
func forge(t *testing.T, rdb *redis.Client, id string, fields ...any) {
	t.Helper()
	locktest.NoError(t, rdb.ZAdd(t.Context(), presence.IndexKey, redis.Z{Score: 4e12, Member: id}).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), presence.Key(id), fields...).Err())
	locktest.NoError(t, rdb.PExpire(t.Context(), presence.Key(id), time.Hour).Err())
}

// honest writes a client as clients do.
func honest(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	locktest.NoError(t, presence.Write(t.Context(), rdb, &presence.Client{ID: id(n), Name: "honest", Host: "h", PID: n, Holds: []presence.Hold{{Lock: "l", Field: id(n) + ":1", For: time.Second}}}))
}

// Of what is longer than any client writes nothing is read, and the others are read as ever.
func TestForgedLengths(t *testing.T) {
	rdb := redistest.New(t)
	honest(t, rdb, 1)
	long := strings.Repeat("x", 5<<20)
	names := "[" + strings.Repeat(`{"lock":"a"},`, 80_000) + `{"lock":"a"}]` // a megabyte
	forge(t, rdb, id(2), "name", "holds", "holds", `[{"lock":"`+long+`"}]`)
	forge(t, rdb, id(3), "name", "numbers", "pid", long, "since", long, "more_waits", long, "lasts", long)
	forge(t, rdb, id(4), "name", long, "host", "texts", "program", long)
	forge(t, rdb, id(5), "name", "unknown", "more", long, long[:1000], "y")
	forge(t, rdb, id(6), "name", "many", "waits", names)
	forge(t, rdb, "client "+long[:1000], "name", "id")
	reader, bytes := counting(t, rdb)
	all, err := presence.Read(t.Context(), reader)
	locktest.NoError(t, err)
	found := map[string]presence.Client{}
	for _, c := range all {
		found[c.Name+c.Host] = c
	}
	if c := found["honesth"]; len(c.Holds) != 1 || c.Cut || c.Holds[0].For != time.Second {
		t.Errorf("the honest one: %+v", c)
	}
	for name, cut := range map[string]bool{"holds": true, "numbers": true, "texts": true, "unknown": false} {
		if c, is := found[name]; !is || c.Cut != cut || len(c.Holds) != 0 {
			t.Errorf("%s: %v, %+v", name, is, c)
		}
	}
	if c := found["many"]; len(c.Waits) != presence.MaxNames || !c.Cut {
		t.Errorf("of very many names %d are shown, cut: %v", len(c.Waits), c.Cut)
	}
	locktest.Equal(t, "clients", len(all), 6)
	if n := bytes.Load(); n > int64(len(names))+20_000 {
		t.Errorf("%d bytes were read", n)
	}
}

// However many long lists there are, no more than 16 MB of them are read, and the short ones first.
func TestForgedLists(t *testing.T) {
	rdb := redistest.New(t)
	long := `[{"lock":"` + strings.Repeat("x", presence.MaxBytes-20) + `"}]`
	for n := range 12 {
		forge(t, rdb, id(n), "name", "forged", "holds", long, "waits", long)
	}
	honest(t, rdb, 99)
	reader, bytes := counting(t, rdb)
	all, err := presence.Read(t.Context(), reader)
	locktest.NoError(t, err)
	held, cut := 0, 0
	for _, c := range all {
		if c.Name == "honest" && (len(c.Holds) != 1 || c.Cut) {
			t.Errorf("the honest one: %+v", c)
		}
		held += len(c.Holds)
		if c.Cut {
			cut++
		}
	}
	if held != 9 || cut != 4 || len(all) != 13 { // eight forged ones, of nearly two megabytes each, beside the honest one
		t.Errorf("%d clients, %d holds, %d cut", len(all), held, cut)
	}
	if n := bytes.Load(); n > 17<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

// Numbers that no client writes become ones that JSON and sums can take, and spoil nobody else's.
func TestForgedNumbers(t *testing.T) {
	rdb := redistest.New(t)
	honest(t, rdb, 1)
	const most, least = "9223372036854775807", "-9223372036854775808"
	for n, number := range []string{most, least} {
		forge(t, rdb, id(2+n), "name", "forged", "since", number, "seen", number, "lasts", number, "pid", number, "more_holds", number, "more_waits", number,
			"holds", `[{"lock":"l","for":`+number+`,"token":`+number+`}]`, "waits", `[{"lock":"l","for":`+number+`,"calls":`+number+`}]`)
	}
	locktest.NoError(t, rdb.Persist(t.Context(), presence.Key(id(3))).Err())
	all, err := presence.Read(t.Context(), rdb)
	locktest.NoError(t, err)
	locktest.Equal(t, "clients", len(all), 3)
	for _, c := range all {
		if _, err := json.Marshal(c); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		if c.Silent < 0 || c.PID < 0 || c.Holds[0].For < 0 || c.Holds[0].For+c.Silent < 0 || len(c.Holds)+c.MoreHolds < 0 {
			t.Errorf("a number is below zero: %+v", c)
		}
		if len(c.Waits) > 0 && (c.Waits[0].For+c.Silent < 0 || c.Waits[0].Calls < 0) {
			t.Errorf("a number is below zero: %+v", c.Waits)
		}
		if c.Name == "honest" && c.Silent > time.Minute {
			t.Errorf("the honest one was not heard of for %v", c.Silent)
		}
	}
}

// Of names that are so long that their list would not be read a client writes fewer, and says how many more there are.
func TestLongNamesAreWrittenAsFarAsTheyAreRead(t *testing.T) {
	rdb := redistest.New(t)
	said := &presence.Client{ID: id(1), MoreHolds: 3}
	for n := range 100 {
		name := fmt.Sprint(n, strings.Repeat("\x01", 5000)) // six bytes each, in JSON
		said.Holds = append(said.Holds, presence.Hold{Lock: name})
		said.Waits = append(said.Waits, presence.Wait{Lock: name})
	}
	locktest.NoError(t, presence.Write(t.Context(), rdb, said))
	all, err := presence.Of(t.Context(), rdb, id(1))
	locktest.NoError(t, err)
	c := all[0]
	if n := len(c.Holds); c.Cut || n < 30 || n+c.MoreHolds != 103 || c.Holds[n-1].Lock != said.Holds[n-1].Lock {
		t.Errorf("%d holds, %d more, cut: %v", n, c.MoreHolds, c.Cut)
	}
	if n := len(c.Waits); n < 30 || n+c.MoreWaits != 100 {
		t.Errorf("%d waits, %d more", n, c.MoreWaits)
	}
}

// A user who may read none of the clients is told so; one who may not read some sees the others.
func TestReadingIsRefused(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	honest(t, rdb, 1)
	honest(t, rdb, 2)
	as := func(rules ...any) *redis.Client {
		t.Helper()
		name := fmt.Sprint("reader", len(rules))
		locktest.NoError(t, rdb.Do(t.Context(), append([]any{"acl", "setuser", name, "on", ">secret"}, rules...)...).Err())
		return server.Client(func(o *redis.Options) { o.Username, o.Password = name, "secret" })
	}
	_, err := presence.Read(t.Context(), as("+@all", "-hstrlen", "~fencelock_client*"))
	if !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("without the right to a command: %v", err)
	}
	all, err := presence.Read(t.Context(), as("+@all", "~"+presence.IndexKey, "~"+presence.Key(id(2)), "~x"))
	locktest.NoError(t, err)
	locktest.Equal(t, "clients, without the right to one of the two", len(all), 1)
}

// A word that is longer than any client writes is cut, wherever its letters end.
func TestForgedLasting(t *testing.T) {
	rdb := redistest.New(t)
	long := "x" + strings.Repeat("ü", 500)
	forge(t, rdb, id(1), "name", "x", "holds", `[{"lock":"a","lasting":"`+long+`"},{"lock":"b","lasting":7}]`, "waits", `[{"lock":"a","lasting":"`+long+`"}]`)
	all, err := presence.Read(t.Context(), rdb)
	locktest.NoError(t, err)
	want := "x" + strings.Repeat("ü", 15)
	if c := all[0]; c.Holds[0].Lasting != want || c.Waits[0].Lasting != want {
		t.Errorf("%q, %q", c.Holds[0].Lasting, c.Waits[0].Lasting)
	}
}
