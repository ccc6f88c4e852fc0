package scripts

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/linemodel"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// aged is what is left of an expiry after the op "age": less than any lease.
const aged = linemodel.Aged

var leases = []time.Duration{20 * time.Second, time.Minute, 10 * time.Minute, 100 * 365 * 24 * time.Hour}

// hold is one hold as its client sees it.
type hold struct {
	field   string
	fenced  bool
	acquire op
	held    bool // the client has been told so, and has not unlocked
	count   int
	change  int64
	ticket  bool // a try for it came with one
	open    *op  // a change of the count that has had no answer; until then there is no other (P2)
}

// sequence is one random run of commands against the scripts and the model.
type sequence struct {
	s       *Scripts
	keys    *Keys
	rng     *rand.Rand
	m       model
	holds   []*hold
	clients []*aClient
	ear     *listener // nil until somebody listens
	java    []string  // fields of Redisson's, which never sends a copy here
	sent    []op      // everything composed so far, whether it has arrived or not
	company []*neighbour

	arrived   map[string]bool  // by op.String()
	entered   map[string]bool  // fields that have had the lock
	freed     map[string]bool  // fields whose release has arrived
	ghosts    map[string]bool  // fields that a copy of acquire or transfer has brought back, or brought late
	token     int64            // the newest token
	places    map[string]int64 // by ticket: where it was in the line
	alone     map[string]bool  // holds that took the lock when nobody was in the line
	levels    map[string]int64 // by field: the newest change that has been counted
	lastState snapshot
	trace     []string

	named int // fields so far

	blind bool // the model is not asked: the invariants stand alone
}

func newSequence(rdb redis.UniversalClient, keys *Keys, seed uint64, blind bool) *sequence {
	q := &sequence{
		blind: blind,
		s:     New(rdb), keys: keys, rng: rand.New(rand.NewPCG(seed, 0)),
		arrived: map[string]bool{}, entered: map[string]bool{}, freed: map[string]bool{}, ghosts: map[string]bool{}, places: map[string]int64{}, alone: map[string]bool{}, levels: map[string]int64{},
		lastState: snapshot{hash: map[string]string{}, pttl: -2},
	}
	q.m.Line.Listened = map[string]int{}
	for _, id := range []string{"a", "b", "c", "d"} {
		q.clients = append(q.clients, &aClient{id: id})
	}
	return q
}

// runAll runs the random steps of this seed and then releases everything. The error says what differed, after the trace.
func (q *sequence) runAll(seed uint64) error {
	if err := q.settle(); err != nil {
		return err
	}
	defer q.leave()
	for range sequenceLength(seed) {
		if err := q.step(); err != nil {
			return q.failure(seed, err)
		}
	}
	if err := q.end(); err != nil {
		return q.failure(seed, err)
	}
	return nil
}

func (q *sequence) failure(seed uint64, err error) error {
	return fmt.Errorf("FENCELOCK_SEED=%d repeats this sequence:\n\t%s\n%w", seed, strings.Join(q.trace, "\n\t"), err)
}

// step does one thing that a client, or the world, may do next.
func (q *sequence) step() error {
	if q.rng.IntN(3) == 0 {
		return q.stepLine()
	}
	switch n := q.rng.IntN(100); {
	case n < 20:
		return q.stepAcquire()
	case n < 34:
		return q.stepLevel()
	case n < 46:
		return q.stepTransfer()
	case n < 52:
		h := q.pick()
		if h == nil {
			return nil
		}
		h.held = false
		return q.send("", op{Kind: "unlock", Field: h.field})
	case n < 59:
		o := op{Kind: "renew"}
		for range 1 + q.rng.IntN(3) {
			if h := q.pick(); h != nil {
				o.Targets = append(o.Targets, target{Field: h.field, Lease: q.lease()})
			}
		}
		return q.send("", o)
	case n < 62:
		o := op{Kind: "inspect"}
		if h := q.pick(); h != nil {
			o.Field = h.field
		}
		return q.send("", o)
	case n < 87:
		if len(q.sent) == 0 {
			return nil
		}
		return q.send("copy: ", q.sent[q.rng.IntN(len(q.sent))])
	case n < 91:
		return q.run("", op{Kind: "age"})
	case n < 94:
		return q.run("", op{Kind: "expire"})
	case n < 95:
		return q.run("", op{Kind: "persist"})
	case n < 97:
		return q.run("", op{Kind: "drop counter"})
	default:
		if len(q.java) > 0 && q.rng.IntN(2) == 0 {
			return q.run("", op{Kind: "redisson unlock", Field: q.java[len(q.java)-1], Lease: q.lease()})
		}
		if len(q.java) == 0 || q.rng.IntN(2) == 0 {
			q.java = append(q.java, q.newField("01234567-89ab-cdef-0123-456789abcdef"))
		}
		return q.run("", op{Kind: "redisson lock", Field: q.java[len(q.java)-1], Lease: q.lease()})
	}
}

