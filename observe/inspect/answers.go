package inspect

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/scripts"
)

// answers is what Redis says of one lock.
type answers struct {
	hash   *redis.ScanCmd   // the fields and values of the lock, or of the beginning of a hash that is too large to be one
	ttl    *redis.IntCmd    // in milliseconds: a time.Duration may be too short for what somebody else has given
	before *redis.StringCmd // the token before the hash was read,
	token  *redis.StringCmd // and behind it
	line   *redis.StringSliceCmd
	length *redis.IntCmd

	mode    string // of a read-write lock
	readers []Holder
	reading int
}

// mostReads is how often a lock is asked about at most where holds begin between two answers.
const mostReads = 5

// again tells whether the lock is to be asked about: for the first time, or as a hold has begun between the answers, so that the token may be of
// another hold than the one that was seen.
func (a *answers) again() bool { return a.token == nil || a.before.Val() != a.token.Val() }

func (a *answers) ask(ctx context.Context, pipe redis.Pipeliner, keys *scripts.Keys) {
	a.before = pipe.Get(ctx, keys.Token)
	a.hash = pipe.HScan(ctx, keys.Lock, 0, "", maxFields)
	a.ttl = redis.NewIntCmd(ctx, "pttl", keys.Lock)
	_ = pipe.Process(ctx, a.ttl)
	a.token = pipe.Get(ctx, keys.Token)
	a.line = pipe.ZRange(ctx, keys.Line, 0, MaxLine-1)
	a.length = pipe.ZCard(ctx, keys.Line)
}

// These are the fields of a lock. A client's id is a UUID, of Redisson's clients too: other hashes have fields such as user:42, which
// nobody may release.
var (
	holderField = regexp.MustCompile("^" + uuid + `:-?\d+$`)
	ticketForm  = regexp.MustCompile("^" + uuid + `[rw]?:\d+(:\d+)?$`) // of a client that is far from Redis, with the time that it needs (P24)
	permitField = regexp.MustCompile("^" + uuid + `:-\d+$`)            // of a permit, in the lock of its slot (P43)
	secondField = regexp.MustCompile("^" + uuid + `:-?\d+#$`)
)

const uuid = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

// fields are those of the hash, with their values.
func (a *answers) fields() map[string]string {
	pairs, _ := a.hash.Val()
	fields := make(map[string]string, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		fields[pair[0]] = pair[1]
	}
	return fields
}

// clients are the ids of those who hold the lock or wait for it.
func (a *answers) clients() (ids []string) {
	for field := range a.fields() {
		if holderField.MatchString(field) || writerField.MatchString(field) {
			ids = append(ids, idOf(field))
		}
	}
	for _, reader := range a.readers {
		ids = append(ids, reader.Client)
	}
	for _, ticket := range a.tickets() {
		ids = append(ids, idOf(ticket))
	}
	return ids
}

// tickets are the first ones in the line.
func (a *answers) tickets() []string {
	return slices.DeleteFunc(a.line.Val(), func(ticket string) bool { return !ticketForm.MatchString(ticket) })
}

// idOf is the id of the client that a holder's field, or a ticket, belongs to.
func idOf(field string) string {
	id, _, _ := strings.Cut(field, ":")
	return id[:min(len(id), uuidLength)] // in the line of a read-write lock r or w stands behind it
}

const uuidLength = 36

