package quorums_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
)

// A client's id tells how many servers its quorum has; those of other clients tell nothing.
func TestID(t *testing.T) {
	for n, want := range map[int]int{1: 1, 5: 5, 300: 300, 4095: 4095, 5000: 4095} {
		id := quorums.NewID(n)
		if got := quorums.Of(id); got != want || quorums.Of(id+":7") != want || id == quorums.NewID(n) {
			t.Errorf("%s is of %d servers, not of %d", id, got, want)
		}
	}
	for _, id := range []string{uuid.NewString(), "", "x", "7c53c7a2-3a7e-8005-cd70-9d52b6f0a0c5", "7c53c7a2x3a7e-8005-8d70-9d52b6f0a0c5"} {
		if n := quorums.Of(id); n != 0 {
			t.Errorf("%q is of %d servers", id, n)
		}
	}
}

// One server's databases are two names: they have other locks, and other records.
func TestNameOfADatabase(t *testing.T) {
	for db, want := range map[int]string{0: "a:1", 3: "a:1/3"} {
		rdb := redis.NewClient(&redis.Options{Addr: "a:1", DB: db})
		if name, err := quorums.Name(rdb); name != want || err != nil {
			t.Errorf("%q, %v, want %q", name, err, want)
		}
		_ = rdb.Close()
	}
}
