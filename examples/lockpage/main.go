// Lockpage shows the page of observe/lockui while something goes on: two workers want the same account, a third process dies with a
// lock, and somebody waits for that one. The Redis is inside the program, the page behind a password, on this machine only.
//
//	go run ./examples/lockpage
//
// It goes on until it is interrupted.
package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` of the page; keep it on this machine")
	flag.Parse()
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	password := rand.Text()
	err := run(ctx, *addr, password, func(page, redisAddr string) {
		fmt.Printf("%s\nuser: oncall, password: %s\nBefore a minute is over %q is stuck, and can be forced open.\n", page, password, account)
		fmt.Printf("The same in a terminal: cd cmd/fencelock && go run . top --url redis://%s\n\nThe steps of a night on call:\n", redisAddr)
		for i, step := range steps {
			fmt.Printf("%d. %s\n", i+1, strings.ReplaceAll(step, "**", ""))
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockpage:", err)
		os.Exit(1)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, addr, password string, up func(page, redisAddr string)) error {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out by the clock
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	in, err := inspect.New(rdb)
	if err != nil {
		return err
	}

	everybody := func(*http.Request) bool { return true } // who has the password
	page := lockui.New(in, lockui.WithForceUnlock(everybody), lockui.WithLongHold(20*time.Second))
	mux := http.NewServeMux()
	mux.Handle("/locks/", login("oncall", password, page))

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 2)
	go func() { failed <- story(ctx, server.Addr()) }()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)}
	defer web.Close()
	go func() { failed <- web.Serve(listener) }()
	up("http://"+listener.Addr().String()+"/locks/", server.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
		stop()
		err = <-failed // the story's
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// login lets those in who have the password.
func login(user, password string, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(u+"\x00"+p), []byte(user+"\x00"+password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="locks"`)
			http.Error(w, "a password is needed", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	})
}