// lock reads the answers. What one of them cannot tell, for the lack of a right, is left out; without an answer about the hash nothing
// can be said.
func (a *answers) lock(name string, clients clientsByID) (Lock, error) {
	l := Lock{Name: name, Waiting: int(a.length.Val()), Semaphore: scripts.SemaphoreOf(name)}
	l.Token, l.Counter = a.counter()
	switch err := a.hash.Err(); {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		l.Other = "a key that is no hash"
		return l, nil
	case err != nil:
		return l, err
	}
	fields := a.fields()
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case a.isReadWrite():
			if writerField.MatchString(field) {
				l.Holder = holderOf(name, field, fields[field], clients)
			}
		case holderField.MatchString(field):
			if l.Holder == nil {
				l.Holder = holderOf(name, field, fields[field], clients)
			}
		case !secondField.MatchString(field):
			l.Other = "a hash that is no lock"
		}
	}
	if a.isReadWrite() {
		a.addReaders(&l, clients)
	}
	if l.Other != "" {
		l.Holder = nil
		return l, nil
	}
	switch ttl := scripts.TTL(a.ttl.Val()); {
	case ttl == scripts.NoKey: // the lease has ended since the hash was read
		l.Holder, l.Mode, l.Readers, l.Reading = nil, "", nil, 0
	case l.Holder != nil && ttl < 0:
		l.TTL = NoExpiry
	case l.Holder != nil:
		l.TTL = ttl
	}
	for _, ticket := range a.tickets() {
		l.Line = append(l.Line, waiterOf(name, ticket, clients))
	}
	l.Quorum = a.quorum(&l, clients)
	if l.Semaphore != "" {
		l.Other = "a semaphore"
	}
	if of, _, is := scripts.SlotOf(name); is && l.Holder != nil && permitField.MatchString(l.Holder.Field) {
		l.Semaphore = of
	}
	return l, nil
}

// quorum is Lock.Quorum on one server. A lock that this server has not got may be a client's all the same.
func (a *answers) quorum(l *Lock, clients clientsByID) (n int) {
	if l.Holder != nil {
		return quorums.Of(l.Holder.Client)
	}
	for _, w := range l.Line {
		n = max(n, quorums.Of(w.Client))
	}
	for id, c := range clients {
		if of := quorums.Of(id); of > n && c != nil && slices.ContainsFunc(c.Holds, func(h Hold) bool { return h.Lock == l.Name }) {
			n = of
		}
	}
	return n
}

// counter is the last token that the lock's counter has given, and why it gives no other one, if that is so.
func (a *answers) counter() (last int64, why string) {
	last, err := a.token.Int64()
	switch {
	case err == nil && last < lastToken, errors.Is(err, redis.Nil):
		return last, ""
	case err == nil:
		return last, "the fencing counter has reached 2^53, where Lua cannot count exactly"
	case redis.HasErrorPrefix(err, "WRONGTYPE"), errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return 0, "the fencing counter holds something that is not a number"
	}
	return 0, "" // a right is missing
}

// lastToken is the largest token that there is.
const lastToken = 1<<53 - 1

func holderOf(name, field, count string, clients clientsByID) *Holder {
	id := idOf(field)
	h := &Holder{Field: field, Client: id, By: clients[id]}
	h.Count, _ = strconv.Atoi(count)
	if h.By == nil {
		return h
	}
	for _, said := range h.By.Holds {
		if said.Lock == name && said.Field == field {
			h.For, h.Token, h.Lasting = said.For, said.Token, said.Lasting
		}
	}
	return h
}

func waiterOf(name, ticket string, clients clientsByID) Waiter {
	id := idOf(ticket)
	w := Waiter{Client: id, By: clients[id]}
	switch side, _, _ := strings.Cut(ticket, ":"); side[len(id):] {
	case "r":
		w.Mode = reads
	case "w":
		w.Mode = writes
	}
	if w.By == nil {
		return w
	}
	for _, said := range w.By.Waits {
		if said.Lock == name && said.Mode == w.Mode {
			w.Calls, w.For, w.Lasting = said.Calls, said.For, said.Lasting
		}
	}
	return w
}

// isReply tells that err is an error reply: the connection is there.
func isReply(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}

// ofOneKey tells that err says something of a command's key alone: the key is not there, is of another
// type, or is one that the Redis user may not read so. With any other error Redis has answered nothing.
func ofOneKey(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE") || redis.HasErrorPrefix(err, "NOPERM")
}

// pipelined sends the commands that fill adds, in one round trip. Its error is the first one that is
// not of one key.
func pipelined(ctx context.Context, rdb redis.UniversalClient, fill func(pipe redis.Pipeliner)) error {
	cmds, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		fill(pipe)
		return nil
	})
	for _, cmd := range cmds {
		if cmd.Err() != nil && !ofOneKey(cmd.Err()) {
			return cmd.Err()
		}
	}
	return unsent(cmds, err)
}

// unsent is the error of a pipeline whose connection could not be set up, as for a wrong password:
// go-redis gives it to none of the commands then.
func unsent(cmds []redis.Cmder, err error) error {
	if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return nil
	}
	return err
}
