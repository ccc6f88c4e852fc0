package scripts

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/linemodel"
)

// Random sequences of what clients do with a read-write lock, of what networks do with their commands, and in half of the sequences of what the
// threads of a JVM do with the same lock through Redisson. Time is counted in units, as in the sequences of permits.

// longestLease is the longest lease of a hold of ours, in units.
const longestLease = 19

// An rwClient is a client of a read-write lock. It waits to read and to write as two clients.
type rwClient struct {
	id     string
	frozen bool // it does nothing, and hears what is said when it goes on
	deaf   bool // it does not listen
	stays  int
	fields int
}

// A seat is what a client does on one side of the lock.
type seat struct {
	by     *rwClient
	keys   *Keys
	wants  bool
	lease  int
	ticket string // of its stay in the line; "" for none
	score  int64  // of that ticket, 0 before an answer
	back   bool   // the client was deaf, and its place may be lost
	knows  bool   // that it is one of the first two in the line
	asked  *rwHold
}

func (s *seat) write() bool { return s.keys.Side() == Writes }

// awake tells whether the client acts on what it hears.
func (s *seat) awake() bool { return !s.by.frozen && !s.by.deaf }

// An rwHold is a hold that a client has asked for.
type rwHold struct {
	seat     *seat
	field    string
	lease    int
	fenced   bool
	token    int64
	order    int  // in which Redis has granted it; 0 for not yet
	ends     int  // when its lease in Redis ends
	until    int  // as its client trusts it; 0 where that has no answer
	shows    bool // its client has had the lock, and may show the token
	released bool // its client has sent the release
	gone     bool // Redis has executed the release
	passed   bool // the server was promoted since: newer readers have a larger token
}

// A late is a command that arrives later.
type late struct {
	what string
	run  func() error
}

// A shown is an operation of a hold that the storage has accepted.
type shown struct {
	h     *rwHold
	write bool
}

// rwState is what Redis keeps for the lock.
type rwState struct {
	hash map[string]string
	left time.Duration
	line []stay
}

func (s rwState) mode() string { return s.hash["mode"] }

// open tells whether the lock is open to a reader, or to a writer.
func (s rwState) open(write bool) bool { return s.mode() == "" || s.mode() == "read" && !write }

// rwRun is one sequence.
type rwRun struct {
	s      *Scripts
	rdb    redis.UniversalClient
	keys   *Keys // of the side that reads
	beside *Keys // of another lock
	rng    *rand.Rand
	ear    *listener
	said   []string // what nobody has acted on
	seats  []*seat
	jvm    *jvm // nil in the sequences without Redisson
	now    int
	grants int
	state  rwState
	all    []*rwHold // that Redis has granted
	owed   []*rwHold // that have no answer
	late   []late
	floor  bool  // tokens have one
	unread bool  // tokens are not compared
	phase  int64 // the token of the holds that read now; 0 for none
	latest int64 // the largest token so far
	mark   int64 // of the storage
	shown  []shown
	longer bool // a JVM has set the hash to last longer than all leases
	dirty  bool // the lock may have been opened to somebody without a word: who may know of it looks
	trace  []string
}

func (r *rwRun) say(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf("t=%-3d ", r.now)+fmt.Sprintf(format, args...))
}

// runReadWrite runs a sequence on the lock of this name, which no other sequence has. unread: tokens are not compared, but by the storage.
func runReadWrite(rdb redis.UniversalClient, name string, seed uint64, unread bool) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	if seed%5 == 0 {
		name = "{" + name + "}"
	}
	r := &rwRun{s: New(rdb), rdb: rdb, keys: ReadWriteOf(name, Reads), beside: ReadWriteOf(name+"+", Reads), rng: rng, floor: seed%3 == 0, unread: unread}
	if rng.IntN(2) == 0 {
		r.jvm = newJVM(r)
	}
	var err error
	if r.ear, err = newListener(rdb, r.keys); err != nil {
		return err
	}
	defer r.ear.Close()
	if err = r.enlist(3 + rng.IntN(3)); err == nil {
		err = r.run(40 + int(seed%40))
	}
	if err != nil {
		return fmt.Errorf("FENCELOCK_SEED=%d repeats this sequence:\n\t%s\n%w", seed, strings.Join(r.trace, "\n\t"), err)
	}
	return rdb.Del(context.Background(), r.keys.Token).Err()
}

