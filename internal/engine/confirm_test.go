package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// Each bound of WithReplicas and WithFsync is refused by itself, and the values next to it are
// accepted.
func TestConfirmationBounds(t *testing.T) {
	replicas := func(n int, timeout time.Duration) Settings {
		return Settings{Lease: 30 * time.Second, Replicas: &scripts.Confirmation{Replicas: n, Timeout: timeout}}
	}
	fsync := func(local, n int) Settings {
		return Settings{Lease: 30 * time.Second, Fsync: &scripts.Confirmation{Fsync: true, Local: local, Replicas: n, Timeout: time.Second}}
	}
	for _, c := range []struct {
		what string
		set  Settings
		says string // "": it is accepted
	}{
		{what: "one replica", set: replicas(1, time.Second)},
		{what: "as many replicas as may be", set: replicas(maxReplicas, time.Second)},
		{what: "no replica", set: replicas(0, time.Second), says: "use 1 to 100 replicas"},
		{what: "less than none", set: replicas(-1, time.Second), says: "use 1 to 100 replicas"},
		{what: "one replica too many", set: replicas(maxReplicas+1, time.Second), says: "use 1 to 100 replicas"},
		{what: "the shortest timeout", set: replicas(1, time.Millisecond)},
		{what: "a shorter one", set: replicas(1, time.Millisecond-1), says: "from a millisecond"},
		{what: "the longest timeout", set: replicas(1, 10*time.Second-1)},
		{what: "a third of the lease", set: replicas(1, 10*time.Second), says: "less than a third of the lease"},
		{what: "the server's disk", set: fsync(1, 0)},
		{what: "as many disks of replicas as may be", set: fsync(0, maxReplicas)},
		{what: "two servers", set: fsync(2, 0), says: "use 0 or 1"},
		{what: "less than no server, and two replicas", set: fsync(-1, 2), says: "use 0 or 1"},
		{what: "the server, and less than no replica", set: fsync(1, -2), says: "use 0 or 1"},
		{what: "one disk of a replica too many", set: fsync(0, maxReplicas+1), says: "use 0 or 1"},
		{what: "no disk", set: fsync(0, 0), says: "use 0 or 1"},
	} {
		err := c.set.checkConfirmation()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
}

// A confirmation that may come later than reads of the Redis client end is refused. A client whose
// reads do not end may wait as long as it is asked to.
func TestConfirmationWithinReads(t *testing.T) {
	for _, c := range []struct {
		what           string
		reads, timeout time.Duration
		refused        bool
	}{
		{what: "shorter than reads", reads: 2 * time.Second, timeout: 2*time.Second - 1},
		{what: "as long as reads", reads: 2 * time.Second, timeout: 2 * time.Second, refused: true},
		{what: "reads without an end", reads: -1, timeout: 9 * time.Second},
	} {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: c.reads})
		set := Settings{Replicas: &scripts.Confirmation{Replicas: 1, Timeout: c.timeout}}
		if err := set.checkReads(rdb); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.what, err)
		}
		_ = rdb.Close()
	}
}

// The first command of a re-entry has a third of an unlock's time, and the time for its
// confirmation on top.
func TestFirstCommandOfAReentry(t *testing.T) {
	for _, c := range []struct {
		what string
		set  Settings
		want time.Duration
	}{
		{what: "one Redis", set: Settings{UnlockTimeout: 3 * time.Second}, want: time.Second},
		{what: "the shortest bound", set: Settings{UnlockTimeout: time.Millisecond}, want: time.Millisecond},
		{what: "with replicas", set: Settings{UnlockTimeout: 3 * time.Second, Replicas: &scripts.Confirmation{Timeout: 2 * time.Second}}, want: 3 * time.Second},
		{what: "with a disk", set: Settings{UnlockTimeout: 3 * time.Second, Fsync: &scripts.Confirmation{Timeout: 4 * time.Second}}, want: 5 * time.Second},
	} {
		client := &Client{set: c.set}
		if got := client.onReentry(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
