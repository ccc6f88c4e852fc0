package scripts

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redisson's own forms, for the sequences: a Java process that shares the lock.
var (
	//go:embed testdata/naive/acquire.lua
	naiveAcquire string
	//go:embed testdata/naive/unlock.lua
	naiveUnlock string
)

// call runs the op on Redis.
func (q *sequence) call(o op) (r reply, left time.Duration, err error) {
	ctx := context.Background()
	if one, is := composed(o, q.keys); is {
		if q.rng.IntN(2) == 0 {
			a, err := q.s.Do(ctx, one)
			return answerTo(o, outcome{a, err})
		}
		said, err := q.accompany(one)
		if err != nil {
			return r, 0, err
		}
		return answerTo(o, said)
	}
	switch o.Kind {
	case "renew":
		holds := make([]Renewal, len(o.Targets))
		for i, x := range o.Targets {
			holds[i] = Renewal{Keys: q.keys, Field: x.Field, Lease: x.Lease}
		}
		q.s.Renew(ctx, holds)
		for _, h := range holds {
			switch h.Err {
			case nil:
				r.Gone += "0"
			case ErrGone:
				r.Gone += "1"
			default:
				return r, 0, h.Err
			}
		}
		return r, 0, nil
	case "inspect":
		st, err := q.s.Inspect(ctx, q.keys, o.Field)
		return reply{Locked: st.Locked, Count: st.Count, Holder: st.Field, TTL: true}, st.TTL, err
	case "expire":
		return r, 0, q.s.rdb.Del(ctx, q.keys.Lock).Err()
	case "age":
		q.s.rdb.PExpire(ctx, q.keys.Line, aged)
		for _, s := range q.lastState.line {
			if s.Score < 0 {
				q.s.rdb.ZIncrBy(ctx, q.keys.Line, -2*float64(aged.Milliseconds()), s.Ticket)
			}
		}
		return r, 0, q.s.rdb.PExpire(ctx, q.keys.Lock, aged).Err()
	case "persist":
		return r, 0, q.s.rdb.Persist(ctx, q.keys.Lock).Err()
	case "listen", "turn away":
		if q.ear == nil {
			if q.ear, err = newListener(q.s.rdb, q.keys); err != nil {
				return r, 0, err
			}
		}
		return r, 0, q.ear.listen(ctx, o.Field, o.Kind == "listen")
	case "drop counter":
		return r, 0, q.s.rdb.Del(ctx, q.keys.Token).Err()
	}
	return q.redisson(ctx, o)
}

func (q *sequence) redisson(ctx context.Context, o op) (r reply, left time.Duration, err error) {
	if o.Kind == "redisson lock" {
		pair, err := q.s.rdb.Eval(ctx, naiveAcquire, []string{q.keys.Lock, q.keys.Token}, o.Lease.Milliseconds(), o.Field).Int64Slice()
		if err != nil {
			return r, 0, err
		}
		if pair[1] > 0 {
			return reply{Held: true, Token: pair[1]}, 0, nil
		}
		return reply{TTL: true}, TTL(pair[0]), nil
	}
	n, err := q.s.rdb.Eval(ctx, naiveUnlock, []string{q.keys.Lock}, o.Lease.Milliseconds(), o.Field, q.keys.Channel()).Int64()
	if err == redis.Nil {
		err = nil
	}
	return reply{Released: n == 1}, 0, err
}
