package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease is how long a lock outlives a dead holder, for contenders that must be told. No round comes near it.
const lease = 30 * time.Second

// baseline is the contender that the others are compared with.
const baseline = "rueidislock"

// A contender is one way of locking.
type contender struct {
	name string
	note string // one line for the report
	only string // the family of modes it can take part in, "" for all

	// dial makes one client of it, with connections of its own.
	dial func(addr string) (*client, error)

	// run replaces the measuring in this process, for a contender that is a program of its own (Redisson on the JVM):
	// it puts the load of the round on the server, and fills in what it can see. dial is not used then.
	run func(ctx context.Context, r round) (result, error)
}

// A client is what a process using the contender would have one of.
type client struct {
	lock  func(key string) lockFunc // may be called before the load starts; it is not measured
	close func()
}

// A lockFunc waits for the lock of one key. The token is 0 for a contender without tokens.
type lockFunc func(ctx context.Context) (token int64, unlock func() error, err error)

// contenders are in the order of the report.
var contenders = []contender{
	{name: "fencelock", note: "fenced.Lock, default options", dial: dialFenced},
	{name: "fencelock-unfenced", note: "rlock.Lock, default options", dial: dialUnfenced},
	{name: "scripts-pool", note: "fencelock's scripts alone, over go-redis's pool: no watchdog, no waiting, no contexts",
		only: "own", dial: dialScriptsPool},
	{name: "scripts-autopipeline", note: "the same over go-redis's AutoPipeline, default options",
		only: "own", dial: dialScriptsAutoPipeline},
	{name: "redislock", note: "bsm/redislock; tries again every 10 ms", dial: dialRedislock},
	{name: "redsync", note: "go-redsync/redsync on one server, default options; begins again after its 32 tries", dial: dialRedsync},
	{name: "rueidislock", note: "rueidislock as it comes, but KeyMajority 1, as one server needs", dial: dialRueidislock},
	{name: "rueidislock-tuned", note: "the same with NoLoopTracking, MaxFlushDelay 20 us and TryNextAfter 1 s", dial: dialRueidislockTuned},
}

// open returns a go-redis client with the library's defaults.
func open(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }
