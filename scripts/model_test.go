package scripts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/linemodel"
)

// What the scripts are compared with. The search of internal/room has the same model for its server.
type (
	op     = linemodel.Op
	target = linemodel.Target
	reply  = linemodel.Reply
	model  = linemodel.Model
	stay   = linemodel.Stay
	span   = linemodel.Span
)

// composed is what a client sends for o; nil for what goes in no batch.
func composed(o op, keys *Keys) (Op, bool) {
	switch o.Kind {
	case "acquire":
		return Acquire(keys, o.Fenced, o.Field, o.Lease).TakingTokens(o.Tokens), true
	case "wait":
		return Acquire(keys, o.Fenced, o.Field, o.Lease).TakingTokens(o.Tokens).InTurn(Turn{Ticket: o.Turn.Ticket, Score: o.Turn.Score, Look: o.Turn.Look, Stale: o.Turn.Stale, Unproven: o.Turn.Unproven}), true
	case "release":
		return Unlock(keys, o.Field, false).Calling(o.Again, o.Known), true
	case "quick":
		return Unlock(keys, o.Field, false).CallingNewcomers(), true
	case "leave":
		return Leave(keys, o.Again, false), true
	case "level":
		return Level(keys, o.Fenced, o.Field, o.Lease, o.Count, o.Change).TakingTokens(o.Tokens), true
	case "unlock":
		return Unlock(keys, o.Field, false), true
	case "transfer":
		if o.Field[len(o.Field)-1]%2 == 0 { // which does the same, and tells of it
			return Import(keys, o.Fenced, o.Field, o.Lease, o.Old, false).TakingTokens(o.Tokens), true
		}
		return Transfer(keys, o.Fenced, o.Field, o.Lease, o.Old).TakingTokens(o.Tokens), true
	}
	return Op{}, false
}

// answerTo reads what a client is told; left is the time that belongs to it.
func answerTo(o op, said outcome) (r reply, left time.Duration, err error) {
	for _, why := range []string{linemodel.WrongType, linemodel.NoNumber} {
		var words redis.Error
		if errors.As(said.err, &words) && strings.Contains(words.Error(), why) {
			return reply{Failed: why}, 0, nil
		}
	}
	switch o.Kind {
	case "unlock", "release", "quick":
		return reply{Released: said.Held, Told: said.Receivers, Place: said.Score, More: said.More, Own: said.Own}, 0, said.err
	case "leave":
		return reply{More: said.More}, 0, said.err
	}
	r = reply{Held: said.Held, Token: said.Token, TTL: (o.Kind == "acquire" || o.Kind == "wait") && !said.Held}
	if r.Own = said.Own; r.TTL {
		r.Before, r.Place, r.Head, r.More = said.Before, said.Score, said.Head, said.More
	}
	return r, said.TTL, said.err
}

// checkTTL compares a time that is left, as read within at.
func checkTTL(m *model, got time.Duration, at span) error {
	want := "no key"
	switch {
	case m.Field == "" && got == NoKey, m.Field != "" && m.Forever && got == NoExpiry:
		return nil
	case m.Field != "" && m.Forever:
		want = "no expiry"
	case m.Field != "":
		least, most := m.Expires.Lo.Sub(at.Hi)-linemodel.Slack, m.Expires.Hi.Sub(at.Lo)+linemodel.Slack
		if got >= 0 && got >= least && got <= most {
			return nil
		}
		want = fmt.Sprintf("%v to %v", least, most)
	}
	return fmt.Errorf("the time that is left is %v, want %s", got, want)
}

// check compares the whole state, as read within at.
func check(m *model, got snapshot, at span) error {
	want := map[string]string{}
	if m.Field != "" {
		want[m.Field] = strconv.Itoa(m.Count)
		if m.Change > 0 || m.Second {
			want[m.Field+"#"] = strconv.FormatInt(m.Change, 10)
		}
	}
	if !maps.Equal(got.hash, want) {
		return fmt.Errorf("the hash is %v, want %v", got.hash, want)
	}
	counter := ""
	if m.Counted {
		counter = strconv.FormatInt(m.Counter, 10)
	}
	if m.Spoilt {
		counter = spoiltCounter
	}
	if got.counter != counter {
		return fmt.Errorf("the counter is %q, want %q", got.counter, counter)
	}
	if err := checkLine(&m.Line, got); err != nil {
		return err
	}
	return checkTTL(m, TTL(got.pttl), at)
}

// checkLine compares the line.
func checkLine(l *linemodel.Line, got snapshot) error {
	if !slices.Equal(got.line, l.Stays) {
		return fmt.Errorf("the line is %v, want %v", got.line, l.Stays)
	}
	if left := time.Duration(got.linePTTL) * time.Millisecond; len(l.Stays) > 0 && (left <= 0 || left > 10*time.Minute || left <= aged != l.Aged) {
		return fmt.Errorf("the line lives for %v, aged %v", left, l.Aged)
	}
	return nil
}
