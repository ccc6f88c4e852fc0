package scripts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/linemodel"
)

// The part of the sequences that is about the line.

// aClient is a client that waits in the line, as it sees itself.
type aClient struct {
	id      string
	hold    *hold    // that it wants the lock for
	tickets []string // all that it had; the last one is of its present stay, if it is in one
	in      bool     // it is in the line as far as it knows, or was
}

// ticket is the one of the client's stay, or of the next.
func (w *aClient) ticket() string {
	if !w.in {
		w.in = true
		w.tickets = append(w.tickets, fmt.Sprintf("%s:%d", w.id, len(w.tickets)+1))
	}
	return w.tickets[len(w.tickets)-1]
}

// stepLine does one thing that a client may do that waits in the line, or that has the lock and calls.
func (q *sequence) stepLine() error {
	w := q.clients[q.rng.IntN(len(q.clients))]
	switch n := q.rng.IntN(20); {
	case n < 11:
		return q.stepWait(w)
	case n < 14:
		h := q.pick()
		if h == nil {
			return nil
		}
		h.held = false
		o := op{Kind: "release", Field: h.field, Known: q.rng.IntN(3) - 1}
		if q.rng.IntN(3) == 0 && !h.ticket {
			o = op{Kind: "quick", Field: h.field}
		} else if q.rng.IntN(2) == 0 && !w.in {
			o.Again = w.ticket()
		}
		return q.compose(o)
	case n < 16:
		o := op{Kind: "leave"}
		if len(w.tickets) > 0 && q.rng.IntN(4) > 0 {
			o.Again = w.tickets[len(w.tickets)-1]
			w.in, w.hold = false, nil
		}
		return q.compose(o)
	case n < 17:
		return q.run("", op{Kind: "expire"})
	default:
		return q.stepListen([]string{w.id, ""}[q.rng.IntN(2)])
	}
}

// stepListen makes a client, or anybody on the lock's own channel, listen, or not any more.
func (q *sequence) stepListen(client string) error {
	if q.m.Line.Listened[client] > 0 {
		return q.run("", op{Kind: "turn away", Field: client})
	}
	return q.run("", op{Kind: "listen", Field: client})
}

// stepWait is a try of the client, in turn.
func (q *sequence) stepWait(w *aClient) error {
	if q.m.Line.Listened[w.id] == 0 && q.rng.IntN(4) > 0 {
		if err := q.stepListen(w.id); err != nil {
			return err
		}
	}
	if w.hold == nil || w.hold.held {
		w.hold = q.newHold(w.id)
	}
	h := w.hold
	o := h.acquire
	o.Kind = "wait"
	last := ""
	if n := len(w.tickets); n > 0 && !w.in {
		last = w.tickets[n-1]
	}
	if q.rng.IntN(5) > 0 {
		o.Turn.Ticket, o.Turn.Unproven = w.ticket(), q.rng.IntN(4) == 0
		h.ticket = true
		if place := q.places[last]; place != 0 && q.rng.IntN(4) > 0 {
			o.PlaceOf, o.Turn.Score = last, place
		}
	}
	if o.Turn.Look = q.rng.IntN(2) == 0; o.Turn.Look && len(q.lastState.line) > 0 && q.rng.IntN(2) == 0 {
		o.Turn.Stale = q.lastState.line[q.rng.IntN(4)%len(q.lastState.line)].Ticket
	}
	if err := q.compose(o); err != nil {
		return err
	}
	if q.m.Field == h.field {
		h.held, h.count, w.in = true, 1, false
	}
	return nil
}

// compose sends the op, or leaves it under way.
func (q *sequence) compose(o op) error {
	if q.rng.IntN(6) == 0 {
		q.delay(o)
		return nil
	}
	return q.send("", o)
}

