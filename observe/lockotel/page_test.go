package lockotel_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/rlock"
)

// The code of docs/metrics.md.
func TestPage(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rdb.Close()

	trace, err := lockotel.New() // on the global providers; WithMeterProvider and WithTracerProvider take others
	if err != nil {
		t.Fatal(err)
	}
	client, err := rlock.New(rdb, rlock.WithTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
