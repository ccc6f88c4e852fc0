package scripts

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A master is gone and its replica has taken over, of which no reply tells: whichever way ops are sent, one that fails
// makes the next ones find out, long before the cluster client would by itself.
func TestCluster_FindsTheNewMaster(t *testing.T) {
	t.Parallel()
	c := redistest.Clustered(t, 3, 1)
	var locks []*Keys // of two slots that one master has
	for len(locks) < 2 {
		if k := newKeys(t); c.MasterOf(k.Lock) == c.Nodes[0] {
			locks = append(locks, k)
		}
	}
	field := newField()
	take := func(k *Keys) Op { return Acquire(k, true, field, lease) }
	ways := map[string]func(s *Scripts) error{
		"alone":      func(s *Scripts) error { _, err := s.Do(context.Background(), take(locks[0])); return err },
		"in company": func(s *Scripts) error { return together(s, take(locks[0]), take(locks[1]))[0].err },
		"renewals": func(s *Scripts) error {
			many := slices.Repeat([]Renewal{{Keys: locks[0], Field: field, Lease: lease}}, maxScript+1)
			s.Renew(context.Background(), many)
			return many[0].Err
		},
	}
	clients := map[string]*Scripts{}
	for _, way := range []string{"alone", "in company", "renewals"} {
		clients[way] = New(c.Client())
		if err := ways[way](clients[way]); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
	}
	replica := c.ReplicaOf(c.Nodes[0])
	(&redistest.Replication{Master: c.Nodes[0], Replicas: []*redistest.Server{replica}}).Sync()
	c.Nodes[0].Kill()
	c.AwaitMaster(replica)
	for way, s := range clients {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			redistest.Eventually(t, 20*time.Second, func() bool { return ways[way](s) == nil }, "the new master answers")
		})
	}
}
