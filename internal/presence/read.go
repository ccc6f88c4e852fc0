package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Whoever may write these keys may have written anything there. So what is read is bounded in bytes, before it is read.
const (
	maxClients = 50_000   // of the index
	maxID      = 64       // of a client's id
	maxText    = 1 << 10  // of a field but holds and waits
	maxRead    = 16 << 20 // of the holds and waits of all clients together
)

// fields are those of a client's hash that are read. The last two may have MaxBytes each.
var fields = []string{"since", "seen", "lasts", "name", "host", "pid", "program", "more_holds", "more_waits", "holds", "waits"}

// readBatch is how many clients are read in one round trip: each may have written many names, and the server turns to others only after
// the last one. sizeBatch is how many are asked about.
const readBatch, sizeBatch = 20, 25

// Read returns the clients that are there, ordered by name, host and process id. It fails where Redis lets it read none of them.
func Read(ctx context.Context, rdb redis.UniversalClient) ([]Client, error) {
	ids, err := rdb.ZRange(ctx, IndexKey, 0, maxClients-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", IndexKey, err)
	}
	all, refused, err := read(ctx, rdb, ids)
	if err == nil && len(all) == 0 {
		err = refused
	}
	if err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	slices.SortFunc(all, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Of returns those of the clients with these ids that say something of themselves. A key that Redis refuses to read is none.
func Of(ctx context.Context, rdb redis.UniversalClient, ids ...string) ([]Client, error) {
	all, _, err := read(ctx, rdb, ids)
	if err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	return all, nil
}

// A reading is a client that is read.
type reading struct {
	id      string
	ttl     *redis.DurationCmd // of its hash
	lengths []*redis.IntCmd    // in bytes, of fields
	fields  []string           // those that are not too long
	values  *redis.SliceCmd    // of these
}

// lists is how long what the client holds and waits for is.
func (r *reading) lists() int64 {
	return r.lengths[len(fields)-2].Val() + r.lengths[len(fields)-1].Val()
}

// read reads the clients. refused is why Redis refused one of them, if it did.
func read(ctx context.Context, rdb redis.UniversalClient, ids []string) (all []Client, refused, err error) {
	readings := make([]*reading, 0, len(ids))
	for _, id := range ids {
		if len(id) <= maxID {
			readings = append(readings, &reading{id: id})
		}
	}
	inBatches := func(size int, ask func(pipe redis.Pipeliner, r *reading)) {
		for part := range slices.Chunk(readings, size) {
			if err != nil {
				return
			}
			_, failed := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, r := range part {
					ask(pipe, r)
				}
				return nil
			})
			switch {
			case failed == nil:
			case redis.HasErrorPrefix(failed, "NOPERM"), redis.HasErrorPrefix(failed, "WRONGTYPE"):
				refused = cmp.Or(refused, failed)
			default:
				err = failed
			}
		}
	}
	inBatches(sizeBatch, func(pipe redis.Pipeliner, r *reading) {
		r.ttl = pipe.PTTL(ctx, Key(r.id))
		for _, field := range fields {
			r.lengths = append(r.lengths, pipe.HStrLen(ctx, Key(r.id), field))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	readings = slices.DeleteFunc(readings, func(r *reading) bool { return !r.choose() })
	// Where not all may be read, it is the long lists that are left out.
	slices.SortStableFunc(readings, func(a, b *reading) int { return cmp.Compare(a.lists(), b.lists()) })
	total := int64(0)
	for _, r := range readings {
		if total += r.lists(); total > maxRead {
			r.fields = slices.DeleteFunc(r.fields, func(field string) bool { return field == "holds" || field == "waits" })
		}
	}
	inBatches(readBatch, func(pipe redis.Pipeliner, r *reading) { r.values = pipe.HMGet(ctx, Key(r.id), r.fields...) })
	if err != nil {
		return nil, nil, err
	}
	for _, r := range readings {
		if c, there := r.client(); there {
			all = append(all, c)
		}
	}
	return all, refused, nil
}

// choose chooses the fields that are not too long. It returns false where there are none: the client is gone.
func (r *reading) choose() bool {
	there := false
	for i, field := range fields {
		limit := int64(maxText)
		if i >= len(fields)-2 {
			limit = MaxBytes
		}
		n := r.lengths[i].Val()
		there = there || n > 0
		if n <= limit {
			r.fields = append(r.fields, field)
		}
	}
	return there && len(r.fields) > 0
}

// client is what was read; false where the client is gone. What is not understood, of a later version perhaps, is left out, and numbers
// that no client writes are made ones with which times and sums can be told.
func (r *reading) client() (c Client, there bool) {
	values := make(map[string]string, len(fields))
	for i, value := range r.values.Val() {
		if text, is := value.(string); is {
			values[r.fields[i]] = text
		}
	}
	if len(values) == 0 {
		return c, false
	}
	number := func(field string, most int64) int64 {
		n, _ := strconv.ParseInt(values[field], 10, 64)
		return min(max(n, 0), most)
	}
	c = Client{
		ID: r.id, Name: values["name"], Host: values["host"], PID: int(number("pid", math.MaxInt32)), Program: values["program"],
		Since: time.UnixMilli(number("since", lastTime)), Seen: time.UnixMilli(number("seen", lastTime)),
		MoreHolds: int(number("more_holds", math.MaxInt32)), MoreWaits: int(number("more_waits", math.MaxInt32)),
		Lasts: time.Duration(number("lasts", longest.Milliseconds())) * time.Millisecond,
		Cut:   len(r.fields) < len(fields),
	}
	if c.Lasts == 0 { // of a version that does not say it
		c.Lasts = Lasts
	}
	if ttl := r.ttl.Val(); ttl > 0 { // otherwise it is gone in this moment, or was written by somebody else
		c.Silent = max(c.Lasts-ttl, 0)
	}
	_ = json.Unmarshal([]byte(values["holds"]), &c.Holds)
	_ = json.Unmarshal([]byte(values["waits"]), &c.Waits)
	c.Cut = c.Cut || len(c.Holds) > MaxNames || len(c.Waits) > MaxNames
	c.Holds, c.Waits = c.Holds[:min(len(c.Holds), MaxNames)], c.Waits[:min(len(c.Waits), MaxNames)]
	for i := range c.Holds {
		c.Holds[i].For, c.Holds[i].Lasting = min(max(c.Holds[i].For, 0), longest), bounded(c.Holds[i].Lasting)
	}
	for i := range c.Waits {
		c.Waits[i].For, c.Waits[i].Calls = min(max(c.Waits[i].For, 0), longest), min(max(c.Waits[i].Calls, 0), math.MaxInt32)
		c.Waits[i].Lasting = bounded(c.Waits[i].Lasting)
	}
	return c, true
}

const (
	// longest is longer than any lease: a sum of two is a time still.
	longest = 101 * 365 * 24 * time.Hour
	// lastTime is the end of the year 9999, in milliseconds: JSON has no later one.
	lastTime = 253_402_300_799_999
)
