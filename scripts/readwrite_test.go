package scripts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The keys of a read-write lock, and what a client is called in its line.
func TestReadWriteOf(t *testing.T) {
	for name, want := range map[string]string{"repo": "redisson_rwlock:{repo}", "a{b}": "redisson_rwlock:a{b}"} {
		read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
		locktest.Equal(t, "the lock", read.Lock, name)
		locktest.Equal(t, "the channel", read.Channel(), want)
		locktest.Equal(t, "the channel of the other side", write.Channel(), want)
		locktest.Equal(t, "the line", read.Line, write.Line)
		locktest.Equal(t, "the field of a hold that reads", read.FieldOf("c:1"), "c:1")
		locktest.Equal(t, "of one that writes", write.FieldOf("c:1"), "c:1:write")
		locktest.Equal(t, "a ticket to read", read.TicketOf("c:1"), "cr:1")
		locktest.Equal(t, "to write", write.TicketOf("c:1"), "cw:1")
		locktest.Equal(t, "where calls to read are heard", read.Calls("c"), read.Line+":cr")
		locktest.Equal(t, "to write", write.Calls("c"), read.Line+":cw")
	}
	locktest.Equal(t, "the side of a lock", KeysOf("repo").Side(), NoSide)
}

// Holds that read share a token, and one that writes has a larger one; so has the next that reads.
func TestReadWriteTakesTurns(t *testing.T) {
	rdb := redistest.New(t)
	s, name := New(rdb), newKeys(t).Lock
	read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
	take := func(k *Keys, field string) Answer {
		t.Helper()
		a, err := s.Do(t.Context(), Acquire(k, true, field, time.Minute).InTurn(Turn{}))
		locktest.NoError(t, err)
		return a
	}
	give := func(k *Keys, field string) {
		t.Helper()
		a, err := s.Do(t.Context(), Unlock(k, field, false).Calling("", 0))
		locktest.NoError(t, err)
		locktest.Equal(t, field+" was there", a.Held, true)
	}
	locktest.Equal(t, "the first token", take(read, "a:1").Token, int64(1))
	locktest.Equal(t, "that of the next one to read", take(read, "b:1").Token, int64(1))
	refused := take(write, "c:1:write")
	locktest.Equal(t, "it writes while others read", refused.Held, false)
	if refused.TTL <= 50*time.Second || refused.TTL > time.Minute {
		t.Errorf("others read for %v", refused.TTL)
	}
	give(read, "a:1")
	locktest.Equal(t, "it writes while another one reads", take(write, "c:2:write").Held, false)
	give(read, "b:1")
	locktest.Equal(t, "the token of the one that writes", take(write, "c:3:write").Token, int64(2))
	locktest.Equal(t, "it reads while one writes", take(read, "a:2").Held, false)
	state, err := s.InspectReadWrite(t.Context(), write, "c:3:write")
	locktest.NoError(t, err)
	locktest.Equal(t, "mode", state.Mode, "write")
	locktest.Equal(t, "count", state.Count, 1)
	give(write, "c:3:write")
	locktest.Equal(t, "the token of the next phase", take(read, "a:3").Token, int64(3))
	renewals := []Renewal{{Keys: read, Field: "a:3", Lease: 2 * time.Minute}, {Keys: read, Field: "b:1", Lease: time.Minute}, {Keys: KeysOf("none"), Field: "x:1", Lease: time.Minute}}
	s.Renew(t.Context(), renewals)
	locktest.Equal(t, "renewed", renewals[0].Err, nil)
	locktest.Equal(t, "one that is over", renewals[1].Err, ErrGone)
	locktest.Equal(t, "a lock that is free", renewals[2].Err, ErrGone)
	if left := rdb.PTTL(t.Context(), name).Val(); left <= time.Minute {
		t.Errorf("the hash lasts for %v", left)
	}
	give(read, "a:3")
	keys := rdb.Keys(t.Context(), "*"+name+"*").Val()
	locktest.Equal(t, "what is left", strings.Join(keys, " "), KeysOf(name).Token)
}

// A release that is for the line alone is told on the lock's channel all the same where nobody in the line hears that it is called.
func TestReadWriteReleaseThatNobodyInTheLineHears(t *testing.T) {
	rdb := redistest.New(t)
	s, name := New(rdb), newKeys(t).Lock
	write := ReadWriteOf(name, Writes)
	ear, err := newListener(rdb, write)
	locktest.NoError(t, err)
	defer ear.Close()
	locktest.NoError(t, ear.listen(t.Context(), "", true))
	for n := range 6 {
		field := fmt.Sprintf("a:%d:write", n)
		a, err := s.Do(t.Context(), Acquire(write, true, field, time.Minute).InTurn(Turn{}))
		locktest.NoError(t, err)
		locktest.Equal(t, "it has the lock", a.Held, true)
		for _, client := range []string{"bw", "cw"} {
			op := Acquire(write, true, fmt.Sprintf("%s:%d:write", client, n), time.Minute)
			_, err := s.Do(t.Context(), op.InTurn(Turn{Ticket: fmt.Sprintf("%s:%d", client, n)}))
			locktest.NoError(t, err)
		}
		a, err = s.Do(t.Context(), Unlock(write, field, false).Calling("", 0))
		locktest.NoError(t, err)
		heard, err := ear.heard(rdb)
		locktest.NoError(t, err)
		locktest.Equal(t, "what is told", strings.Join(heard, ","), " 1")
		locktest.Equal(t, "how many are told", a.Receivers, 1)
	}
}

