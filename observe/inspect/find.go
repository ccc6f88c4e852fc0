package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// sharded tells whether releases are told on sharded channels.
func (in *Inspector) sharded(ctx context.Context) bool {
	bus := pubsub.New(in.rdb, in.sharding, slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer bus.Close()
	return bus.Sharded(ctx)
}

// onServers calls do for the server, or for all masters of a cluster, one after the other, until there is an error.
func (in *Inspector) onServers(ctx context.Context, do func(server redis.UniversalClient) error) error {
	cluster, is := in.rdb.(*redis.ClusterClient)
	if !is {
		return do(in.rdb)
	}
	masters, err := engine.Within(ctx, func() (masters []*redis.Client, err error) {
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters = append(masters, server)
			return nil
		})
		return masters, err
	})
	for _, server := range masters {
		if err == nil {
			err = do(server)
		}
	}
	return err
}

const (
	lockChannels = "redisson_lock__channel:"
	rwChannels   = "redisson_rwlock:" // of read-write locks
	lineChannels = "fencelock_line:"
	lineOfNames  = "fencelock_line_of:" // of locks with a brace in their name
)

// Contended returns the locks that somebody waits for, by name: clients of this library and of Redisson, and those that a client of this
// library has held for more than a second, a thousand of each client. It walks through no keys. In a cluster all masters are asked. Channels are those of all
// databases of a server: a lock of another one than rdb's is shown as free.
func (in *Inspector) Contended(ctx context.Context) ([]Lock, error) {
	names, err := in.contended(ctx)
	if err != nil {
		return nil, fmt.Errorf("inspect: Contended: %w", err)
	}
	return in.look(ctx, "Contended", names, clientsByID{})
}

// ContendedNames returns the names of what Contended shows, in order, and asks nothing about the locks themselves: of very many locks
// some can be chosen then for Look.
func (in *Inspector) ContendedNames(ctx context.Context) ([]string, error) {
	names, err := in.contended(ctx)
	if err != nil {
		return nil, fmt.Errorf("inspect: ContendedNames: %w", err)
	}
	return names, nil
}

// contended are the names of the locks on whose channels somebody listens. It ends with ctx.
func (in *Inspector) contended(ctx context.Context) ([]string, error) {
	return within(ctx, in, func() ([]string, error) { return in.askContended(ctx) })
}

// askContended is contended, which may outlast ctx.
func (in *Inspector) askContended(ctx context.Context) ([]string, error) {
	if in.parts != nil {
		return in.contendedOnAll(ctx)
	}
	sharded := in.sharded(ctx)
	names := map[string]bool{}
	err := in.onServers(ctx, func(server redis.UniversalClient) error {
		ask := server.PubSubChannels
		if sharded {
			ask = server.PubSubShardChannels
		}
		for _, prefix := range []string{lockChannels, rwChannels, lineChannels, lineOfNames} {
			found, err := ask(ctx, prefix+"*").Result()
			if pubsub.Lacks(err) {
				return fmt.Errorf("%w (the server, or a proxy in front of it, has no PUBSUB: a scan, and presence, find locks without it)", err)
			}
			if err != nil {
				return err
			}
			for _, channel := range found {
				names[nameOf(prefix, channel)] = true
			}
		}
		return nil
	})
	return slices.Sorted(maps.Keys(names)), err
}

// fairWaiter is what follows on the lock's channel in that of a waiter of Redisson's RFairLock, each of which has one of its own.
var fairWaiter = regexp.MustCompile(`\}:` + uuid + `:-?\d+$`)

// nameOf is the name of the lock that the channel with this prefix is of. "a" and "{a}" share the lock's own channel: that is taken for
// the one of "a".
func nameOf(prefix, channel string) string {
	name := strings.TrimPrefix(channel, prefix)
	if prefix != lockChannels && prefix != rwChannels { // a channel of one client
		name = name[:max(strings.LastIndexByte(name, ':'), 0)]
	} else if tail := fairWaiter.FindStringIndex(name); tail != nil {
		name = name[:tail[0]+1]
	}
	if inner, is := strings.CutPrefix(name, "{"); is && prefix != lineOfNames && strings.HasSuffix(inner, "}") && inner != "}" && !strings.Contains(inner, "{") {
		return inner[:len(inner)-1]
	}
	return name
}

// Pace is how Scan goes about the keys.
type Pace struct {
	Count int64         // keys that the server looks at in one step; 0 for 500
	Pause time.Duration // after each step; 0 for 10 ms
}

