// Package presence has what a client writes into Redis about itself (rlock.WithPresence), and how that is read. A client has a key of
// its own, which expires unless the client writes it again, and a place in an index of all clients. Nothing of it is in the way of
// a lock.
package presence

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Every is the time between two writes of a client.
	Every = 10 * time.Second
	// Lasts is how long a client counts after its last write.
	Lasts = 30 * time.Second
	// MaxNames bounds the holds, and the locks waited for, that a client writes.
	MaxNames = 1000
	// IndexKey is the key of the index: a sorted set of the clients' ids.
	IndexKey = "fencelock_clients"
)

// Key is the key of what the client with this id says of itself, a hash.
func Key(id string) string { return "fencelock_client:{" + id + "}" }

// Client is what a client says of itself.
type Client struct {
	ID      string
	Name    string
	Host    string
	PID     int
	Program string
	Since   time.Time // of the first write, by the server's clock
	Seen    time.Time // of the last write, by the server's clock

	Holds     []Hold // MaxNames at most
	MoreHolds int    // so many others
	Waits     []Wait // MaxNames at most
	MoreWaits int    // so many others
}

// Hold is one lock that a client holds.
type Hold struct {
	Lock  string        `json:"lock"`
	Field string        `json:"field"`           // the holder's, in Redis
	Token int64         `json:"token,omitempty"` // 0 for a lock without tokens
	For   time.Duration `json:"for"`             // when it was written
}

// Wait is one lock that a client waits for.
type Wait struct {
	Lock  string        `json:"lock"`
	Calls int           `json:"calls"` // so many of its calls
	For   time.Duration `json:"for"`   // of the first of them, when it was written
}

var (
	//go:embed write.lua
	writeText string
	//go:embed index.lua
	indexText   string
	writeScript = redis.NewScript(writeText)
	indexScript = redis.NewScript(indexText)
)

// Write writes the client, but for Since and Seen, which are the server's.
func Write(ctx context.Context, rdb redis.UniversalClient, c *Client) error {
	holds, err := json.Marshal(c.Holds)
	if err != nil {
		return err
	}
	waits, err := json.Marshal(c.Waits)
	if err != nil {
		return err
	}
	err = writeScript.Run(ctx, rdb, []string{Key(c.ID)}, Lasts.Milliseconds(),
		"name", c.Name, "host", c.Host, "pid", c.PID, "program", c.Program,
		"holds", holds, "more_holds", c.MoreHolds, "waits", waits, "more_waits", c.MoreWaits).Err()
	if err != nil {
		return fmt.Errorf("write %s: %w", Key(c.ID), err)
	}
	if err := indexScript.Run(ctx, rdb, []string{IndexKey}, c.ID, Lasts.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("write %s: %w", IndexKey, err)
	}
	return nil
}

// Remove removes what the client with this id has written.
func Remove(ctx context.Context, rdb redis.UniversalClient, id string) error {
	_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, Key(id))
		pipe.ZRem(ctx, IndexKey, id)
		return nil
	})
	return err
}

// readBatch is how many clients are read in one round trip: each may have written many names, and the server turns to others only after
// the last one.
const readBatch = 20

// Read returns the clients that are there, ordered by name, host and process id.
func Read(ctx context.Context, rdb redis.UniversalClient) ([]Client, error) {
	ids, err := rdb.ZRange(ctx, IndexKey, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", IndexKey, err)
	}
	all, err := Of(ctx, rdb, ids...)
	slices.SortFunc(all, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// Of returns those of the clients with these ids that say something of themselves. A key that Redis refuses to read is none.
func Of(ctx context.Context, rdb redis.UniversalClient, ids ...string) ([]Client, error) {
	var all []Client
	for part := range slices.Chunk(ids, readBatch) {
		said := make([]*redis.MapStringStringCmd, len(part))
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, id := range part {
				said[i] = pipe.HGetAll(ctx, Key(id))
			}
			return nil
		})
		var reply redis.Error
		if err != nil && !errors.As(err, &reply) {
			return nil, fmt.Errorf("read clients: %w", err)
		}
		for i, id := range part {
			if fields := said[i].Val(); len(fields) > 0 { // otherwise it is gone
				all = append(all, parse(id, fields))
			}
		}
	}
	return all, nil
}

// parse reads a client's hash. What it does not understand, of a later version perhaps, it leaves out.
func parse(id string, fields map[string]string) Client {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return n
	}
	c := Client{
		ID: id, Name: fields["name"], Host: fields["host"], PID: int(number("pid")), Program: fields["program"],
		Since: time.UnixMilli(number("since")), Seen: time.UnixMilli(number("seen")),
		MoreHolds: int(number("more_holds")), MoreWaits: int(number("more_waits")),
	}
	_ = json.Unmarshal([]byte(fields["holds"]), &c.Holds)
	_ = json.Unmarshal([]byte(fields["waits"]), &c.Waits)
	return c
}