// fair holds the promises of the line, read from what Redis keeps and says alone: the model may be wrong too.
func (q *sequence) fair(o op, got reply, heard []string, before, after snapshot) error {
	if len(after.line) > 0 && after.linePTTL <= 0 {
		return fmt.Errorf("line: it has no expiry: %d ms", after.linePTTL)
	}
	for _, s := range after.line {
		q.places[s.Ticket] = s.Score
	}
	there := linemodel.Line{Stays: before.line}
	if o.Kind == "wait" && o.Turn.Ticket != "" && o.Turn.Score != 0 {
		there.Join(o.Turn.Ticket, o.Turn.Score, span{})
	}
	line := make([]string, 0, len(there.Stays)) // that the op meets, as far as somebody listens
	for i, s := range there.Stays {
		own := s.Ticket == o.Turn.Ticket && o.Kind == "wait"
		if own || q.m.Line.Listened[linemodel.ClientOf(s.Ticket)] > 0 && (i > 0 || s.Ticket != o.Turn.Stale) && !s.Late(time.Now()) {
			line = append(line, s.Ticket)
		}
	}
	_, was := before.hash[o.Field]
	_, is := after.hash[o.Field]
	if !was && is { // also again, as a ghost
		q.alone[o.Field] = (o.Kind == "acquire" || o.Kind == "wait") && len(before.hash) == 0 && len(after.line) == 0
	}
	switch {
	case o.Kind == "wait" && got.Held:
		if slices.ContainsFunc(after.line, func(s stay) bool { return s.Ticket == o.Turn.Ticket }) {
			return fmt.Errorf("line: %s has the lock and is in the line", o.Turn.Ticket)
		}
		if len(before.hash) == 0 && is && len(line) > 0 && line[0] != o.Turn.Ticket {
			return fmt.Errorf("line: it took the lock out of turn, before %s", line[0])
		}
	case (o.Kind == "release" || o.Kind == "quick" && q.alone[o.Field]) && was && !is:
		if o.Again != "" && q.m.Line.Listened[linemodel.ClientOf(o.Again)] > 0 && !slices.Contains(line, o.Again) {
			line = append(line, o.Again)
		}
		var called []string
		for _, said := range heard {
			if words := strings.Fields(said); len(words) > 2 && words[1] == "c" {
				called = append(called, words[2])
			}
		}
		if !slices.Equal(called, line[:min(1, len(line))]) {
			return fmt.Errorf("line: %q were called of %q", called, line)
		}
	}
	return nil
}

// marked tells whether the hash has got nothing but its hold's second field, as number 0 of its changes.
func marked(before, after map[string]string) bool {
	want := maps.Clone(before)
	for field := range before {
		want[field+"#"] = "0"
	}
	return len(before) == 1 && maps.Equal(after, want)
}

// endLine makes everybody leave: nothing remains.
func (q *sequence) endLine() error {
	for _, w := range q.clients {
		for _, ticket := range w.tickets {
			if err := q.send("at the end: ", op{Kind: "leave", Again: ticket}); err != nil {
				return err
			}
		}
	}
	if len(q.lastState.line) > 0 {
		return fmt.Errorf("line: %v are left when all have left", q.lastState.line)
	}
	return nil
}

// listener is a connection on which clients listen for what they are told, and others for the releases of the lock.
type listener struct {
	*redis.PubSub
	keys *Keys
	end  string // a channel for what comes after everything else
}

func newListener(rdb redis.UniversalClient, keys *Keys) (*listener, error) {
	l := &listener{rdb.Subscribe(context.Background()), keys, keys.Lock + ":end"}
	return l, l.change(context.Background(), l.Subscribe, l.end)
}

// channel is where the client is told; of "" the lock's own.
func (l *listener) channel(client string) string {
	if client == "" {
		return l.keys.Channel()
	}
	return l.keys.Calls(client)
}

// listen begins to listen for the client, or ends it, and returns when Redis knows of it.
func (l *listener) listen(ctx context.Context, client string, begin bool) error {
	change := l.Unsubscribe
	if begin {
		change = l.Subscribe
	}
	return l.change(ctx, change, l.channel(client))
}

func (l *listener) change(ctx context.Context, change func(context.Context, ...string) error, channel string) error {
	if err := change(ctx, channel); err != nil {
		return err
	}
	for {
		said, err := l.ReceiveTimeout(ctx, 20*time.Second)
		if _, known := said.(*redis.Subscription); err != nil || known {
			return err
		}
	}
}

// heard is what was said since the last time: client and message. What has been said comes before what is said now.
func (l *listener) heard(rdb redis.UniversalClient) ([]string, error) {
	if l == nil {
		return nil, nil
	}
	ctx := context.Background()
	if err := rdb.Publish(ctx, l.end, "").Err(); err != nil {
		return nil, err
	}
	var all []string
	for {
		said, err := l.ReceiveTimeout(ctx, 20*time.Second)
		if err != nil {
			return nil, err
		}
		m, is := said.(*redis.Message)
		switch {
		case !is:
		case m.Channel == l.end:
			return all, nil
		default:
			client := strings.TrimPrefix(strings.TrimPrefix(m.Channel, l.channel("")), l.keys.Line+":")
			all = append(all, client+" "+m.Payload)
		}
	}
}
