package fenced_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P58: in a cluster the exporting client hears of an import by a client that has asked nothing before.
func TestP58_ImportInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.Clustered(t, 2, 0)
	from := newClient(t, cl.Client())
	for name, export := range map[string]func(c *rlock.Client) (*fenced.Hold, error){
		"lock": func(c *rlock.Client) (*fenced.Hold, error) { return fenced.NewLock(c, "lock").Acquire(t.Context()) },
		"permit": func(c *rlock.Client) (*fenced.Hold, error) {
			return fenced.NewSemaphore(c, "permit", 2).Acquire(t.Context())
		},
		"write": func(c *rlock.Client) (*fenced.Hold, error) {
			return fenced.NewRWLock(c, "write").Write().Acquire(t.Context())
		},
	} {
		h, err := export(from)
		locktest.NoError(t, err)
		text, err := h.Export()
		locktest.NoError(t, err)
		redistest.Settles(t, 10*time.Second, func() bool { return listens(t, cl, name) }, "the exporting client listens for an import of %s", name)
		to := newClient(t, cl.Client())
		var next *fenced.Hold
		switch name {
		case "lock":
			next, err = fenced.NewLock(to, name).Import(t.Context(), text)
		case "permit":
			next, err = fenced.NewSemaphore(to, name, 2).Import(t.Context(), text)
		default:
			next, err = fenced.NewRWLock(to, name).Write().Import(t.Context(), text)
		}
		locktest.NoError(t, err)
		redistest.Await(t, 60*time.Second, h.Done(), "the exported hold ends")
		locktest.IsError(t, h.Err(), rlock.ErrImported)
		locktest.NoError(t, next.Unlock(t.Context()))
	}
}

// listens tells whether somebody listens on a channel of the lock.
func listens(t *testing.T, cl *redistest.Cluster, name string) bool {
	for _, node := range cl.Masters() {
		for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} {
			if command == "SHARDCHANNELS" && !cl.Sharded() {
				continue
			}
			if all, _ := node.Do("PUBSUB", command, "redisson_*{"+name+"}*").([]any); len(all) > 0 {
				return true
			}
		}
	}
	return false
}
