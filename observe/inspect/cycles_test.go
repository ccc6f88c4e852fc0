package inspect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// client makes a client that was heard of 5 s ago, of words: "+l" is a lock that it has held for a minute, "-l" one that it has waited for
// for half a minute; "/read" and "/write" stand behind the sides of a read-write lock.
func client(name string, words ...string) inspect.Client {
	c := inspect.Client{ID: "id of " + name, Name: name, Silent: 5 * time.Second}
	for _, word := range words {
		lock, mode, _ := strings.Cut(word[1:], "/")
		if word[0] == '+' {
			c.Holds = append(c.Holds, inspect.Hold{Lock: lock, Mode: mode, For: time.Minute})
		} else {
			c.Waits = append(c.Waits, inspect.Wait{Lock: lock, Mode: mode, Calls: 1, For: 30 * time.Second})
		}
	}
	return c
}

// changed is a copy of the client after change.
func changed(c inspect.Client, change func(c *inspect.Client)) inspect.Client {
	c.Holds, c.Waits = slices.Clone(c.Holds), slices.Clone(c.Waits)
	change(&c)
	return c
}

// shown is the circles in words: each client with what it holds and waits for.
func shown(cycles []inspect.Cycle) string {
	var all []string
	for _, cycle := range cycles {
		var links []string
		for _, l := range cycle {
			links = append(links, fmt.Sprintf("%s +%s -%s", l.Client.Name, l.Hold.Lock, l.Wait.Lock))
		}
		all = append(all, strings.Join(links, ", "))
	}
	return strings.Join(all, "; ")
}

func TestCycles(t *testing.T) {
	permit := func(c *inspect.Client) { c.Holds[0].Semaphore = "s" }
	held := func(d time.Duration) func(c *inspect.Client) { return func(c *inspect.Client) { c.Holds[0].For = d } }
	waited := func(d time.Duration) func(c *inspect.Client) { return func(c *inspect.Client) { c.Waits[0].For = d } }
	silent := func(d time.Duration) func(c *inspect.Client) { return func(c *inspect.Client) { c.Silent = d } }
	a, b := client("a", "+x", "-y"), client("b", "+y", "-x")
	for _, c := range []struct {
		what    string
		clients []inspect.Client
		want    string
	}{
		{"nobody", nil, ""},
		{"a chain", []inspect.Client{a, client("b", "+y", "-z"), client("c", "+z")}, ""},
		{"two clients", []inspect.Client{a, b}, "a +x -y, b +y -x"},
		{"in another order", []inspect.Client{b, a}, "a +x -y, b +y -x"},
		{"three clients", []inspect.Client{client("a", "+x", "-y"), client("b", "+z", "-x"), client("c", "+y", "-z")}, "a +x -y, c +y -z, b +z -x"},
		{"two groups", []inspect.Client{client("d", "+v", "-u"), a, b, client("c", "+u", "-v")}, "a +x -y, b +y -x; c +u -v, d +v -u"},
		{"two groups of which one waits for the other", []inspect.Client{client("a", "+x", "-y", "-u"), b, client("c", "+u", "-v"), client("d", "+v", "-u")}, "a +x -y, b +y -x; c +u -v, d +v -u"},
		{"a group of a short and a long one", []inspect.Client{client("a", "+u", "-v"), client("b", "+v", "-x"), client("c", "+x", "-y"), client("d", "+y", "-x", "-u")}, "c +x -y, d +y -x"},
		{"others that wait for one of them", []inspect.Client{a, b, client("c", "+w", "-x"), client("d", "-x", "-w")}, "a +x -y, b +y -x"},
		{"other holds and waits", []inspect.Client{client("a", "+p", "+x", "-q", "-y"), client("b", "+y", "+r", "-x", "-s")}, "a +x -y, b +y -x"},

		{"a lock that the client holds itself", []inspect.Client{client("a", "+x", "-x")}, ""},
		{"two locks that others read beside the client", []inspect.Client{client("a", "+x/read", "+y/read", "-x/write", "-y/write"), client("b", "+x/read", "+y/read")}, ""},
		{"two readers that want to write", []inspect.Client{client("a", "+x/read", "-x/write"), client("b", "+x/read", "-x/write")}, ""},

		{"readers beside readers", []inspect.Client{client("a", "+x/read", "-y"), client("b", "+y", "-x/read")}, ""},
		{"a reader behind a writer", []inspect.Client{client("a", "+x/write", "-y"), client("b", "+y", "-x/read")}, "a +x -y, b +y -x"},
		{"a writer behind a reader", []inspect.Client{client("a", "+x/read", "-y"), client("b", "+y", "-x/write")}, "a +x -y, b +y -x"},
		{"a writer behind one of two readers", []inspect.Client{client("a", "+x/read", "-y"), client("c", "+x/read"), client("b", "+y", "-x/write")}, "a +x -y, b +y -x"},

		{"permits", []inspect.Client{changed(a, permit), b}, ""},
		{"a wait for a permit", []inspect.Client{changed(a, func(c *inspect.Client) { c.Waits[0].Semaphore = "y" }), b}, ""},
		{"a hold that is meant to last", []inspect.Client{changed(a, func(c *inspect.Client) { c.Holds[0].Lasting = "leads" }), b}, "a +x -y, b +y -x"},
		{"a standby", []inspect.Client{changed(a, func(c *inspect.Client) { c.Waits[0].Lasting = "leads" }), b}, ""},

		{"a wait that has just begun", []inspect.Client{changed(a, waited(7*time.Second)), b}, ""},
		{"a wait that is long enough", []inspect.Client{changed(a, waited(8*time.Second)), b}, "a +x -y, b +y -x"},
		{"a wait of which little is known", []inspect.Client{changed(changed(a, waited(2*time.Second)), silent(12*time.Second)), b}, ""},
		{"a hold that is younger than its client's wait", []inspect.Client{changed(a, held(29*time.Second)), b}, ""},
		{"a client that is gone", []inspect.Client{a, changed(b, silent(13*time.Second))}, ""},
	} {
		cycles := inspect.Cycles(c.clients)
		if got := shown(cycles); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		rand.Shuffle(len(c.clients), func(i, j int) { c.clients[i], c.clients[j] = c.clients[j], c.clients[i] })
		if got := shown(inspect.Cycles(c.clients)); got != c.want {
			t.Errorf("%s, in another order: %q, want %q", c.what, got, c.want)
		}
	}
}

