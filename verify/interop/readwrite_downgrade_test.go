package interop

import (
	"context"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A thread of Redisson's that writes takes the read lock, and unlocks the write lock: it reads from then on. Nobody is told of that.
// Readers of ours join it, in a phase of their own. Writers of ours wait for the last reader.
func TestRedissonsDowngrade(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	l, other := fenced.NewRWLock(s.client(), "l"), fenced.NewRWLock(s.client(), "l")
	client := s.java()
	reads, writes := client.lock("a", readKind, "l"), client.lock("a", writeKind, "l")
	last, token := take(t, withoutToken{l.Write()}, ctx)
	noError(t, l.Write().Unlock(last))

	// readers of ours come after it
	writes.lock()
	reads.lock()
	refused(t, l.Read())
	reads.is("isLocked", true)
	isLocked(t, "Redisson writes and reads, read", l.Read(), false)
	writes.unlock()
	isLocked(t, "Redisson reads, read", l.Read(), true)
	isLocked(t, "Redisson reads, write", l.Write(), false)
	held, phase := take(t, withoutToken{l.Read()}, ctx)
	if phase <= token {
		t.Errorf("token %d reads after %d", phase, token)
	}
	refused(t, l.Write())
	reads.unlock()
	refused(t, l.Write())
	noError(t, l.Read().Unlock(held))
	s.counterAlone("l")

	// a writer of ours waits meanwhile
	writes.lock()
	call := begin(func() (context.Context, error) { return locktest.NoToken(l.Write().LockAndGetToken(ctx)) })
	s.asleep(rwChannel("l"), 1)
	reads.lock()
	writes.unlock()
	s.asleep(rwChannel("l"), 1)
	refused(t, other.Read()) // it is behind the writer
	reads.unlock()
	got := await(t, call, soon, "our writer")
	noError(t, got.err)
	noError(t, l.Write().Unlock(got.ctx))
	s.counterAlone("l")

	// a reader of ours waits meanwhile: the next call of another client finds it asleep, and has it called
	writes.lock()
	call = begin(func() (context.Context, error) { return locktest.NoToken(l.Read().LockAndGetToken(ctx)) })
	s.asleep(rwChannel("l"), 1)
	reads.lock()
	writes.unlock()
	held, _, err := other.Read().TryLockAndGetToken(ctx, soon, 0)
	noError(t, err)
	got = await(t, call, soon, "our reader")
	noError(t, got.err)
	noError(t, other.Read().Unlock(held))
	refused(t, l.Write())
	noError(t, l.Read().Unlock(got.ctx))
	reads.is("isHeldByCurrentThread", true)
	refused(t, l.Write())

	// or Redisson's last unlock wakes it
	reads.unlock()
	s.counterAlone("l")
	writes.lock()
	call = begin(func() (context.Context, error) { return locktest.NoToken(l.Read().LockAndGetToken(ctx)) })
	s.asleep(rwChannel("l"), 1)
	reads.lock()
	writes.unlock()
	reads.unlock()
	got = await(t, call, soon, "our reader")
	noError(t, got.err)
	noError(t, l.Read().Unlock(got.ctx))
	s.counterAlone("l")
}