// newField numbers the holds from 1 in each sequence, so that a repeated one reads the same.
func (q *sequence) newField(client string) string {
	q.named++
	return fmt.Sprint(client, ":", q.named)
}

// tokens is how many an op takes: mostly one.
func (q *sequence) tokens() int { return max(0, q.rng.IntN(12)-8) }

func (q *sequence) lease() time.Duration { return leases[q.rng.IntN(len(leases))] }

func (q *sequence) pick() *hold {
	if len(q.holds) == 0 {
		return nil
	}
	return q.holds[q.rng.IntN(len(q.holds))]
}

// stepAcquire is the try of a new hold, or of one that waits; some messages are under way for long.
func (q *sequence) stepAcquire() error {
	if h := q.pick(); h != nil && !h.held && h.count == 0 && q.rng.IntN(2) == 0 {
		return q.sendAcquire(h)
	}
	h := q.newHold("01234567-89ab-cdef-0123-456789abcdef")
	if q.rng.IntN(6) == 0 {
		q.delay(h.acquire)
		return nil
	}
	return q.sendAcquire(h)
}

// newHold is a new hold of this client.
func (q *sequence) newHold(client string) *hold {
	h := &hold{field: q.newField(client), fenced: q.rng.IntN(4) > 0}
	h.acquire = op{Kind: "acquire", Field: h.field, Fenced: h.fenced, Tokens: q.tokens(), Lease: q.lease()}
	q.holds = append(q.holds, h)
	return h
}

// stepTransfer passes a lock on to a new hold, which may fall back to an acquire afterwards: see stepAcquire.
func (q *sequence) stepTransfer() error {
	old := q.pick()
	if old == nil || !old.held || old.open != nil {
		return nil
	}
	h := q.newHold("01234567-89ab-cdef-0123-456789abcdef")
	o := h.acquire
	o.Kind, o.Old, o.Lease = "transfer", old.field, q.lease()
	old.held = false
	if q.rng.IntN(5) == 0 {
		q.delay(o)
		return nil
	}
	err := q.send("", o)
	if q.m.Field == h.field {
		h.held, h.count = true, 1
	}
	return err
}

func (q *sequence) sendAcquire(h *hold) error {
	err := q.send("", h.acquire)
	if q.m.Field == h.field {
		h.held, h.count = true, 1
	}
	return err
}

// stepLevel is a re-entry or an inner unlock of a hold that its client thinks it has.
func (q *sequence) stepLevel() error {
	h := q.pick()
	if h == nil || !h.held {
		return nil
	}
	if h.open == nil {
		h.change += 1 + q.rng.Int64N(6) // any growing numbers do; they soon have two digits
		o := op{Kind: "level", Field: h.field, Change: h.change}
		if h.count > 1 && q.rng.IntN(2) == 0 {
			h.count--
		} else {
			h.count++
			o.Fenced, o.Tokens, o.Lease = h.fenced, q.tokens(), q.lease()
		}
		o.Count = h.count
		h.open = &o
		if q.rng.IntN(5) == 0 {
			q.delay(o)
			return nil
		}
	}
	o := *h.open
	h.open = nil
	return q.send("", o)
}

// delay composes a command that has not arrived: the copies are the first that come.
func (q *sequence) delay(o op) {
	q.sent = append(q.sent, o)
	q.trace = append(q.trace, "under way: "+o.String())
}

