package scripts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Random sequences of what clients do with a semaphore, and of what networks do with their commands, against the scripts of permits. Time is counted
// in units so long that none of a test's own time matters: pass shortens what all keys of the slots have left.
const unit = 1000 * time.Second

// A wanter is a client that wants permits, one at a time, as it sees itself.
type wanter struct {
	id     string
	frozen bool
	want   *aPermit // nil while it wants none
	ticket string   // of its stay in the line; "" for none
	stays  int
}

// An aPermit is a permit that a client wants or has.
type aPermit struct {
	by       *wanter
	field    string
	lease    int
	slot     int // -1 before it has one
	token    int64
	until    int // as its client trusts it
	released bool
}

// permitRun is one sequence.
type permitRun struct {
	s       *Scripts
	rdb     redis.UniversalClient
	keys    *Keys
	n       int
	rng     *rand.Rand
	ear     *listener
	clients []*wanter
	now     int
	fields  int
	all     []*aPermit // that have a slot, or had one
	owed    []string   // fields of attempts without an answer
	late    []Op       // commands that arrive later
	tokens  map[int]int64
	dirty   bool // a slot may have come free without a word: the first two look
	trace   []string
}

func (r *permitRun) say(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf("t=%-3d ", r.now)+fmt.Sprintf(format, args...))
}