// P37: the holder of a hold that somebody else releases is told, also while others read. Nobody is told of a holder's own release then.
func TestP37_ReleaseByForceWhileOthersRead(t *testing.T) {
	rdb := redistest.New(t)
	s, read := New(rdb), ReadWriteOf(newKeys(t).Lock, Reads)
	ear, err := newListener(rdb, read)
	locktest.NoError(t, err)
	defer ear.Close()
	locktest.NoError(t, ear.listen(t.Context(), "", true))
	for _, field := range []string{"a:1", "b:1", "c:1"} {
		_, err := s.Do(t.Context(), Acquire(read, true, field, time.Minute).InTurn(Turn{}))
		locktest.NoError(t, err)
	}
	for _, by := range []struct {
		field string
		known int
		told  string
	}{{"a:1", NotTheHolder, " 0"}, {"b:1", 0, ""}} {
		a, err := s.Do(t.Context(), Unlock(read, by.field, false).Calling("", by.known))
		locktest.NoError(t, err)
		locktest.Equal(t, by.field+" was there", a.Held, true)
		heard, err := ear.heard(rdb)
		locktest.NoError(t, err)
		locktest.Equal(t, "what is told of "+by.field, strings.Join(heard, ","), by.told)
	}
}

// A renewal finds a hold that reads only where both its field and its own key are there (P53).
func TestReadWriteRenewalFindsFieldAndKey(t *testing.T) {
	rdb := redistest.New(t)
	s, read := New(rdb), ReadWriteOf(newKeys(t).Lock, Reads)
	own := "{" + read.Lock + "}:%s:rwlock_timeout:1"
	for field, lost := range map[string]string{"a:1": read.Lock, "a:2": fmt.Sprintf(own, "a:2")} {
		_, err := s.Do(t.Context(), Acquire(read, true, field, time.Minute).InTurn(Turn{}))
		locktest.NoError(t, err)
		locktest.Equal(t, lost+" was there", rdb.Del(t.Context(), lost).Val(), int64(1))
		renewal := []Renewal{{Keys: read, Field: field, Lease: time.Minute}}
		s.Renew(t.Context(), renewal)
		locktest.Equal(t, "the renewal without "+lost, renewal[0].Err, ErrGone)
		locktest.Equal(t, "the hold is there", rdb.HExists(t.Context(), read.Lock, field).Val(), false)
	}
}

// P42: a renewal shortens no lease, neither in the hash nor in the key that a hold which reads has for itself.
func TestP42_ReadWriteRenewalShortensNoLease(t *testing.T) {
	rdb := redistest.New(t)
	s, read := New(rdb), ReadWriteOf(newKeys(t).Lock, Reads)
	_, err := s.Do(t.Context(), Acquire(read, true, "a:1", time.Minute).InTurn(Turn{}))
	locktest.NoError(t, err)
	for _, lease := range []time.Duration{time.Hour, time.Minute} {
		renewal := []Renewal{{Keys: read, Field: "a:1", Lease: lease}}
		s.Renew(t.Context(), renewal)
		locktest.NoError(t, renewal[0].Err)
	}
	for _, key := range []string{read.Lock, fmt.Sprintf("{%s}:a:1:rwlock_timeout:1", read.Lock)} {
		if left := rdb.PTTL(t.Context(), key).Val(); left < 50*time.Minute {
			t.Errorf("%s lasts for %v", key, left)
		}
	}
}

// However long the scripts of a release take that looks at all other holds, nothing is left when the last hold is released: the hash does not end later than
// the longest lease (P51).
func TestReadWriteOfManyReaders(t *testing.T) {
	rdb := redistest.Real(t).Client()
	s, read := New(rdb), ReadWriteOf("repo", Reads)
	const n = 8000
	give := func(i int) {
		t.Helper()
		a, err := s.Do(t.Context(), Unlock(read, fmt.Sprintf("a:%d", i), false))
		locktest.NoError(t, err)
		locktest.Equal(t, "it was there", a.Held, true)
	}
	for i := range n {
		op := Acquire(read, true, fmt.Sprintf("a:%d", i), time.Minute+time.Duration(i)*100*time.Millisecond)
		_, err := s.Do(t.Context(), op.InTurn(Turn{}))
		locktest.NoError(t, err)
	}
	give(n - 1) // the longest lease: it looks at all others
	for i := range n - 1 {
		give(i)
	}
	locktest.Equal(t, "what is left of the lock", rdb.Exists(t.Context(), "repo").Val(), int64(0))
}

