package scripts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P55: clients that waited to write, and are gone, keep nobody from a lock that others read. A client that listens keeps its place.
func TestP55_WritersThatAreGone(t *testing.T) {
	rdb := redistest.New(t)
	s, name := New(rdb), newKeys(t).Lock
	read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
	n := 0
	ask := func(k *Keys, suffix string, turn Turn) Answer {
		t.Helper()
		n++
		a, err := s.Do(t.Context(), Acquire(k, true, fmt.Sprintf("x:%d%s", n, suffix), time.Minute).InTurn(turn))
		locktest.NoError(t, err)
		return a
	}
	ear, err := newListener(rdb, write)
	locktest.NoError(t, err)
	defer ear.Close()
	told := func(what, want string) {
		t.Helper()
		heard, err := ear.heard(rdb)
		locktest.NoError(t, err)
		locktest.Equal(t, what, strings.Join(heard, ","), want)
	}
	line := func(want ...string) {
		t.Helper()
		locktest.Equal(t, "the line", strings.Join(rdb.ZRange(t.Context(), read.Line, 0, -1).Val(), " "), strings.Join(want, " "))
	}
	locktest.Equal(t, "the first reads", ask(read, "", Turn{}).Held, true)
	for i := range 5 {
		locktest.Equal(t, "a writer waits", ask(write, ":write", Turn{Ticket: fmt.Sprintf("gone%dw:1", i)}).Held, false)
	}
	locktest.Equal(t, "a reader comes, and does not wait", ask(read, "", Turn{}).Held, true)
	line()

	locktest.NoError(t, ear.listen(t.Context(), "d", true))
	locktest.NoError(t, ear.change(t.Context(), ear.Subscribe, read.Calls("e")))
	ask(write, ":write", Turn{Ticket: "gone5w:1"})
	ask(write, ":write", Turn{Ticket: "dw:1"})
	a := ask(read, "", Turn{Ticket: "er:1"})
	locktest.Equal(t, "it passes a writer that listens", a.Held, false)
	line("dw:1", "er:1")
	locktest.Equal(t, "whose sign of life is waited for", a.Head, "dw:1")
	told("the writer, which is the first now", "dw ,dw n dw:1")
	a = ask(read, "", Turn{Ticket: "er:1", Look: true})
	locktest.Equal(t, "whose sign of life is waited for", a.Head, "dw:1")
	told("the writer that is asked", "dw ,dw s dw:1")
	a = ask(read, "", Turn{Ticket: "er:1", Look: true})
	locktest.Equal(t, "whose sign of life is waited for", a.Head, "dw:1")
	told("the writer that is asked, and has time left", "dw ")
	ask(write, ":write", Turn{Ticket: "dw:1"})
	told("the sign of life", "er a er:1")
	locktest.Equal(t, "it passes a writer that is not late", ask(read, "", Turn{}).Held, false)
	told("the writer listens", "dw ")
	locktest.Equal(t, "the writer is late", ask(read, "", Turn{Ticket: "er:1", Look: true, Stale: "dw:1"}).Held, true)
	told("the writer that is out", "dw d dw:1")
	line()

	ask(write, ":write", Turn{Ticket: "gone6w:1"})
	if err := rdb.ZAdd(t.Context(), read.Line, redis.Z{Score: 9007199254740001 - 10, Member: "er:2"}).Err(); err != nil {
		t.Fatal(err)
	}
	ask(read, "", Turn{}) // finds the writer gone
	told("who waits behind it", "er c er:2 0")
}