// A circle is found beside very many clients, and where all wait for all.
func TestCyclesOfMany(t *testing.T) {
	clients := []inspect.Client{client("a", "+x", "-y"), client("b", "+y", "-x")}
	for i := range 20_000 {
		clients = append(clients, changed(client(fmt.Sprint("c", i), "+w", "-x"), func(c *inspect.Client) { c.Waits[0].For = 20 * time.Second }))
	}
	locktest.Equal(t, "beside many that wait", shown(inspect.Cycles(clients)), "a +x -y, b +y -x")
	clients = nil
	var words []string
	for i := range 1000 {
		words = append(words, fmt.Sprint("+l", i, "/read"), fmt.Sprint("-l", i, "/write"))
	}
	for i := range 200 {
		clients = append(clients, changed(client(fmt.Sprint("c", i), words...), func(c *inspect.Client) { c.Waits[i].For += time.Second }))
	}
	locktest.Equal(t, "of all that wait for all", len(inspect.Cycles(clients)), 1)
}

// Two clients that take two locks in opposite orders are shown within 20 s, and are gone when one gives up.
func TestCyclesOfClients(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		cycles := func() string {
			clients, err := in.Clients(t.Context())
			locktest.NoError(t, err)
			return shown(inspect.Cycles(clients))
		}
		first, second := make(chan bool), make(chan bool)
		var ends []<-chan error
		for name, locks := range map[string][]string{"a": {"x", "y"}, "b": {"y", "x"}} {
			c := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence(name))
			wait := map[string]time.Duration{"a": time.Hour, "b": time.Minute}[name]
			ended := make(chan error, 1)
			ends = append(ends, ended)
			go func() {
				ended <- rlock.NewLock(c, locks[0]).Do(t.Context(), func(ctx context.Context) error {
					first <- true
					<-second
					return rlock.NewLock(c, locks[1]).Do(ctx, func(context.Context) error { return nil }, rlock.Wait(wait))
				})
			}()
		}
		<-first
		<-first
		locktest.Sleep(4 * time.Second) // so that the clients have written
		close(second)
		began := time.Now()
		for cycles() == "" && time.Since(began) < time.Minute {
			locktest.Sleep(500 * time.Millisecond)
		}
		locktest.Equal(t, "the circle", cycles(), "a +x -y, b +y -x")
		if took := time.Since(began); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("it is shown after %v", took)
		}
		locktest.Sleep(time.Minute - time.Since(began))
		gaveUp := 0
		for _, end := range ends {
			if <-end != nil {
				gaveUp++
			}
		}
		locktest.Equal(t, "calls that gave up", gaveUp, 1)
		locktest.Sleep(11 * time.Second)
		locktest.Equal(t, "circles when one has given up", cycles(), "")
	})
}