func (q *sequence) send(note string, o op) error {
	if note == "" {
		q.sent = append(q.sent, o)
	}
	err := q.run(note, o)
	q.arrived[o.String()] = true
	if o.Kind == "unlock" || o.Kind == "release" || o.Kind == "quick" {
		q.freed[o.Field] = true
	}
	return err
}

// run gives the op to the scripts and to the model, and compares everything.
func (q *sequence) run(note string, o op) error {
	q.trace = append(q.trace, note+o.String())
	before := q.lastState
	at := span{Lo: time.Now()}
	got, left, err := q.call(o)
	if err != nil {
		return err
	}
	at.Hi = time.Now()
	read := span{Lo: time.Now()}
	after, err := take(q.s.rdb, q.keys)
	if err != nil {
		return err
	}
	read.Hi = time.Now()
	q.m.Line.Now, q.m.Line.Seen = got.Place, after.line
	want := q.m.Apply(o, at)
	if got != want && !q.blind {
		return fmt.Errorf("the reply is %+v, want %+v", got, want)
	}
	if want.TTL && !q.blind {
		if err := checkTTL(&q.m, left, at); err != nil {
			return fmt.Errorf("in the reply: %w", err)
		}
	}
	q.lastState = after
	if err := check(&q.m, after, read); err != nil && !q.blind {
		return fmt.Errorf("after it: %w", err)
	}
	heard, err := q.ear.heard(q.s.rdb)
	if err != nil {
		return err
	}
	heard = slices.DeleteFunc(heard, func(said string) bool { return strings.HasPrefix(said, " ") && (len(said) > 2 || o.Kind == "transfer") }) // of an import
	if !slices.Equal(heard, q.m.Line.Said) && !q.blind {
		return fmt.Errorf("the clients hear %q, want %q", heard, q.m.Line.Said)
	}
	if err := q.fair(o, got, heard, before, after); err != nil {
		return err
	}
	return q.invariants(o, got, before, after)
}

// invariants are numbers 1, 2, 5 and 10 of docs/protocol.md, as far as scripts keep them, read from Redis's state alone: the model may be wrong too.
func (q *sequence) invariants(o op, got reply, before, after snapshot) error {
	_, was := before.hash[o.Field]
	_, is := after.hash[o.Field]
	passes := o.Kind == "transfer"
	takes := o.Kind == "acquire" || o.Kind == "wait" || passes
	entered := takes && !was && is || o.Kind == "redisson lock" && is && got.Held ||
		o.Kind == "level" && was && q.levels[o.Field] < o.Change
	if entered && got.Token != 0 {
		if first := got.Token - int64(max(o.Tokens, 1)) + 1; first <= q.token {
			return fmt.Errorf("invariant 2: token %d was given after token %d", first, q.token)
		}
		q.token = got.Token
	}
	if o.Kind == "drop counter" {
		q.token = 0
	}

	holders := 0
	for field := range after.hash {
		if !strings.HasSuffix(field, "#") {
			holders++
		}
	}
	if holders > 1 {
		return fmt.Errorf("invariant 1: the hash has %d holds: %v", holders, after.hash)
	}

	late := q.arrived[o.String()]
	same := maps.Equal(before.hash, after.hash)
	if !same && (o.Kind == "renew" || o.Kind == "inspect") {
		return fmt.Errorf("invariant 10: it changed the hash from %v to %v", before.hash, after.hash)
	}
	ghost := q.ghosts[o.Field]
	switch {
	case !late || same:
	case (o.Kind == "acquire" || o.Kind == "wait") && len(before.hash) == 0 && maps.Equal(after.hash, map[string]string{o.Field: "1"}):
		ghost = true // nobody can tell it from the first; its unlock, sent again, removes it (P3)
	case passes && q.ghosts[o.Old] && before.hash[o.Old] != "" && maps.Equal(after.hash, map[string]string{o.Field: "1"}):
		ghost = true // of a ghost
	case o.Kind == "level" && ghost && was && q.levels[o.Field] < o.Change:
	case o.Kind == "wait" && o.Turn.Ticket != "" && marked(before.hash, after.hash): // a ghost in the line: P19
	case (o.Kind == "unlock" || o.Kind == "release" || o.Kind == "quick") && ghost && was && len(after.hash) == 0:
	default:
		return fmt.Errorf("invariant 5: a copy changed the hash from %v to %v", before.hash, after.hash)
	}
	if late && same && before.counter != "" && before.counter != after.counter {
		return fmt.Errorf("invariant 5: a copy moved the counter from %s to %s", before.counter, after.counter)
	}
	if o.Kind == "level" && is {
		q.levels[o.Field] = max(q.levels[o.Field], o.Change)
	}
	if takes && !was && is {
		q.ghosts[o.Field] = ghost || q.entered[o.Field] || q.ghosts[o.Old] || q.freed[o.Field]
		q.entered[o.Field] = true
		q.levels[o.Field] = 0
	}
	return nil
}