// What the holds of a read-write lock cost that nobody waits for, in commands inside the scripts.
func TestCommandsOfAReadWriteLock(t *testing.T) {
	rdb := redistest.Real(t).Client()
	s, read, write := New(rdb), ReadWriteOf("repo", Reads), ReadWriteOf("repo", Writes)
	count := func(what string, most int64, do func()) {
		t.Helper()
		before := commandCount(t, rdb)
		do()
		n := commandCount(t, rdb) - before - 1 // INFO
		t.Logf("%s: %d commands", what, n)
		if n > most {
			t.Errorf("%s takes %d commands, and not %d at most", what, n, most)
		}
	}
	take := func(k *Keys, field string, lease time.Duration) func() {
		return func() {
			t.Helper()
			a, err := s.Do(t.Context(), Acquire(k, true, field, lease).InTurn(Turn{}))
			locktest.NoError(t, err)
			locktest.Equal(t, field+" has the lock", a.Held, true)
		}
	}
	give := func(k *Keys, field string) func() {
		return func() {
			t.Helper()
			a, err := s.Do(t.Context(), Unlock(k, field, false).Calling("", 0))
			locktest.NoError(t, err)
			locktest.Equal(t, field+" was there", a.Held, true)
		}
	}
	renew := func(k *Keys, field string, lease time.Duration) func() {
		return func() {
			t.Helper()
			renewal := []Renewal{{Keys: k, Field: field, Lease: lease}}
			s.Renew(t.Context(), renewal)
			locktest.NoError(t, renewal[0].Err)
		}
	}
	take(read, "a:0", time.Minute)()
	renew(read, "a:0", time.Minute)()
	give(read, "a:0")() // the scripts are known
	count("a read that opens a phase", 6, take(read, "a:1", time.Minute))
	count("a read that joins, with a shorter lease", 8, take(read, "a:2", 50*time.Second))
	count("a read that joins, with a longer lease", 9, take(read, "a:3", 70*time.Second))
	count("a renewal of a read", 5, renew(read, "a:2", 50*time.Second))
	count("the release of a read beside a later lease", 5, give(read, "a:1"))
	count("the release of the read that ends last, beside another", 10, give(read, "a:3"))
	count("the release of the last read", 10, give(read, "a:2"))
	for i := range 30 {
		take(read, fmt.Sprintf("b:%d", i), time.Minute)()
	}
	for i := range 30 {
		take(read, fmt.Sprintf("c:%d", i), 10*time.Minute)()
	}
	ends := time.Now().Add(time.Hour)
	for _, key := range []string{"repo", "{repo}:c:28:rwlock_timeout:1", "{repo}:c:29:rwlock_timeout:1"} { // as of two that came in the same millisecond
		locktest.Equal(t, key+" is there", rdb.PExpireAt(t.Context(), key, ends).Val(), true)
	}
	count("the release of a read beside many, one of which ends with it", 8, give(read, "c:29"))
	locktest.NoError(t, rdb.Del(t.Context(), "repo").Err())
	count("a write", 5, take(write, "a:4:write", time.Minute))
	count("the release of a write", 8, give(write, "a:4:write"))
}

// P51: a server that stands still in the middle of a release, as its machine does, makes the hash last no longer than the longest lease. Redis up to 7.0 has a
// clock that goes on within a script.
func TestP51_AServerThatStandsStill(t *testing.T) {
	const extend = "redis.pcall('PEXPIRE', lock, most)"
	right := readWriteUnlock
	t.Cleanup(func() { readWriteUnlock = right })
	readWriteUnlock = alone("unlock", "local stood = false\n"+strings.Replace(readWriteOpsText+readWriteUnlockText, extend, "while not stood do\n for _ = 1, 3000000 do end\n stood = true\n end\n "+extend, 1))
	rdb := redistest.Real(t).Client()
	s, name := New(rdb), newKeys(t).Lock
	read := ReadWriteOf(name, Reads)
	leases := map[string]time.Duration{"a:1": time.Hour, "b:1": time.Minute}
	for _, field := range []string{"b:1", "a:1"} {
		a, err := s.Do(t.Context(), Acquire(read, true, field, leases[field]))
		locktest.NoError(t, err)
		locktest.Equal(t, field+" reads", a.Held, true)
	}
	for _, field := range []string{"a:1", "b:1"} {
		a, err := s.Do(t.Context(), Unlock(read, field, false))
		locktest.NoError(t, err)
		locktest.Equal(t, field+" was there", a.Held, true)
	}
	locktest.Equal(t, "the lock is there", rdb.Exists(t.Context(), name).Val(), int64(0))
}
