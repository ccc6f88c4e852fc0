package scripts

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The form of Redisson's read-write lock, for the sequences: threads of a JVM that share the lock.
var (
	//go:embed testdata/redisson_readwrite.lua
	redissonText      string
	redissonReadWrite = redis.NewScript(redissonText)
)

// A jvm is the threads of a JVM that use the read-write lock of a sequence. Its leases are longer than those of this library's holds: its renewal sets the
// hash to its own lease, whatever the others have.
type jvm struct {
	r       *rwRun
	threads []*thread
	keys    bool // of levels may be left, which no hold has
}

// A thread is one that reads or writes, or does both, as it sees itself.
type thread struct {
	field  string
	reads  []int // until when it trusts each of its levels
	levels int   // of its hold that writes
	until  int   // as it trusts that hold
}

func newJVM(r *rwRun) *jvm {
	return &jvm{r: r, threads: []*thread{{field: "jvm:1"}, {field: "jvm:2"}, {field: "jvm:3"}}}
}

// javaLease is the lease of a JVM's holds, in units.
const javaLease = longestLease + 1

func (t *thread) trustsRead(now int) bool {
	for _, until := range t.reads {
		if now < until {
			return true
		}
	}
	return false
}

func (t *thread) trustsWrite(now int) bool { return t.levels > 0 && now < t.until }

// lives tells whether any lease of the threads has not ended.
func (j *jvm) lives() bool {
	for _, t := range j.threads {
		if t.trustsRead(j.r.now) || t.trustsWrite(j.r.now) {
			return true
		}
	}
	return false
}

// exclusive checks what each thread trusts beside holds of ours, one that writes and one that reads; "" for none. The threads among themselves are
// Redisson's affair.
func (j *jvm) exclusive(writes, reads string) error {
	for _, t := range j.threads {
		switch now := j.r.now; {
		case writes != "" && t.trustsRead(now):
			return fmt.Errorf("Inv1: %s writes, and %s reads", writes, t.field)
		case t.trustsWrite(now) && writes+reads != "":
			return fmt.Errorf("Inv1: %s writes, and so does %q, or %q reads", t.field, writes, reads)
		}
	}
	return nil
}

// step has a thread do something.
func (j *jvm) step() error {
	t := j.threads[j.r.rng.IntN(len(j.threads))]
	now := j.r.now
	if !t.trustsRead(now) {
		t.reads = nil
	}
	if !t.trustsWrite(now) {
		t.levels = 0
	}
	switch n := j.r.rng.IntN(10); {
	case t.reads == nil && t.levels == 0 && n < 6:
		return j.lockToRead(t)
	case t.reads == nil && t.levels == 0:
		return j.lockToWrite(t)
	case n < 2 && t.reads != nil:
		return j.renew(t, "renew to read")
	case n < 2:
		return j.renew(t, "renew to write")
	case n == 2 && t.levels > 0 && t.reads == nil:
		return j.lockToWrite(t)
	case n > 2 && n < 6 && (t.levels == 0 && len(t.reads) < 3 || t.reads == nil): // Redisson's own release of a second level within a write sets the hash to end too early
		return j.lockToRead(t)
	case t.levels > 0 && (n < 8 || t.reads == nil):
		return j.unlockToWrite(t)
	}
	return j.unlockToRead(t)
}

// do has a thread do something in Redis.
func (j *jvm) do(t *thread, what string) (int64, error) {
	r := j.r
	n, err := redissonReadWrite.Run(context.Background(), r.rdb, []string{r.keys.Lock, r.keys.Channel()}, what, (javaLease * unit).Milliseconds(), t.field).Int64()
	r.say("%s: %s: %d", t.field, what, n)
	r.dirty = true // the first hears of a release on the lock's own channel (P25)
	return n, err
}