// end sends the unlock of every hold, in any order: whatever copies have left behind, nothing but the counter remains.
func (q *sequence) end() error {
	q.rng.Shuffle(len(q.holds), func(i, j int) { q.holds[i], q.holds[j] = q.holds[j], q.holds[i] })
	for _, h := range q.holds {
		if err := q.send("at the end: ", op{Kind: "unlock", Field: h.field}); err != nil {
			return err
		}
	}
	if err := q.endLine(); err != nil {
		return err
	}
	for _, n := range q.company {
		if err := n.check(q); err != nil {
			return err
		}
	}
	for field := range q.lastState.hash {
		for _, h := range q.holds {
			if strings.TrimSuffix(field, "#") == h.field {
				return fmt.Errorf("invariant 9: %s is left after its unlock", field)
			}
		}
	}
	return nil
}

// seeds are those of so many sequences, and always the same: FENCELOCK_SEED repeats the sequence of one seed, and "fresh" takes others each time.
func seeds(t *testing.T, n int) iter.Seq[uint64] {
	first, one := firstSeed(t)
	if one {
		n = 1
	}
	if os.Getenv("REDIS_SERVER") == "" { // miniredis takes a tenth of a second for some, with -race
		n = (n + 9) / 10
	}
	return func(yield func(uint64) bool) {
		for i := range uint64(n) {
			if !yield(first + i) {
				return
			}
		}
	}
}

// sequenceLength is short for most, so that a failure is short to read. It belongs to the seed, which thus says all.
func sequenceLength(seed uint64) int { return 4 + int(seed%28) }

// firstSeed is 0, or what FENCELOCK_SEED says; one tells whether that is one seed.
func firstSeed(t *testing.T) (first uint64, one bool) {
	switch env := os.Getenv("FENCELOCK_SEED"); env {
	case "":
		return 0, false
	case "fresh":
		return rand.Uint64() >> 16, false
	default:
		first, err := strconv.ParseUint(env, 10, 64)
		if err != nil {
			t.Fatalf("FENCELOCK_SEED: %v", err)
		}
		return first, true
	}
}

// TestSequences_ScriptsDoWhatTheModelSays carries invariants 2 and 5 of docs/protocol.md, by P1 and P2.
func TestSequences_ScriptsDoWhatTheModelSays(t *testing.T) {
	rdb := redistest.New(t)
	for seed := range seeds(t, 400) {
		if err := newSequence(rdb, newKeys(t), seed, false).runAll(seed); err != nil {
			t.Fatal(err)
		}
	}
}

// The invariants that read Redis's state alone need no model: what is broken on purpose they find by themselves (internal/test/breaks).
func TestSequences_TheInvariantsStandAlone(t *testing.T) {
	rdb := redistest.New(t)
	for seed := range seeds(t, 200) {
		if err := newSequence(rdb, newKeys(t), seed, true).runAll(seed); err != nil {
			t.Fatal(err)
		}
	}
}

// A seed that a failure names repeats its sequence to the letter.
func TestSequences_ASeedRepeats(t *testing.T) {
	rdb := redistest.New(t)
	var traces [2][]string
	for i := range traces {
		q := newSequence(rdb, newKeys(t), 23, false)
		if err := q.runAll(23); err != nil {
			t.Fatal(err)
		}
		traces[i] = q.trace
	}
	if len(traces[0]) == 0 || !slices.Equal(traces[0], traces[1]) {
		t.Errorf("the first time:\n%v\nthe second time:\n%v", traces[0], traces[1])
	}
}
