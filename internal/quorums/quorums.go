// Package quorums has what the clients of a quorum and those who look at its servers must have the same.
package quorums

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Marker is the key by which a server proves that it kept its data through a restart. Its value is the id of the run in which it was
// written.
const Marker = "fencelock:quorum"

// Name returns the server's name in errors, the log and the record of the members: its address, with the database where that is not 0, or the type of a client that has none. It is an error where
// the client is nil, or is not for one server.
func Name(rdb redis.UniversalClient) (string, error) {
	errNil := errors.New("the client is nil: pass a *redis.Client for each server")
	switch r := rdb.(type) {
	case nil:
		return "", errNil
	case *redis.Client:
		if r == nil {
			return "", errNil
		}
		if r.Options().Addr == "FailoverClient" {
			return "", errors.New("a Sentinel failover client is not one server: a replica that is promoted has forgotten holds, and nobody can see it; pass a client of the master alone")
		}
		if db := r.Options().DB; db != 0 { // another one has other locks, and another record of the members
			return fmt.Sprintf("%s/%d", r.Options().Addr, db), nil
		}
		return r.Options().Addr, nil
	case *redis.ClusterClient, *redis.Ring:
		return "", fmt.Errorf("a %T is not one server: pass a *redis.Client for each server", rdb)
	}
	return fmt.Sprintf("%T", rdb), nil
}

// Start returns the place, among n servers in the order of their names, at which the order of the lock with this channel begins. The server there is
// the lock's home, unless it is away.
func Start(channel string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(channel))
	return int(h.Sum32() % uint32(n))
}

// Delay returns how long after its start a server does not count, where this is the longest lease: that in whole seconds, rounded up, and a second more,
// because a server tells its uptime in whole seconds.
func Delay(longest time.Duration) time.Duration {
	return (longest + time.Second - 1).Truncate(time.Second) + time.Second
}

// Keeps tells whether a server has every command on disk before it answers, by INFO persistence and CONFIG GET *appendfsync*.
func Keeps(persistence string, config map[string]string) bool {
	return strings.Contains(persistence, "aof_enabled:1") && config["appendfsync"] == "always" && config["no-appendfsync-on-rewrite"] == "no"
}

// maxTold is the largest number of servers that an id tells.
const maxTold = 0xfff

// NewID returns a new id for a client of a quorum of n servers: a UUID of version 8, whose third group is 8 and n, in three hexadecimal digits. Every field and
// ticket of the client begins with it, and so tells whoever looks at one server alone that this is a part. Clients of one Redis, and Redisson's,
// have UUIDs of version 4.
func NewID(n int) string {
	id := uuid.New()
	n = min(n, maxTold)
	id[6], id[7] = 0x80|byte(n>>8), byte(n)
	return id.String()
}

// Of returns of how many servers the quorum is whose client has this id, or whose field or ticket this is; 0 for a client of one Redis.
func Of(id string) (n int) {
	parsed, err := uuid.Parse(id[:min(len(id), len(uuid.Nil.String()))])
	if err != nil || parsed.Version() != 8 || parsed.Variant() != uuid.RFC4122 {
		return 0
	}
	return int(parsed[6]&0xf)<<8 | int(parsed[7])
}
