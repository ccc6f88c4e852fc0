package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
	"github.com/fencelock/fencelock/rlock"
)

// hold is the process of the holders, which share one pool of connections. Each client holds its share of the locks, renews them and says
// so.
func hold(ctx context.Context, addr string, set settings) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	defer rdb.Close()
	slots := make(chan struct{}, 64)
	held := make([]context.Context, set.locks) // a hold whose context is garbage is not renewed
	var taken sync.WaitGroup
	var once sync.Once
	var failed error
	for i := range set.clients {
		client, err := rlock.New(rdb, rlock.WithPresence(fmt.Sprintf("service-%03d", i/10)), rlock.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if err != nil {
			return err
		}
		slots <- struct{}{}
		taken.Go(func() {
			defer func() { <-slots }()
			for n := i; n < set.locks; n += set.clients {
				var err error
				if held[n], err = fenced.NewLock(client, fmt.Sprintf("account:%06d", n)).Lock(ctx); err != nil {
					once.Do(func() { failed = err })
					return
				}
			}
		})
	}
	taken.Wait()
	if failed != nil {
		return failed
	}
	fmt.Println("ready")
	<-ctx.Done() // the leases end with the server
	runtime.KeepAlive(held)
	return nil
}

// serve is the process of the page.
func serve(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	in, err := inspect.New(rdb)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: lockui.New(in)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Printf("http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
