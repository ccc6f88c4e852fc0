package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// A leader, and who stands by, are shown as what they are. The word of the hold that is there stays when a level is opened within it.
func TestLasting(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		first := fenced.NewLock(newClient(t, rdb, rlock.WithPresence("first")), "scheduler")
		second := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("second"))
		elect := func(l *fenced.Lock) *leader.Election {
			e, err := leader.New(l)
			locktest.NoError(t, err)
			return e
		}
		term, err := elect(first).Campaign(t.Context())
		locktest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		stands := locktest.Start(func() error { _, err := elect(fenced.NewLock(second, "scheduler")).Campaign(ctx); return err })
		locktest.Sleep(time.Hour)
		for what := "alone"; ; what = "with an inner level" {
			l := look(t, in, "scheduler")
			if h := l.Holder; h.Lasting != "leads" || h.For < 59*time.Minute || len(h.By.Holds) != 1 || h.By.Holds[0].Lasting != "leads" {
				t.Errorf("%s: the holder: %+v", what, h)
			}
			if w := l.Line[0]; w.Lasting != "leads" || w.For < 59*time.Minute || w.By.Waits[0].Lasting != "leads" {
				t.Errorf("the line: %+v", w)
			}
			if l.Holder.Count == 2 {
				break
			}
			inner, err := first.Acquire(term.Context(), rlock.Reenter(), rlock.Lasting("naps"))
			locktest.NoError(t, err)
			defer func() { locktest.NoError(t, inner.Unlock(t.Context())) }()
			locktest.Sleep(10 * time.Second)
		}
		who, leads, err := leader.Who(t.Context(), in, "scheduler")
		if err != nil || !leads || who.Name != "first" || who.For < time.Hour {
			t.Errorf("who leads: %+v, %v, %v", who, leads, err)
		}

		// Another call of the same client waits too, and is not meant to.
		waits := locktest.Start(func() error { _, _, err := fenced.NewLock(second, "scheduler").LockAndGetToken(ctx); return err })
		locktest.Sleep(20 * time.Second)
		if w := look(t, in, "scheduler").Line[0]; w.Lasting != "" || w.Calls != 2 || w.For < 10*time.Second || w.For > 20*time.Second {
			t.Errorf("a client that waits for two reasons: %+v", w)
		}
		stop()
		locktest.IsError(t, <-stands, context.Canceled)
		locktest.IsError(t, <-waits, context.Canceled)
	})
}

// A permit and both sides of a read-write lock have a word, and so has the wait for them.
func TestLastingOfOtherKinds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		client := newClient(t, rdb, rlock.WithPresence("first"))
		pages := fenced.NewRWLock(client, "pages")
		jobs := fenced.NewSemaphore(client, "jobs", 1)
		words := fenced.NewRWLock(client, "words")
		serves, ctx := rlock.Lasting("serves"), t.Context()
		permit, err := jobs.Acquire(ctx, serves)
		locktest.NoError(t, err)
		read, err := pages.Read().Acquire(ctx, serves)
		locktest.NoError(t, err)
		write, err := words.Write().Acquire(ctx, serves)
		locktest.NoError(t, err)
		mixed := fenced.NewRWLock(client, "mixed").Read()
		long, err := mixed.Acquire(ctx, serves, rlock.Lease(time.Hour)) // its lease ends last: this one is the Holder
		locktest.NoError(t, err)
		short, err := mixed.Acquire(ctx)
		locktest.NoError(t, err)
		other := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("second"))
		bound, stop := context.WithCancel(ctx)
		ends := []<-chan error{
			locktest.Start(func() error { _, err := fenced.NewSemaphore(other, "jobs", 1).Acquire(bound, serves); return err }),
			locktest.Start(func() error { _, err := fenced.NewRWLock(other, "pages").Write().Acquire(bound, serves); return err }),
		}
		locktest.Sleep(time.Minute)
		for name, holds := range map[string]bool{"{jobs}:0": true, "pages": true, "words": true, "{jobs}:*": false, "mixed": false} {
			l := look(t, in, name)
			if (holds || name == "mixed") && (l.Holder == nil || l.Holder.Lasting != "serves") {
				t.Errorf("the holder of %s: %+v", name, l.Holder)
			}
			if l.Lasts() != holds {
				t.Errorf("%s lasts: %v", name, l.Lasts())
			}
			if (name == "pages" || name == "{jobs}:*") && (len(l.Line) != 1 || l.Line[0].Lasting != "serves") {
				t.Errorf("the line of %s: %+v", name, l.Line)
			}
		}
		stop()
		for _, end := range ends {
			locktest.IsError(t, <-end, context.Canceled)
		}
		for _, h := range []*fenced.Hold{permit, read, write, long, short} {
			locktest.NoError(t, h.Unlock(ctx))
		}
	})
}
