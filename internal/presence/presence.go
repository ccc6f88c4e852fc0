// Package presence has what a client writes into Redis about itself (rlock.WithPresence), and how that is read. A client has a key of
// its own, which expires unless the client writes it again, and a place in an index of all clients. Nothing of it is in the way of
// a lock.
package presence

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Every is the time between two writes of a client.
	Every = 10 * time.Second
	// Lasts is the shortest time for which what a client has written is there.
	Lasts = 30 * time.Second
	// MaxNames bounds the holds, and the locks waited for, that a client writes, and MaxBytes the length of each of the two.
	MaxNames, MaxBytes = 1000, 1 << 20
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
	Since   time.Time     // of the first write, by the server's clock
	There   time.Duration // since the first write, for Write
	Seen    time.Time     // of the last write, by the server's clock
	Lasts   time.Duration // how long after that write it is there; Lasts, where that is longer
	Silent  time.Duration // since the last write, when it was read, by the server's clock

	Holds     []Hold // MaxNames at most
	MoreHolds int    // so many others
	Waits     []Wait // MaxNames at most
	MoreWaits int    // so many others
	Cut       bool   // more was written than is read
}

// Hold is one lock that a client holds.
type Hold struct {
	Lock  string        `json:"lock"`
	Mode  string        `json:"mode,omitempty"`  // read or write, of a read-write lock
	Field string        `json:"field"`           // the holder's, in Redis
	Token int64         `json:"token,omitempty"` // 0 for a lock without tokens
	For   time.Duration `json:"for"`             // when it was written

	Lasting string `json:"lasting,omitempty"` // what the holder of a hold that is meant to last does, in a word or two; "" for another hold
}

// Wait is one lock that a client waits for.
type Wait struct {
	Lock  string        `json:"lock"`
	Mode  string        `json:"mode,omitempty"` // read or write, of a read-write lock
	Calls int           `json:"calls"`          // so many of its calls
	For   time.Duration `json:"for"`            // of the first of them, when it was written

	Lasting string `json:"lasting,omitempty"` // where all of them wait for a hold that is meant to last: as that of a Hold
}

var (
	//go:embed write.lua
	writeText string
	//go:embed index.lua
	indexText string

	writeScript = redis.NewScript(writeText)
	indexScript = redis.NewScript(indexText)
)

// Write writes the client, but for Since, Seen and Silent, which are the server's. Of Holds and Waits it writes the first ones, as many as
// fit into MaxBytes.
func Write(ctx context.Context, rdb redis.UniversalClient, c *Client) error {
	holds, moreHolds, err := list(c.Holds)
	if err != nil {
		return err
	}
	waits, moreWaits, err := list(c.Waits)
	if err != nil {
		return err
	}
	lasts := max(c.Lasts, Lasts).Milliseconds()
	err = writeScript.Run(ctx, rdb, []string{Key(c.ID)}, lasts, c.There.Milliseconds(),
		"name", c.Name, "host", c.Host, "pid", c.PID, "program", c.Program,
		"holds", holds, "more_holds", c.MoreHolds+moreHolds, "waits", waits, "more_waits", c.MoreWaits+moreWaits).Err()
	if err != nil {
		return fmt.Errorf("write %s: %w", Key(c.ID), err)
	}
	if err := indexScript.Run(ctx, rdb, []string{IndexKey}, c.ID, lasts).Err(); err != nil {
		return fmt.Errorf("write %s: %w", IndexKey, err)
	}
	return nil
}

// list is the JSON of the first ones of all that fit into MaxBytes, and how many do not.
func list[T any](all []T) (text []byte, more int, err error) {
	text = []byte{'['}
	for i := range all {
		one, err := json.Marshal(&all[i])
		if err != nil {
			return nil, 0, err
		}
		if len(text)+len(one) >= MaxBytes { // with a comma or the bracket
			more = len(all) - i
			break
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one...)
	}
	return append(text, ']'), more, nil
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