// enlist makes so many clients.
func (r *rwRun) enlist(n int) error {
	if err := r.ear.listen(context.Background(), "", true); err != nil {
		return err
	}
	for i := range n {
		c := &rwClient{id: "c" + strconv.Itoa(i)}
		for _, side := range []Side{Reads, Writes} {
			r.seats = append(r.seats, &seat{by: c, keys: ReadWriteOf(r.keys.Lock, side)})
		}
		if err := r.listen(c, true); err != nil {
			return err
		}
	}
	return r.observe()
}

// listen has a client listen for what it is told on both sides, or not any more.
func (r *rwRun) listen(c *rwClient, begin bool) error {
	said, err := r.ear.heard(r.rdb) // a change drops what was said before
	if err != nil {
		return err
	}
	r.said = append(r.said, said...)
	c.deaf = !begin
	change := r.ear.Unsubscribe
	if begin {
		change = r.ear.Subscribe
	}
	for _, s := range r.seats {
		if s.by == c {
			s.back = s.back || begin && s.ticket != ""
			if err := r.ear.change(context.Background(), change, s.keys.Calls(c.id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rwRun) run(steps int) error {
	for range steps {
		err := r.step()
		if err == nil && r.rng.IntN(4) > 0 { // messages may be late
			err = r.settle()
		}
		if err == nil {
			err = r.occupied()
		}
		if err != nil {
			return err
		}
	}
	if err := r.settle(); err != nil {
		return err
	}
	return r.finish()
}

// step does one thing that a client or the world may do.
func (r *rwRun) step() error {
	if r.jvm != nil && r.rng.IntN(4) == 0 {
		return r.jvm.step()
	}
	s := r.seats[r.rng.IntN(len(r.seats))]
	switch n := r.rng.IntN(100); {
	case n < 32:
		if s.by.frozen {
			return nil
		}
		if !s.wants {
			s.wants, s.lease = true, 5+r.rng.IntN(longestLease-4)
		}
		return r.attempt(s, Turn{})
	case n < 50:
		if h := r.held(); h != nil {
			return r.unlock(h)
		}
	case n < 55:
		if s.wants && !s.by.frozen {
			s.wants = false
			return r.leave(s)
		}
	case n < 62:
		if h := r.held(); h != nil {
			return r.renew(h)
		}
	case n < 70:
		return r.pass(1 + r.rng.IntN(12))
	case n < 73:
		s.by.frozen = !s.by.frozen
		r.say("%s frozen: %v", s.by.id, s.by.frozen)
		r.dirty = true
	case n < 75:
		r.say("%s listens: %v", s.by.id, s.by.deaf)
		r.dirty = true
		return r.listen(s.by, s.by.deaf)
	case n < 79:
		if len(r.owed) > 0 {
			return r.unlock(r.owed[r.rng.IntN(len(r.owed))])
		}
	case n < 85:
		return r.arrive()
	case n < 86:
		return r.force()
	case n < 88 && r.floor:
		return r.promote()
	default:
		return r.show()
	}
	return nil
}

// held returns a hold that its client has not unlocked, of a client that is not frozen; nil for none.
func (r *rwRun) held() *rwHold {
	return r.pick(func(h *rwHold) bool { return h.shows && !h.released && !h.seat.by.frozen })
}

func (r *rwRun) pick(is func(*rwHold) bool) *rwHold {
	var some []*rwHold
	for _, h := range r.all {
		if is(h) {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[r.rng.IntN(len(some))]
}

func (r *rwRun) trusted(h *rwHold) bool { return h.shows && !h.released && r.now < h.until }

// do executes the op, alone or beside another one in a batch, and looks at what Redis keeps then.
func (r *rwRun) do(op Op) (Answer, error) {
	var a Answer
	var err error
	other := Unlock(r.beside, "nobody:1", false)
	switch r.rng.IntN(4) {
	case 0:
		said := together(r.s, op, other)
		a, err = said[0].Answer, said[0].err
	case 1:
		said := together(r.s, other, op)
		a, err = said[1].Answer, said[1].err
	default:
		a, err = r.s.Do(context.Background(), op)
	}
	if err == nil {
		err = r.observe()
	}
	return a, err
}

// attempt asks for the lock once. The answer may be lost, or the command arrive later.
func (r *rwRun) attempt(s *seat, turn Turn) error {
	s.by.fields++
	h := &rwHold{seat: s, lease: s.lease, fenced: r.rng.IntN(6) > 0}
	h.field = s.keys.FieldOf(fmt.Sprintf("%s:-%d%d", s.by.id, map[Side]int{Reads: 1, Writes: 2}[s.keys.Side()], s.by.fields))
	s.asked = h
	back := s.back
	if s.ticket == "" && !s.by.deaf && r.rng.IntN(4) > 0 {
		s.by.stays++
		s.ticket, s.score, s.knows = s.keys.TicketOf(fmt.Sprintf("%s:%d", s.by.id, s.by.stays)), 0, false
	}
	if !s.by.deaf {
		turn.Ticket = s.ticket
		turn.Unproven = s.ticket != "" && r.rng.IntN(3) == 0
		if s.back && s.ticket != "" {
			turn.Score, s.back = s.score, false
		}
	}
	op := Acquire(s.keys, h.fenced, h.field, time.Duration(h.lease)*unit)
	if r.floor {
		op = op.WithFloor(0)
	}
	if r.rng.IntN(20) > 0 {
		op = op.InTurn(turn)
	} else { // a user without the right to the line
		op.turn, s.back, r.dirty = Turn{}, back, true
	}
	sent := r.now
	switch r.rng.IntN(14) {
	case 0:
		r.say("%s asks by %s with %q, which is late", s.by.id, h.field, turn.Ticket)
		r.owed = append(r.owed, h)
		s.knows = true
		r.late = append(r.late, late{"acquire of " + h.field, func() error { return r.ask(h, op, sent, s.asked == h && s.wants && !s.by.frozen) }})
		return nil
	case 1:
		r.owed = append(r.owed, h)
		s.knows = true
		return r.ask(h, op, sent, false)
	}
	return r.ask(h, op, sent, true)
}

// ask sends an attempt, which was begun at this time. heard: its client gets the answer.
func (r *rwRun) ask(h *rwHold, op Op, sent int, heard bool) error {
	s, before := h.seat, r.state
	a, err := r.do(op)
	if err != nil {
		return err
	}
	r.say("%s asks by %s for %d with %+v: held %v token %d before %d, heard: %v", s.by.id, h.field, h.lease, op.turn, a.Held, a.Token, a.Before, heard)
	if a.Held {
		err = r.granted(h, op, a, before)
	}
	if err != nil || !heard {
		return err
	}
	if s.ticket == op.turn.Ticket && s.ticket != "" {
		s.score, s.knows = a.Score, s.knows || a.Before == 0 || a.Before == 1
	}
	if !a.Held {
		return nil
	}
	if r.now >= sent+h.lease { // P6: it is a failed attempt
		if !slices.Contains(r.owed, h) {
			r.owed = append(r.owed, h)
		}
		return nil
	}
	r.owed = slices.DeleteFunc(r.owed, func(o *rwHold) bool { return o == h })
	h.shows, h.until = true, sent+h.lease
	s.wants = false
	if s.ticket == op.turn.Ticket {
		s.ticket = ""
	}
	if err := r.exclusive(); err != nil {
		return err
	}
	return r.leave(s) // it had a place, and asked without
}

// granted notes that Redis has granted a hold, and checks its token and its turn.
func (r *rwRun) granted(h *rwHold, op Op, a Answer, before rwState) error {
	r.grants++
	h.order, h.token, h.ends, h.gone = r.grants, a.Token, r.now+h.lease, false // its release may have come before
	r.all = append(r.all, h)
	if h.fenced && !r.unread {
		switch {
		case !h.seat.write() && r.phase != 0 && h.token != r.phase:
			return fmt.Errorf("Inv2: token %d in the phase of %d", h.token, r.phase)
		case (h.seat.write() || r.phase == 0) && h.token <= r.latest:
			return fmt.Errorf("Inv2: token %d after %d", h.token, r.latest)
		}
		r.latest = max(r.latest, h.token)
		if !h.seat.write() {
			r.phase = h.token
		}
	}
	if !op.isInTurn() {
		return nil
	}
	if line := r.state.line; len(line) > 0 && h.seat.write() && !op.turn.Called && !op.turn.Look {
		r.seatOf(line[0].Ticket).knows = true // P32: it is not told that it is the first, and looks as those do who are behind
	}
	if slices.ContainsFunc(r.state.line, func(o stay) bool { return o.Ticket == op.turn.Ticket }) {
		return fmt.Errorf("line: %s has the lock, and is in the line with %s", h.field, op.turn.Ticket)
	}
	own := int64(1) << 62
	if op.turn.Score != 0 {
		own = op.turn.Score
	}
	for _, o := range before.line {
		if o.Ticket == op.turn.Ticket {
			own = o.Score
		}
	}
	for _, o := range before.line {
		if o.Score < own && slices.Contains(r.state.line, o) {
			return fmt.Errorf("Inv14: %s has the lock before %s", h.field, o.Ticket)
		}
	}
	return nil
}

// unlock releases a hold, or the hold of an attempt without an answer. The command may arrive later, or a copy of it.
func (r *rwRun) unlock(h *rwHold) error {
	trusted := r.trusted(h)
	h.released = true
	op := Unlock(h.seat.keys, h.field, false)
	if r.rng.IntN(5) > 0 {
		op = op.Calling("", r.rng.IntN(2))
	}
	send := func() error { return r.release(h, op) }
	switch r.rng.IntN(10) {
	case 0:
		r.say("%s unlocks, which is late", h.field)
		r.late = append(r.late, late{"unlock of " + h.field, send})
		return nil
	case 1:
		r.late = append(r.late, late{"unlock of " + h.field, send})
	}
	if there := h.field; trusted && r.state.hash[there] == "" {
		return fmt.Errorf("Inv1: %s is not there, and was trusted", there)
	}
	return send()
}

// release executes the command that releases a hold.
func (r *rwRun) release(h *rwHold, op Op) error {
	before := r.state
	h.gone = true
	r.dirty = r.dirty || op.kind == &readWriteUnlocks // the first hears of it on the lock's own channel (P25)
	a, err := r.do(op)
	if err != nil {
		return err
	}
	r.say("%s unlocks, in turn %v: %v", h.field, op.kind == &readWriteReleases, a.Held)
	if want := before.hash[h.field] != ""; a.Held != want {
		return fmt.Errorf("Inv5: the hold is there: %v, and the answer is %v", want, a.Held)
	}
	opened := before.mode() != "" && r.state.mode() == ""
	if opened && a.Receivers == 0 && (len(r.state.line) == 0 || r.seatOf(r.state.line[0].Ticket).by.deaf) {
		return fmt.Errorf("P37: nobody was told that %s was released", h.field)
	}
	return nil
}

// force releases one of the holds that are there, whoever has it.
func (r *rwRun) force() error {
	fields := slices.Sorted(maps.Keys(r.state.hash))
	fields = slices.DeleteFunc(fields, func(field string) bool { return field == "mode" || field == "phase" })
	if len(fields) == 0 {
		return nil
	}
	field := fields[r.rng.IntN(len(fields))]
	r.say("%s is forced open", field)
	op := Unlock(r.keys, field, false).Calling("", NotTheHolder)
	for _, h := range r.all {
		if h.field == field {
			h.released = true
			return r.release(h, op)
		}
	}
	if _, err := r.do(op); err != nil {
		return err
	}
	return r.jvm.forced(field)
}

// promote makes the phase, if there is one, one that began on a server with another replication id.
func (r *rwRun) promote() error {
	phase, has := r.state.hash["phase"]
	if !has {
		return nil
	}
	r.say("the server is promoted")
	r.phase = 0
	for _, h := range r.all {
		h.passed = true
	}
	token, _, _ := strings.Cut(phase, ":")
	if err := r.rdb.HSet(context.Background(), r.keys.Lock, "phase", token+":another").Err(); err != nil {
		return err
	}
	return r.observe()
}

// renew extends the lease of a hold. The command may arrive later.
func (r *rwRun) renew(h *rwHold) error {
	trusted, sent := r.trusted(h), r.now
	send := func(heard bool) error {
		renewal := []Renewal{{Keys: h.seat.keys, Field: h.field, Lease: time.Duration(h.lease) * unit}}
		there := r.state.hash[h.field] != "" && !h.gone && r.now < h.ends
		r.s.Renew(context.Background(), renewal)
		r.say("%s renews: %v", h.field, renewal[0].Err)
		if err := renewal[0].Err; there && err != nil || !there && err != ErrGone {
			return fmt.Errorf("P53: the hold is there: %v, and the answer is %v", there, err)
		}
		if there {
			h.ends = max(h.ends, r.now+h.lease)
			if heard {
				h.until = max(h.until, sent+h.lease)
			}
		}
		return r.observe()
	}
	if r.rng.IntN(8) == 0 {
		r.late = append(r.late, late{"renewal of " + h.field, func() error { return send(false) }})
		return nil
	}
	if trusted && r.state.hash[h.field] == "" {
		return fmt.Errorf("Inv1: %s is not there, and is trusted", h.field)
	}
	return send(trusted)
}

// leave gives up the place in the line. The command may arrive later.
func (r *rwRun) leave(s *seat) error {
	if s.ticket == "" {
		return nil
	}
	ticket := s.ticket
	s.ticket, s.back = "", false
	send := func() error { return r.giveUp(s, ticket) }
	if r.rng.IntN(8) == 0 {
		r.dirty = true // until it arrives its client is asked in vain
		r.late = append(r.late, late{"leave of " + ticket, send})
		return nil
	}
	return send()
}

func (r *rwRun) giveUp(s *seat, ticket string) error {
	r.say("%s leaves with %s", s.by.id, ticket)
	_, err := r.do(Leave(s.keys, ticket, false))
	return err
}

// arrive executes a command that was late.
func (r *rwRun) arrive() error {
	if len(r.late) == 0 {
		return nil
	}
	i := r.rng.IntN(len(r.late))
	c := r.late[i]
	r.late = slices.Delete(r.late, i, i+1)
	r.say("late %s arrives", c.what)
	return c.run()
}

// show has a hold, which may be over, show its token to a storage, to read there or to write.
func (r *rwRun) show() error {
	h := r.pick(func(h *rwHold) bool { return h.shows && h.fenced })
	if h == nil {
		return nil
	}
	if h.token < r.mark {
		if r.trusted(h) && !h.passed {
			return fmt.Errorf("Inv4: %s is trusted, and is refused with %d after %d", h.field, h.token, r.mark)
		}
		return nil
	}
	r.mark = h.token
	op := shown{h, h.seat.write()}
	r.say("%s shows %d", h.field, h.token)
	for _, o := range r.shown {
		if (o.write || op.write) && o.h.order > h.order {
			return fmt.Errorf("Inv4: %s is accepted after %s, which was granted later", h.field, o.h.field)
		}
	}
	r.shown = append(r.shown, op)
	return nil
}

// passText shortens what the lock and the keys of its holds have left, in one step, and all of them alike: on Redis 7.0 and older the clock goes on within
// a script.
const passText = `
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local keys = redis.call('KEYS', ARGV[2])
keys[#keys + 1] = KEYS[1]
for _, key in ipairs(keys) do
  local at, left
  repeat
    at, left = now(), redis.call('PTTL', key)
  until at == now()
  if left >= 0 and left <= tonumber(ARGV[1]) then
    redis.call('DEL', key)
  elseif left >= 0 then
    redis.call('PEXPIREAT', key, string.format('%.0f', at + left - tonumber(ARGV[1])))
  end
end
return #keys`

// pass lets so many units pass for the lock.
func (r *rwRun) pass(d int) error {
	r.say("%d pass", d)
	r.now += d
	r.dirty = true
	own := "*" + r.keys.Lock + "*:rwlock_timeout:*"
	if err := r.rdb.Eval(context.Background(), passText, []string{r.keys.Lock}, (time.Duration(d) * unit).Milliseconds(), own).Err(); err != nil {
		return err
	}
	return r.observe()
}

// observe looks at what Redis keeps for the lock, and checks what holds at all times.
func (r *rwRun) observe() error {
	ctx := context.Background()
	pipe := r.rdb.Pipeline()
	hash, left, line := pipe.HGetAll(ctx, r.keys.Lock), pipe.PTTL(ctx, r.keys.Lock), pipe.ZRangeWithScores(ctx, r.keys.Line, 0, -1)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	r.state = rwState{hash: hash.Val(), left: left.Val()}
	for _, z := range line.Val() {
		r.state.line = append(r.state.line, stay{Ticket: z.Member.(string), Score: int64(z.Score)})
	}
	if r.state.mode() != "read" {
		r.phase = 0
	}
	if len(r.state.hash) == 0 {
		r.longer = false
		return nil
	}
	if r.state.left <= 0 {
		return fmt.Errorf("the hash %v has no expiry", r.state.hash)
	}
	phase, has := r.state.hash["phase"]
	if _, err := strconv.ParseFloat(phase, 64); has && (err == nil || r.state.mode() != "read") {
		return fmt.Errorf("P47: the hash is %v", r.state.hash)
	}
	return nil
}

// occupied checks that a lock which is taken has a lease that has not ended (P51).
func (r *rwRun) occupied() error {
	if r.longer || r.state.mode() == "" || r.jvm != nil && r.jvm.lives() {
		return nil
	}
	for _, h := range r.all {
		if !h.gone && r.now < h.ends {
			return nil
		}
	}
	return fmt.Errorf("P51: nobody has the lock, which is %v for %v", r.state.hash, r.state.left)
}

// exclusive checks that one holder at most trusts a hold that writes, and none then a hold that reads.
func (r *rwRun) exclusive() error {
	var writes, reads string
	for _, h := range r.all {
		if !r.trusted(h) {
			continue
		}
		if !h.seat.write() {
			reads = h.field
			continue
		}
		if writes != "" {
			return fmt.Errorf("Inv1: %s and %s write", writes, h.field)
		}
		writes = h.field
	}
	if writes != "" && reads != "" {
		return fmt.Errorf("Inv1: %s writes, and %s reads", writes, reads)
	}
	if r.jvm != nil {
		return r.jvm.exclusive(writes, reads)
	}
	return nil
}

// seatOf returns whose ticket it is.
func (r *rwRun) seatOf(ticket string) *seat {
	id := linemodel.ClientOf(ticket)
	i := slices.IndexFunc(r.seats, func(s *seat) bool { return s.keys.InLine(s.by.id) == id })
	return r.seats[i]
}

// settle delivers what was told, until nothing more is. Who is called asks. After that nobody who is awake sleeps on a lock that is open to it (Inv8).
func (r *rwRun) settle() error {
	for range 200 {
		heard, err := r.ear.heard(r.rdb)
		if err != nil {
			return err
		}
		heard, r.said = append(r.said, heard...), nil
		if len(heard) == 0 {
			again, err := r.look()
			if err != nil || !again {
				return err
			}
		}
		for _, message := range heard {
			if err := r.hear(strings.Fields(message)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("it does not settle")
}

// hear does what a client does that hears a message: client, letter, ticket. A message on the lock's own channel has one word, and tells nobody in the line
// of a release that calls.
func (r *rwRun) hear(words []string) error {
	if len(words) < 3 {
		return nil
	}
	s, ticket := r.seatOf(words[0]+":"), words[2]
	if s.ticket == ticket {
		s.knows = true
	}
	switch {
	case s.by.frozen:
		r.dirty = true
	case words[1] == "d" && s.ticket == ticket:
		s.ticket, s.back = "", false
		if s.wants {
			return r.attempt(s, Turn{})
		}
	case words[1] == "c" && (!s.wants || s.ticket != ticket):
		r.say("%s is called for %s, which it has not got", s.by.id, ticket)
		_, err := r.do(Leave(s.keys, ticket, false))
		return err
	case words[1] == "s" && (!s.wants || s.ticket != ticket):
	case words[1] == "c", words[1] == "s":
		owed := len(r.owed)
		err := r.attempt(s, Turn{Called: words[1] == "c"})
		r.dirty = r.dirty || len(r.owed) > owed // it has no answer, and asks again later
		return err
	}
	return nil
}

// look has the first client that is awake look, where the lock may have been opened without a word. Otherwise look checks Inv8, and that the first client
// knows where it is (P31). again: something was done.
func (r *rwRun) look() (again bool, err error) {
	line := r.state.line
	if len(line) == 0 {
		r.dirty = false
		return false, nil
	}
	first := r.seatOf(line[0].Ticket)
	if first.awake() && first.wants && first.ticket == line[0].Ticket && !first.knows && !first.back {
		return false, fmt.Errorf("P31: %s is the first, and does not know it", line[0].Ticket)
	}
	if !r.state.open(first.write()) {
		if s := r.seatOf(line[min(1, len(line)-1)].Ticket); !first.awake() && r.state.open(s.write()) && s.awake() && s.wants && s.ticket == line[1].Ticket {
			return true, r.passes(s, line[0].Ticket)
		}
		r.dirty = false
		return false, nil
	}
	if first.awake() && !r.dirty {
		return false, fmt.Errorf("Inv8: %s sleeps, and the mode is %q", line[0].Ticket, r.state.mode())
	}
	r.dirty = false
	for i, o := range line {
		s := r.seatOf(o.Ticket)
		if !s.awake() {
			continue
		}
		if !s.wants || s.ticket != o.Ticket { // it will be called
			if i > 0 {
				continue
			}
			r.dirty = true
			return true, r.giveUp(s, o.Ticket)
		}
		return true, r.looks(s, i, line[0].Ticket)
	}
	return false, nil
}

// looks has a client look that so many are before, the first of which has the ticket head.
func (r *rwRun) looks(s *seat, before int, head string) error {
	turn := Turn{Look: true}
	if before > 0 {
		turn.Stale = head // it has known for a while that the first does not come
	}
	owed := len(r.owed)
	err := r.attempt(s, turn)
	r.dirty = r.dirty || len(r.owed) > owed
	if err != nil || before == 0 || r.dirty {
		return err
	}
	if line := r.state.line; len(line) > 0 && line[0].Ticket == head && r.state.open(r.seatOf(head).write()) {
		return fmt.Errorf("Inv8: %s stays the first, and does not come", head)
	}
	r.dirty = true // the next one may be late too
	return nil
}

// passes has a client that waits to read look, as the second behind one with the ticket head, which waits to write, and does not come (P55).
func (r *rwRun) passes(s *seat, head string) error {
	for _, stale := range []string{"", head} { // it hears no sign of life between the two
		owed := len(r.owed)
		r.dirty = false
		err := r.attempt(s, Turn{Look: true, Stale: stale})
		r.dirty = r.dirty || len(r.owed) > owed
		if err != nil || r.dirty || len(r.state.line) == 0 || r.state.line[0].Ticket != head {
			return err
		}
		if r.seatOf(head).by.deaf { // for which nobody listens
			break
		}
	}
	return fmt.Errorf("P55: %s stays the first, and does not come, and others read", head)
}

// finish releases everything: nothing is left but the counter (Inv9).
func (r *rwRun) finish() error {
	for _, s := range r.seats {
		s.by.frozen, s.wants = false, false
		if err := r.leave(s); err != nil {
			return err
		}
	}
	for len(r.late) > 0 {
		if err := r.arrive(); err != nil {
			return err
		}
	}
	for _, h := range slices.Concat(r.all, r.owed) {
		if !h.gone {
			if err := r.release(h, Unlock(h.seat.keys, h.field, false).Calling("", 0)); err != nil {
				return err
			}
		}
	}
	for _, o := range r.state.line {
		if err := r.giveUp(r.seatOf(o.Ticket), o.Ticket); err != nil {
			return err
		}
	}
	if r.jvm != nil {
		if err := r.jvm.finish(); err != nil {
			return err
		}
	}
	if err := r.occupied(); err != nil {
		return err
	}
	left, err := r.rdb.Keys(context.Background(), "*"+r.keys.Lock+"*").Result()
	if left = slices.DeleteFunc(left, func(key string) bool { return key == r.keys.Token }); err != nil || len(left) > 0 {
		return fmt.Errorf("Inv9: %q are left: %v, %v", left, r.state.hash, err)
	}
	return nil
}

// P46 to P51, P53, P55, Inv1, Inv2, Inv4, Inv8, Inv9, Inv14: what holds of a read-write lock in random sequences. FENCELOCK_SEED repeats one.
func TestReadWriteSequences(t *testing.T) {
	rdb := nodeServer(t)
	for seed := range seeds(t, 400) {
		if err := runReadWrite(rdb, fmt.Sprintf("rw-%d-", seed), seed, false); err != nil {
			t.Fatal(err)
		}
	}
}

// What the storage accepts shows a wrong token without a look at the tokens.
func TestReadWriteSequences_ByTheStorage(t *testing.T) {
	rdb := nodeServer(t)
	for seed := range seeds(t, 100) {
		if err := runReadWrite(rdb, fmt.Sprintf("st-%d-", seed), seed, true); err != nil {
			t.Fatal(err)
		}
	}
}
