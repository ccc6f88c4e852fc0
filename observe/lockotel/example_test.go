package lockotel_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/rlock"
)

// Metrics and spans by providers of one's own; without these options they go to the global ones of package otel.
func Example() {
	spans := tracetest.NewInMemoryExporter()                                       // in a service: otlptracegrpc
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())) // in a service: a PeriodicReader, with otlpmetricgrpc
	trace, err := lockotel.New(
		lockotel.WithMeterProvider(meters),
		lockotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
		lockotel.WithMinWait(10*time.Millisecond),
	)
	if err != nil {
		panic(err)
	}

	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithTrace(trace))
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx := context.Background()
	lock := fenced.NewLock(client, "account:42")
	held, _, err := lock.LockAndGetToken(ctx)
	if err != nil {
		panic(err)
	}
	defer lock.Unlock(held)
	_, _, err = lock.TryLockAndGetToken(ctx, 50*time.Millisecond, 0) // somebody else, who waits in vain
	fmt.Println(err)
	all := spans.GetSpans() // with one of the first call where Redis took longer than that for it
	last := all[len(all)-1]
	fmt.Println(last.Name, last.EndTime.Sub(last.StartTime) >= 50*time.Millisecond)
	// Output:
	// rlock: TryLockAndGetToken "account:42": not acquired: held by someone else
	// lock wait true
}