func runPermits(rdb redis.UniversalClient, name string, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &permitRun{s: New(rdb), rdb: rdb, n: 1 + rng.IntN(5), rng: rng, tokens: map[int]int64{}}
	r.keys = PermitsOf(name, r.n)
	var err error
	if r.ear, err = newListener(rdb, r.keys); err != nil {
		return err
	}
	defer r.ear.Close()
	for i := range 5 {
		w := &wanter{id: "c" + strconv.Itoa(i)}
		r.clients = append(r.clients, w)
		if err := r.ear.listen(context.Background(), w.id, true); err != nil {
			return err
		}
	}
	for range 30 + int(seed%40) {
		if err = r.step(); err == nil && rng.IntN(4) > 0 { // messages may be late
			err = r.settle()
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = r.settle()
	}
	if err == nil {
		err = r.finish()
	}
	if err != nil {
		return fmt.Errorf("FENCELOCK_SEED=%d repeats this sequence of %d permits:\n\t%s\n%w", seed, r.n, strings.Join(r.trace, "\n\t"), err)
	}
	return nil
}

func (r *permitRun) do(op Op) (Answer, error) { return r.s.Do(context.Background(), op) }

// step does one thing that a client or the world may do.
func (r *permitRun) step() error {
	w := r.clients[r.rng.IntN(len(r.clients))]
	switch n := r.rng.IntN(100); {
	case n < 40:
		if w.frozen {
			return nil
		}
		if w.want == nil {
			w.want = &aPermit{by: w, lease: 10 + r.rng.IntN(30), slot: -1}
		}
		return r.attempt(w, Turn{})
	case n < 60:
		if p := r.held(); p != nil {
			return r.unlock(p)
		}
	case n < 66:
		if w.want != nil && !w.frozen {
			w.want = nil
			return r.leave(w)
		}
	case n < 72:
		if p := r.held(); p != nil {
			renewal := []Renewal{{Keys: KeysOf(r.keys.SlotName(p.slot)), Field: p.field, Lease: time.Duration(p.lease) * unit}}
			r.s.Renew(context.Background(), renewal)
			r.say("%s renews: %v", p.field, renewal[0].Err)
			if renewal[0].Err == nil {
				p.until = max(p.until, r.now+p.lease)
			} else if r.trusted(p) {
				return fmt.Errorf("Inv1: %s is not there, and is trusted", p.field)
			}
		}
	case n < 82:
		d := 1 + r.rng.IntN(12)
		r.say("%d pass", d)
		r.now += d
		r.dirty = true
		return r.pass(d)
	case n < 85:
		w.frozen = !w.frozen
		r.say("%s frozen: %v", w.id, w.frozen)
		r.dirty = true
	case n < 90:
		if len(r.owed) > 0 {
			return r.vacate(r.owed[r.rng.IntN(len(r.owed))])
		}
	default:
		if len(r.late) > 0 {
			i := r.rng.IntN(len(r.late))
			op := r.late[i]
			r.late = append(r.late[:i], r.late[i+1:]...)
			answer, err := r.do(op)
			r.say("late %s of %s: held %v slot %d", op.kind.names[0], op.field, answer.Held, answer.Slot)
			if op.isSentOnce() && answer.Held {
				r.tokens[answer.Slot] = max(r.tokens[answer.Slot], answer.Token)
			}
			return err
		}
	}
	return nil
}

// held returns a permit that its client has not unlocked, of a client that is not frozen; nil for none.
func (r *permitRun) held() *aPermit {
	var some []*aPermit
	for _, p := range r.all {
		if !p.released && !p.by.frozen {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[r.rng.IntN(len(some))]
}

func (r *permitRun) trusted(p *aPermit) bool { return p.slot >= 0 && !p.released && r.now < p.until }

// attempt asks for a permit once. The answer may be lost, or the command arrive later.
func (r *permitRun) attempt(w *wanter, turn Turn) error {
	p := w.want
	r.fields++
	p.field = fmt.Sprintf("%s:-%d", w.id, r.fields)
	if w.ticket == "" && r.rng.IntN(4) > 0 {
		w.stays++
		w.ticket = fmt.Sprintf("%s:%d", w.id, w.stays)
	}
	turn.Ticket = w.ticket
	op := Acquire(r.keys, true, p.field, time.Duration(p.lease)*unit)
	if turn.outside() && r.rng.IntN(2) == 0 {
		turn.Unproven = false
	}
	op = op.InTurn(turn)
	sent, lot := r.now, r.rng.IntN(14)
	if lot == 0 {
		r.say("%s asks by %s, which is late", w.id, p.field)
		r.late, r.owed = append(r.late, op), append(r.owed, p.field)
		return nil
	}
	answer, err := r.do(op)
	if err != nil {
		return err
	}
	if answer.Held {
		if answer.Slot < 0 || answer.Slot >= r.n {
			return fmt.Errorf("Inv13: slot %d of %d", answer.Slot, r.n)
		}
		if answer.Token <= r.tokens[answer.Slot] {
			return fmt.Errorf("Inv2: token %d of slot %d after %d", answer.Token, answer.Slot, r.tokens[answer.Slot])
		}
		r.tokens[answer.Slot] = answer.Token
		if counter, err := r.rdb.Get(context.Background(), KeysOf(r.keys.SlotName(answer.Slot)).Token).Int64(); err != nil || counter != answer.Token {
			return fmt.Errorf("token %d, and the counter of the slot's lock is %d, %w", answer.Token, counter, err)
		}
	}
	if lot == 1 {
		r.say("%s asks by %s, without an answer: held %v slot %d", w.id, p.field, answer.Held, answer.Slot)
		r.owed = append(r.owed, p.field)
		return nil
	}
	r.say("%s asks by %s with %q: held %v slot %d token %d before %d", w.id, p.field, w.ticket, answer.Held, answer.Slot, answer.Token, answer.Before)
	if !answer.Held {
		return nil
	}
	if before := r.waitsBefore(w); before != "" {
		return fmt.Errorf("Inv14: %s has a permit before %s", w.id, before)
	}
	p.slot, p.token, p.until = answer.Slot, answer.Token, sent+p.lease
	for _, o := range r.all {
		if r.trusted(o) && o.slot == p.slot {
			return fmt.Errorf("Inv13: %s and %s have slot %d", o.field, p.field, p.slot)
		}
	}
	r.all = append(r.all, p)
	w.want, w.ticket = nil, ""
	return nil
}

// waitsBefore returns who is in the line in front, but for this client; "" for nobody. It is asked after this one has left.
func (r *permitRun) waitsBefore(w *wanter) string {
	head, err := r.rdb.ZRange(context.Background(), r.keys.Line, 0, 0).Result()
	if err != nil || len(head) == 0 {
		return ""
	}
	first := r.client(head[0])
	if first == w || first.frozen || first.ticket != head[0] || first.want == nil {
		return ""
	}
	mine, _, _ := strings.Cut(w.ticket, ":")
	if mine == "" { // it was in no line, and has passed the first one
		return head[0]
	}
	return ""
}

func (r *permitRun) client(ticket string) *wanter {
	id, _, _ := strings.Cut(ticket, ":")
	for _, w := range r.clients {
		if w.id == id {
			return w
		}
	}
	return nil
}

// unlock gives a permit back, by its slot. A copy may arrive later.
func (r *permitRun) unlock(p *aPermit) error {
	p.released = true
	op := Unlock(r.keys.PermitIn(p.slot), p.field, false).Calling("", 0)
	if r.rng.IntN(5) == 0 {
		r.late = append(r.late, op)
	}
	answer, err := r.do(op)
	r.say("%s unlocks slot %d: %v", p.field, p.slot, answer.Held)
	if err == nil && !answer.Held && r.now < p.until {
		return fmt.Errorf("Inv1: %s is not there, and was trusted", p.field)
	}
	return err
}

// vacate releases the hold of an attempt without an answer.
func (r *permitRun) vacate(field string) error {
	op := Unlock(r.keys, field, false)
	if r.rng.IntN(4) > 0 {
		op = op.Calling("", 0)
	} else {
		r.dirty = true // it calls nobody
	}
	answer, err := r.do(op)
	r.say("%s is vacated: %v", field, answer.Held)
	return err
}

func (r *permitRun) leave(w *wanter) error {
	if w.ticket == "" {
		return nil
	}
	ticket := w.ticket
	w.ticket = ""
	r.say("%s leaves with %s", w.id, ticket)
	_, err := r.do(Leave(r.keys, ticket, false))
	return err
}

// pass lets so many units pass for all slots.
func (r *permitRun) pass(d int) error {
	ctx := context.Background()
	for i := range r.n {
		key := r.keys.SlotName(i)
		left, err := r.rdb.PTTL(ctx, key).Result()
		switch {
		case err != nil:
			return err
		case left <= 0:
		case left <= time.Duration(d)*unit:
			err = r.rdb.Del(ctx, key).Err()
		default:
			err = r.rdb.PExpire(ctx, key, left-time.Duration(d)*unit).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle delivers what was told, until nothing more is. Who is called asks; where a slot may have come free without a word, the first two look. After
// that nobody who is not frozen sleeps on a free slot (Inv8).
func (r *permitRun) settle() error {
	for range 100 {
		heard, err := r.ear.heard(r.rdb)
		if err != nil {
			return err
		}
		if len(heard) == 0 {
			again, err := r.look()
			if err != nil || !again {
				return err
			}
		}
		for _, message := range heard {
			words := strings.Fields(message) // client, letter, ticket
			if len(words) < 3 || words[1] != "c" && words[1] != "s" {
				continue
			}
			w := r.client(words[0])
			switch {
			case w.frozen:
				r.dirty = true
			case words[1] == "s" && (w.want == nil || w.ticket != words[2]):
			case w.want == nil || w.ticket != words[2]:
				_, err = r.do(Leave(r.keys, words[2], false))
				r.say("%s is called for %s, which it has not got", w.id, words[2])
			default:
				fields := len(r.owed)
				err = r.attempt(w, Turn{Called: words[1] == "c"})
				r.dirty = r.dirty || len(r.owed) > fields // it has no answer, and asks again later
			}
			if err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("it does not settle")
}

// look has the first two look where a slot may have come free without a word, and otherwise holds Inv8. again: something was done.
func (r *permitRun) look() (again bool, err error) {
	ctx := context.Background()
	heads, err := r.rdb.ZRange(ctx, r.keys.Line, 0, 1).Result()
	if err != nil || len(heads) == 0 {
		r.dirty = false
		return false, err
	}
	taken := 0
	for i := range r.n {
		n, err := r.rdb.Exists(ctx, r.keys.SlotName(i)).Result()
		if err != nil {
			return false, err
		}
		taken += int(n)
	}
	if taken == r.n {
		r.dirty = false
		return false, nil
	}
	first := r.client(heads[0])
	lives := !first.frozen && first.want != nil && first.ticket == heads[0]
	if lives && !r.dirty {
		return false, fmt.Errorf("Inv8: %s sleeps, and %d of %d slots are taken", heads[0], taken, r.n)
	}
	r.dirty = false
	for i, head := range heads {
		w := r.client(head)
		if w.frozen || w.want == nil || w.ticket != head {
			continue
		}
		turn := Turn{Look: true}
		if i == 1 {
			turn.Stale = heads[0] // the second has known for a while that the first does not come
		}
		r.say("%s looks", head)
		fields := len(r.owed)
		err := r.attempt(w, turn)
		r.dirty = len(r.owed) > fields
		return true, err
	}
	return false, nil // both are frozen or gone: those behind look later
}

// finish releases everything: nothing is left but counters (Inv9).
func (r *permitRun) finish() error {
	for _, w := range r.clients {
		w.frozen = false
		w.want = nil
		if err := r.leave(w); err != nil {
			return err
		}
	}
	for _, op := range r.late {
		if _, err := r.do(op); err != nil {
			return err
		}
	}
	for _, p := range r.all {
		if !p.released {
			if err := r.unlock(p); err != nil {
				return err
			}
		}
	}
	for _, field := range r.owed {
		if err := r.vacate(field); err != nil {
			return err
		}
	}
	for i := range r.n {
		fields, err := r.rdb.HKeys(context.Background(), r.keys.SlotName(i)).Result()
		if err != nil || len(fields) > 0 {
			return fmt.Errorf("Inv9: slot %d has %v: %v", i, fields, err)
		}
	}
	return nil
}

// P43, P44, Inv8, Inv13, Inv14: what holds of a semaphore in random sequences. FENCELOCK_SEED repeats one.
func TestPermitSequences(t *testing.T) {
	rdb := redistest.New(t)
	for seed := range seeds(t, 400) {
		if err := runPermits(rdb, fmt.Sprintf("s%d", seed), seed); err != nil {
			t.Fatal(err)
		}
	}
}
