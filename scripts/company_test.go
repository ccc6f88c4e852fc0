package scripts

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/test/linemodel"
)

// neighbour is another lock, whose ops travel in one batch with those of a sequence.
type neighbour struct {
	name string // for the trace
	keys *Keys
	m    model
}

// spoiltCounter is a counter that is no number.
const spoiltCounter = "no number"

// settle makes the neighbours: two of them have somebody else's data in the way.
func (q *sequence) settle() error {
	ctx := context.Background()
	for i, name := range []string{"one", "two", "wrong", "spoilt"} {
		n := &neighbour{name: name, keys: KeysOf(fmt.Sprint(q.keys.Lock, "-", i))} // nobody is listened for in its line
		q.company = append(q.company, n)
		switch name {
		case "wrong":
			n.m.Wrong = true
			if err := q.s.rdb.Set(ctx, n.keys.Lock, "x", 0).Err(); err != nil {
				return err
			}
		case "spoilt":
			n.m.Spoilt = true
			if err := q.s.rdb.Set(ctx, n.keys.Token, spoiltCounter, 0).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave removes every key: miniredis goes through all of them at each command.
func (q *sequence) leave() {
	if q.ear != nil {
		_ = q.ear.Close()
	}
	keys := []string{q.keys.Lock, q.keys.Token, q.keys.Line}
	for _, n := range q.company {
		keys = append(keys, n.keys.Lock, n.keys.Token, n.keys.Line)
	}
	q.s.rdb.Del(context.Background(), keys...)
}

// op is anything that a client may send for this lock, or a copy of it: few holds and few numbers, so that they meet.
func (n *neighbour) op(q *sequence) op {
	field := func() string { return fmt.Sprintf("01234567-89ab-cdef-0123-456789abcdef:9%d", q.rng.IntN(4)/3) }
	o := op{Field: field(), Fenced: q.rng.IntN(2) == 0, Lease: q.lease()}
	ticket := func() string { return []string{"", "x:1", "y:1", "x:2"}[q.rng.IntN(4)] }
	switch k := q.rng.IntN(16); {
	case k >= 14:
		o.Kind, o.Again = "leave", ticket()
	case k >= 12:
		if o.Kind, o.Again = "release", ticket(); o.Again == "" {
			o.Kind = "quick"
		}
	case k >= 10:
		o.Kind, o.Turn = "wait", linemodel.Turn{Ticket: ticket(), Look: q.rng.IntN(2) == 0}
	case k < 3:
		o.Kind = "acquire"
	case k < 6:
		o.Kind, o.Count, o.Change = "level", 1+q.rng.IntN(3), 8+q.rng.Int64N(4)
		if q.rng.IntN(3) == 0 {
			o.Lease = 0
		}
	case k < 8:
		o.Kind, o.Old = "transfer", field()
	default:
		o.Kind = "unlock"
	}
	return o
}

// accompany sends the op in one batch with ops of the neighbours, and checks what those are told. Their state is checked
// at the end.
func (q *sequence) accompany(one Op) (outcome, error) {
	place := q.rng.IntN(6)
	count := 1 + max(place, q.rng.IntN(6))
	if count == 1 {
		count = 2
	}
	ops, with, of := make([]Op, count), make([]op, count), make([]*neighbour, count)
	for i := range ops {
		if i == place {
			ops[i] = one
			continue
		}
		n := q.company[min(q.rng.IntN(6), len(q.company)-1)] // the last one has the rarest paths
		of[i], with[i] = n, n.op(q)
		ops[i], _ = composed(with[i], n.keys)
		q.trace = append(q.trace, fmt.Sprintf("    %s it in a batch, for %s: %v", map[bool]string{true: "before", false: "after"}[i < place], n.name, with[i]))
	}
	at := span{Lo: time.Now()}
	said := together(q.s, ops...)
	at.Hi = time.Now()
	if q.blind {
		return said[place], nil
	}
	for i, n := range of {
		if n == nil {
			continue
		}
		got, left, err := answerTo(with[i], said[i])
		if err != nil {
			return outcome{}, fmt.Errorf("%s: %w", n.name, err)
		}
		n.m.Line.Now = got.Place
		want := n.m.Apply(with[i], at)
		if got != want {
			return outcome{}, fmt.Errorf("%s: the reply is %+v, want %+v", n.name, got, want)
		}
		if want.TTL {
			if err := checkTTL(&n.m, left, at); err != nil {
				return outcome{}, fmt.Errorf("%s: in the reply: %w", n.name, err)
			}
		}
	}
	return said[place], nil
}

// check compares the neighbour's state.
func (n *neighbour) check(q *sequence) error {
	if q.blind {
		return nil
	}
	if n.m.Wrong {
		if v, err := q.s.rdb.Get(context.Background(), n.keys.Lock).Result(); err != nil || v != "x" {
			return fmt.Errorf("%s: the key of another type is now %q, %v", n.name, v, err)
		}
		return nil
	}
	at := span{Lo: time.Now()}
	got, err := take(q.s.rdb, n.keys)
	if err != nil {
		return err
	}
	at.Hi = time.Now()
	if err := check(&n.m, got, at); err != nil {
		return fmt.Errorf("%s, after it: %w", n.name, err)
	}
	return nil
}