// Scan walks through all keys that match the pattern, as the command SCAN takes it, and gives the locks among them, in no order: hashes
// with a field <uuid>:<number>, and read-write locks. A key may be given twice, if it is moved meanwhile. Of a quorum the servers are walked one after the other, and each lock that any of them has is given once. The walk takes as long as there are keys: with a million keys, in steps of 500 with pauses of 10 ms, about
// half a minute. Each step keeps the server busy for less than a millisecond. The walk ends with ctx, or with the loop.
func (in *Inspector) Scan(ctx context.Context, pattern string, pace Pace) iter.Seq2[Lock, error] {
	if pace.Count <= 0 {
		pace.Count = 500
	}
	if pace.Pause <= 0 {
		pace.Pause = 10 * time.Millisecond
	}
	if in.parts != nil {
		return in.scanAll(ctx, pattern, pace)
	}
	return func(yield func(Lock, error) bool) {
		known := clientsByID{}
		err := in.onServers(ctx, func(server redis.UniversalClient) error {
			for cursor := uint64(0); ; {
				found, err := within(ctx, in, func() (scanned, error) { return in.step(ctx, server, cursor, pattern, pace, known) })
				if err != nil {
					return err
				}
				for _, l := range found.locks {
					if !yield(l, nil) {
						return errStopped
					}
				}
				if cursor = found.next; cursor == 0 {
					return nil
				}
				if !sleep(ctx, pace.Pause) {
					return ctx.Err()
				}
			}
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Lock{}, fmt.Errorf("inspect: Scan: %w", err))
		}
	}
}

// scanned is what one step of Scan has found.
type scanned struct {
	locks []Lock
	next  uint64 // the cursor
}

// step is one step of Scan on a server.
func (in *Inspector) step(ctx context.Context, server redis.UniversalClient, cursor uint64, pattern string, pace Pace, known clientsByID) (s scanned, err error) {
	var keys []string
	if keys, s.next, err = server.ScanType(ctx, cursor, pattern, pace.Count, "hash").Result(); err == nil {
		s.locks, err = in.locksAmong(ctx, server, keys, known)
	}
	return s, err
}

var errStopped = errors.New("the loop has ended")

// maxFields is more fields than a lock's hash has, but that of a read-write lock: a hash with more is none, and is not read.
const maxFields = 8

// locksAmong returns those of the hashes that are locks.
func (in *Inspector) locksAmong(ctx context.Context, server redis.UniversalClient, keys []string, known clientsByID) ([]Lock, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	lengths := make([]*redis.IntCmd, len(keys))
	if err := pipelined(ctx, server, func(pipe redis.Pipeliner) {
		for i, key := range keys {
			lengths[i] = pipe.HLen(ctx, key)
		}
	}); err != nil {
		return nil, err
	}
	var some, large []string
	for i, key := range keys {
		switch n := lengths[i].Val(); {
		case n > maxFields:
			large = append(large, key)
		case n > 0:
			some = append(some, key)
		}
	}
	modes := make([]*redis.StringCmd, len(large))
	if err := pipelined(ctx, server, func(pipe redis.Pipeliner) {
		for i, key := range large {
			modes[i] = pipe.HGet(ctx, key, "mode")
		}
	}); err != nil {
		return nil, err
	}
	for i, key := range large {
		if mode := modes[i].Val(); mode == reads || mode == writes {
			some = append(some, key)
		}
	}
	locks, err := in.ask(ctx, some, known, lookBatch)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(locks, func(l Lock) bool { return l.Holder == nil }), nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listenersBatch is how many channels are asked about in one command, so that very many are not one long piece of work for the server.
const listenersBatch = 500

// Listeners returns how many connections listen on the own channel of each of these locks, by name: those of Redisson's clients that wait,
// of the first or the first two clients in the line, and of a holder that has had the lock for more than a second. A client has one
// connection, however many of its calls wait. How many clients are in the line is Lock.Waiting. The waiters of Redisson's RFairLock, which
// listen on channels of their own, are not counted.
func (in *Inspector) Listeners(ctx context.Context, names ...string) (map[string]int, error) {
	names = slices.Clone(names)
	found, err := within(ctx, in, func() (map[string]int, error) { return in.askListeners(ctx, names) })
	if err != nil {
		return nil, fmt.Errorf("inspect: Listeners: %w", err)
	}
	return found, nil
}

// askListeners is Listeners, which may outlast ctx.
func (in *Inspector) askListeners(ctx context.Context, names []string) (map[string]int, error) {
	if in.parts != nil {
		return in.listenersOfAll(ctx, names)
	}
	sharded := in.sharded(ctx)
	found := make(map[string]int, len(names))
	err := in.onServers(ctx, func(server redis.UniversalClient) error {
		ask := server.PubSubNumSub
		if sharded {
			ask = server.PubSubShardNumSub
		}
		for part := range slices.Chunk(names, listenersBatch) {
			channels := make([]string, 0, 2*len(part))
			for _, name := range part {
				channels = append(channels, scripts.KeysOf(name).Channel(), scripts.ReadWriteOf(name, scripts.Reads).Channel())
			}
			counts, err := ask(ctx, channels...).Result()
			if err != nil {
				return err
			}
			for i, name := range part {
				found[name] += int(counts[channels[2*i]] + counts[channels[2*i+1]])
			}
		}
		return nil
	})
	return found, err
}