func (j *jvm) lockToRead(t *thread) error {
	n, err := j.do(t, "lock to read")
	if err != nil {
		return err
	}
	if n == 1 {
		t.reads = append(t.reads, j.r.now+javaLease)
		j.r.longer = j.r.longer || t.levels > 0 // its hold that writes lasts as long
	}
	return j.look()
}

func (j *jvm) lockToWrite(t *thread) error {
	n, err := j.do(t, "lock to write")
	if err != nil {
		return err
	}
	if n == 1 {
		if t.levels == 0 {
			t.until = j.r.now
		}
		t.until += javaLease // a second level adds to what is left
		t.levels++
	}
	return j.look()
}

func (j *jvm) renew(t *thread, what string) error {
	n, err := j.do(t, what)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("Inv1: %s is trusted, and is not there", t.field)
	}
	t.until = j.r.now + javaLease // each sets the hash to that, also where two levels had more
	for i, until := range t.reads {
		if what == "renew to read" && j.r.now < until {
			t.reads[i] = j.r.now + javaLease
		}
	}
	return j.look()
}

func (j *jvm) unlockToWrite(t *thread) error {
	trusted := t.trustsWrite(j.r.now)
	n, err := j.do(t, "unlock to write")
	if err != nil {
		return err
	}
	if trusted && n < 0 {
		return fmt.Errorf("Inv1: %s is trusted, and is not there", t.field)
	}
	if t.levels--; t.levels > 0 {
		t.until = j.r.now + javaLease
	} else if t.reads != nil { // it reads on, and the hash lasts as long as before
		j.r.longer = true
	}
	return j.look()
}

func (j *jvm) unlockToRead(t *thread) error {
	trusted := t.trustsRead(j.r.now)
	n, err := j.do(t, "unlock to read")
	if err != nil {
		return err
	}
	if trusted && n < 0 {
		return fmt.Errorf("Inv1: %s is trusted, and is not there", t.field)
	}
	t.reads = t.reads[:len(t.reads)-1]
	if len(t.reads) == 0 {
		t.reads = nil
	}
	if n == 0 && !j.r.longer {
		if j.r.longer, err = j.endsLate(); err != nil {
			return err
		}
	}
	return j.look()
}

// endsLateText tells whether a hash ends later than the longest lease in it.
const endsLateText = `
local most = -2
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  most = math.max(most, redis.call('PTTL', key))
end
return redis.call('PTTL', KEYS[1]) > most + 1 and 1 or 0`

// endsLate tells whether the hash ends later than the longest lease: Redisson reads the leases some time before it sets the hash, and on Redis 7.0 and older
// the clock goes on meanwhile.
func (j *jvm) endsLate() (bool, error) {
	n, err := j.r.rdb.Eval(context.Background(), endsLateText, []string{j.r.keys.Lock}, "*"+j.r.keys.Lock+"*:rwlock_timeout:*").Int()
	return n == 1, err
}

// look looks at what Redis keeps, and at who trusts a hold.
func (j *jvm) look() error {
	if err := j.r.observe(); err != nil {
		return err
	}
	return j.r.exclusive()
}

// forced notes that a hold of a thread was released by force.
func (j *jvm) forced(field string) error {
	for _, t := range j.threads {
		switch field {
		case t.field:
			t.reads, j.keys = nil, true
		case t.field + ":write":
			t.levels = 0
			j.r.longer = j.r.state.mode() != "" // it reads on, maybe, and the hash lasts as long as before
		}
	}
	j.r.dirty = true
	return j.look()
}

// finish has the threads release what they have, and lets those end that are over.
func (j *jvm) finish() error {
	for _, t := range j.threads {
		for t.trustsRead(j.r.now) {
			if err := j.unlockToRead(t); err != nil {
				return err
			}
		}
		for t.trustsWrite(j.r.now) {
			if err := j.unlockToWrite(t); err != nil {
				return err
			}
		}
	}
	if j.r.longer || j.keys {
		return j.r.pass(1000)
	}
	return nil
}
