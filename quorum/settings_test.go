package quorum_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// What replicas or disks confirm is for one Redis: a quorum refuses it, whatever else is wrong.
func TestConfirmationIsForOneRedis(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	for _, opt := range []rlock.Option{rlock.WithReplicas(1, time.Second), rlock.WithFsync(1, 0, time.Second)} {
		_, err := quorum.New([]redis.UniversalClient{rdb}, opt, quorum.WithTries(-1))
		if err == nil || !strings.Contains(err.Error(), "are for one Redis") {
			t.Errorf("the error is %v", err)
		}
	}
}
