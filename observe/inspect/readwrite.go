package inspect

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// These are the modes of a read-write lock.
var reads, writes = scripts.Reads.Mode(), scripts.Writes.Mode()

// writerField is that of a hold which writes.
var writerField = regexp.MustCompile("^" + uuid + `:-?\d+:write$`)

const (
	// someReaders is how many fields of a read-write lock are looked at: more than are shown, as the leases of some may be over.
	someReaders = 2 * MaxLine
	// someLevels is how many levels of a Redisson reader's hold are looked at, each of which has a lease of its own.
	someLevels = 8
)

// isReadWrite tells whether the hash is a read-write lock.
func (a *answers) isReadWrite() bool { return a.mode == reads || a.mode == writes }

// askReaders asks who reads, where the lock is a read-write lock.
func (a *answers) askReaders(ctx context.Context, rdb redis.UniversalClient, name string) error {
	_, more := a.hash.Val()
	if a.mode = a.fields()["mode"]; a.mode == "" && more != 0 { // a hash with very many fields, of which one step of HSCAN has shown some
		var err error
		if a.mode, err = rdb.HGet(ctx, name, "mode").Result(); err != nil && !ofOneKey(err) {
			return err
		}
	}
	if !a.isReadWrite() {
		return nil
	}
	var length *redis.IntCmd
	var hash *redis.ScanCmd
	if err := pipelined(ctx, rdb, func(pipe redis.Pipeliner) {
		length, hash = pipe.HLen(ctx, name), pipe.HScan(ctx, name, 0, "", someReaders)
	}); err != nil {
		return err
	}
	type reader struct {
		field, count string
		left         []*redis.IntCmd // of its levels
	}
	var all []reader
	others := 0 // fields
	pairs, _ := hash.Val()
	for pair := range slices.Chunk(pairs, 2) {
		if !holderField.MatchString(pair[0]) {
			others++
		} else if len(all) < someReaders {
			all = append(all, reader{field: pair[0], count: pair[1]})
		}
	}
	if len(all) == 0 {
		return nil
	}
	keys := scripts.ReadWriteOf(name, scripts.Reads)
	err := pipelined(ctx, rdb, func(pipe redis.Pipeliner) {
		for i, r := range all {
			levels, _ := strconv.Atoi(r.count)
			for level := range min(max(levels, 1), someLevels) {
				left := redis.NewIntCmd(ctx, "pttl", keys.LeaseOf(r.field, level+1))
				_ = pipe.Process(ctx, left)
				all[i].left = append(all[i].left, left)
			}
		}
	})
	if err != nil {
		return err
	}
	over := 0
	for _, r := range all {
		h := Holder{Field: r.field, Client: idOf(r.field), TTL: scripts.NoKey}
		h.Count, _ = strconv.Atoi(r.count)
		refused := false
		for _, left := range r.left {
			refused = refused || left.Err() != nil
			h.TTL = max(h.TTL, scripts.TTL(left.Val()))
		}
		switch {
		case refused: // a right is missing
			h.TTL = 0
		case h.TTL == scripts.NoKey:
			over++
			continue
		}
		a.readers = append(a.readers, h)
	}
	slices.SortFunc(a.readers, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.TTL, a.TTL), cmp.Compare(a.Field, b.Field)) })
	a.reading = max(int(length.Val())-others-over, len(a.readers))
	a.readers = a.readers[:min(len(a.readers), MaxLine)]
	return nil
}

// addReaders adds to the lock what is known of a read-write lock.
func (a *answers) addReaders(l *Lock, clients clientsByID) {
	l.Mode, l.Reading = a.mode, a.reading
	for _, r := range a.readers {
		h := holderOf(l.Name, r.Field, strconv.Itoa(r.Count), clients)
		h.TTL = r.TTL
		l.Readers = append(l.Readers, *h)
	}
	if l.Mode == reads && len(l.Readers) > 0 {
		first := l.Readers[0]
		l.Holder = &first
	}
	if l.Holder == nil {
		l.Mode = ""
		if scripts.TTL(a.ttl.Val()) != scripts.NoKey {
			l.Other = "a read-write lock without a hold whose lease lasts: it is open when its hash expires, or is deleted"
		}
	}
}
