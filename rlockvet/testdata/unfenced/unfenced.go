package unfenced

import (
	"context"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

const nightly = "job:nightly"

// bad has two kinds of lock with one name.
func bad(client *rlock.Client) (*rlock.Lock, *fenced.Lock) {
	return rlock.NewLock(client, "account:42"), fenced.NewLock(client, "account:42") // want `"account:42" is the name of a fenced lock too, on line 14: an acquire of this one moves no token`
}

// good has one kind for each name.
func good(client *rlock.Client) (*fenced.Lock, *fenced.Lock) {
	return fenced.NewLock(client, "account:43"), fenced.NewLock(client, "account:43")
}

func job(client *rlock.Client) *rlock.Lock {
	return rlock.NewLock(client, nightly) // want `"job:nightly" is the name of a fenced lock too`
}

func guardedJob(client *rlock.Client) *fenced.Lock {
	return fenced.NewLock(client, nightly)
}

func here(client *rlock.Client) *rlock.Lock {
	return rlock.NewLock(client, "a")
}

// there has another client, perhaps of another Redis.
func there(client *rlock.Client) *fenced.Lock {
	return fenced.NewLock(client, "a")
}

// looks only asks.
func looks(ctx context.Context, client *rlock.Client) (bool, error) {
	_ = fenced.NewLock(client, "b")
	return rlock.NewLock(client, "b").IsLocked(ctx)
}

func takes(ctx context.Context, client *rlock.Client) error {
	_ = fenced.NewLock(client, "c")
	return rlock.NewLock(client, "c").Do(ctx, func(context.Context) error { return nil }) // want `"c" is the name of a fenced lock too`
}

func sides(client *rlock.Client) (*fenced.Lock, *fenced.RWLock) {
	return fenced.NewLock(client, "page:1"), fenced.NewRWLock(client, "page:1") // want `"page:1" is the name of a plain lock too, on line 51: each refuses the other's hold with WRONGTYPE`
}

func plainSides(client *rlock.Client) (*rlock.Lock, *rlock.RWLock) {
	return rlock.NewLock(client, "page:2"), rlock.NewRWLock(client, "page:2") // want `"page:2" is the name of a plain lock too`
}

// apart has a name for each.
func apart(client *rlock.Client) (*fenced.Lock, *fenced.RWLock, *fenced.RWLock) {
	return fenced.NewLock(client, "page:3"), fenced.NewRWLock(client, "pages:3"), fenced.NewRWLock(client, "pages:3")
}
