package limits_test

// What an error, or the log, says where a feature does not work.
const (
	works     = ""
	noScripts = "that knows EVALSHA and EVAL"
	noLua     = "start Garnet with --lua, and --lua-transaction-mode"
	noGuard   = "the guard is a Lua script: use a server"
	makesKeys = "start Dragonfly with --default_lua_flags=allow-undeclared-keys"
	noWait    = "leave WithReplicas out"
	noPubsub  = "a scan, and presence, find locks without it"
	noNode    = "such an engine cannot be a node"
	cluster   = "pass a *redis.Client for each server"
	hangsUp   = "a proxy that does not know HELLO"
	ends      = "EOF"
)

// What the log says where a feature works, if later or at more cost.
const (
	polls     = "knows no subscriptions: waiters poll instead" // a second at most
	untold    = "refused to tell its waiters, who come late"
	uncounted = "PUBLISH in a script does not count this client"
)

var logged = []string{polls, untold, uncounted}

// By the engine, as far as its documents say, in the order of features:
// lock, line, semaphore, read-write lock, WithReplicas, presence, inspect, guard, quorum.
var expected = map[string][9]string{
	"ElastiCache, node-based": {works, works, works, works, works, works, works, works, works},
	"ElastiCache Serverless":  {works, works, works, works, noWait, works, works, works, cluster},
	"MemoryDB":                {works, works, works, works, works, works, works, works, works},
	"Redis Software":          {works, works, works, works, works, works, works, works, noNode},
	"Redis Cloud":             {works, works, works, works, noWait, works, works, works, noNode},
	"Active-Active":           {works, works, works, works, noWait, works, works, works, noNode},
	"Upstash":                 {works, works, works, works, works, works, works, works, works},
	"Dragonfly":               {works, works, makesKeys, makesKeys, noWait, works, works, works, noNode},
	"KeyDB":                   {works, works, works, works, works, works, works, works, works},
	"Garnet":                  {noLua, noLua, noLua, noLua, noLua, noLua, noLua, noGuard, noLua},
	"Garnet with --lua --lua-transaction-mode": {works, works, works, works, noWait, works, works, works, works},
	"Garnet with --no-pubsub":                  {untold, polls, polls, polls, noWait, polls, works, works, untold},
	"OCI Cache, sharded":                       {noScripts, noScripts, noScripts, noScripts, noScripts, noScripts, noScripts, noGuard, noScripts},
	"OCI Cache, not sharded":                   {works, works, works, works, works, works, works, works, works},
	"Memorystore for Redis":                    {works, works, works, works, works, works, works, works, works},
	"Memorystore for Valkey":                   {works, works, works, works, works, works, works, works, works},
	"Envoy":                                    {works, polls, polls, polls, noWait, polls, noPubsub, works, works},
	"Envoy before 2026":                        {works, polls, polls, polls, noWait, polls, noPubsub, works, works},
	"twemproxy":                                {hangsUp, hangsUp, hangsUp, hangsUp, hangsUp, hangsUp, ends, ends, ends},

	"nobody is counted": {works, uncounted, uncounted, uncounted, works, works, works, works, works},
}
