// Journeys counts the Go files of this project that a call passes, on a Redis in memory. docs/architecture.md draws the ones that decide something.
//
//	go run -cover -covermode=atomic -coverpkg=./... ./internal/journeys              # how many
//	go run -cover -covermode=atomic -coverpkg=./... ./internal/journeys -files "free lock"  # and which, of the journeys with this in their names
//
// A file counts where one of its statements was executed between the beginning and the end of the call, by whatever goroutine.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

const module = "github.com/fencelock/fencelock/"

var files = flag.String("files", "", "list the files of the journeys with this in their names")

func main() {
	flag.Parse()
	ctx := context.Background()
	one, other := newPlace(), newPlace()
	warm(ctx, one.lock)
	held := count("An acquire of a free lock", func() context.Context { return take(ctx, one.lock) })
	count("An unlock", func() context.Context { return drop(held, one.lock) })

	theirs := take(ctx, fenced.NewLock(must(rlock.New(redis.NewClient(one.server.Options()))), "l"))
	waiting, stop := context.WithCancel(ctx)
	go func() { _, _, _ = one.lock.LockAndGetToken(waiting) }()
	time.Sleep(500 * time.Millisecond)
	count("A waiter that is woken and does not get the lock", func() context.Context {
		one.server.Publish("redisson_lock__channel:{l}", "0")
		time.Sleep(50 * time.Millisecond)
		return theirs
	})
	stop()
	time.Sleep(500 * time.Millisecond)

	lost := take(ctx, other.lock)
	other.server.Del("l")
	count("A lease that is lost", func() context.Context { <-lost.Done(); return lost })
	count("... and its Unlock", func() context.Context { _ = other.lock.Unlock(lost); return lost })

	held = take(ctx, other.lock)
	count("An Unlock without an answer, and what follows behind it", func() context.Context {
		other.gate.Shut()
		if other.lock.Unlock(held) == nil {
			panic("the Unlock was answered")
		}
		other.gate.Open()
		time.Sleep(3 * time.Second)
		return held
	})

	take(ctx, other.lock)
	count("Close", func() context.Context { _ = other.client.Close(); return ctx })

	var nodes []redis.UniversalClient
	for i := range 3 {
		node, began := memredis.New(), time.Now().Add(-time.Hour)
		rdb := redis.NewClient(node.Options())
		must(rdb.Ping(ctx).Result()) // which starts the server
		node.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
			return memredis.Tells(c, cmd, args, fmt.Sprint("run", i), began, time.Now())
		})
		nodes = append(nodes, rdb)
	}
	several := quorum.NewLock(must(quorum.New(nodes)), "l")
	warm(ctx, several)
	held = count("A quorum: a free lock", func() context.Context { return take(ctx, several) })
	count("A quorum: its Unlock", func() context.Context { return drop(held, several) })
}

// A place is a Redis in memory, a client of it, and a lock.
type place struct {
	server *memredis.Server
	gate   memredis.Gate
	client *rlock.Client
	lock   *fenced.Lock
}

func newPlace() *place {
	p := &place{server: memredis.New()}
	p.client = must(rlock.New(redis.NewClient(p.server.Options(&p.gate)), rlock.WithLease(time.Second), rlock.WithUnlockTimeout(900*time.Millisecond)))
	p.lock = fenced.NewLock(p.client, "l")
	return p
}

// warm takes and releases the lock, so that connections and scripts are there.
func warm(ctx context.Context, l *fenced.Lock) {
	for range 3 {
		drop(take(ctx, l), l)
	}
	time.Sleep(100 * time.Millisecond)
}

func take(ctx context.Context, l *fenced.Lock) context.Context {
	held, _, err := l.TryLockAndGetToken(ctx, 10*time.Second, 0)
	if err != nil {
		panic(err)
	}
	return held
}

func drop(held context.Context, l *fenced.Lock) context.Context {
	if err := l.Unlock(held); err != nil {
		panic(err)
	}
	return held
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// count makes a journey, and prints how many files are on it.
func count(name string, journey func() context.Context) context.Context {
	if err := coverage.ClearCounters(); err != nil {
		panic(err.Error() + ": run the program as its documentation says")
	}
	ctx := journey()
	dir := must(os.MkdirTemp("", "journeys"))
	defer func() { _ = os.RemoveAll(dir) }()
	if err := coverage.WriteMetaDir(dir); err != nil {
		panic(err)
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(must(exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o=/dev/stdout").Output())))
	passed, folders := map[string]bool{}, map[string]int{}
	for lines.Scan() {
		file, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), module), ":")
		if strings.HasSuffix(lines.Text(), " 0") || !strings.HasSuffix(file, ".go") || strings.HasPrefix(file, "internal/test") || strings.HasPrefix(file, "internal/journeys") || passed[file] {
			continue
		}
		passed[file] = true
		folders[path.Dir(file)]++
	}
	fmt.Printf("%s: %d files %v\n", name, len(passed), folders)
	if *files != "" && strings.Contains(name, *files) {
		var all []string
		for file := range passed {
			all = append(all, file)
		}
		slices.Sort(all)
		fmt.Println("   ", strings.Join(all, "\n    "))
	}
	return ctx
}
