package httpguard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/httpguard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/rlock"
)

// exampleRedis is a Redis inside the process.
func exampleRedis() (rdb *redis.Client, done func()) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() { _ = rdb.Close(); server.Close() }
}

// Both ends: the caller has the lock, the service has the storage. Neither passes the token by hand through its own code:
// the context of the lock carries it on one side, the context of the request on the other.
func Example() {
	rdb, done := exampleRedis()
	defer done()
	client, err := rlock.New(rdb)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// The service: deep down it takes the token from its context, as it would under a lock of its own.
	g, err := redisguard.New(rdb)
	if err != nil {
		log.Fatal(err)
	}
	add := func(ctx context.Context, account string) error {
		token, _ := fenced.TokenFrom(ctx, account) // 0 is refused by the guard
		return g.Writer(account, token).Do(ctx, "INCRBY", "balance:{"+account+"}", 10).Err()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /deposit/{account}", func(w http.ResponseWriter, r *http.Request) {
		account := r.PathValue("account")
		token, err := httpguard.Token(r, account)
		if err == nil {
			err = add(fenced.ContextWithToken(r.Context(), account, token), account)
		}
		if err != nil && !httpguard.Error(w, err) { // 409, 428, 400, or 503 from a full guard.Memory
			http.Error(w, "the storage does not answer", http.StatusBadGateway)
		}
	})
	service := httptest.NewServer(mux)
	defer service.Close()

	// The caller.
	deposit := func(ctx context.Context, account string) error {
		req, err := http.NewRequestWithContext(ctx, "POST", service.URL+"/deposit/"+account, nil)
		if err != nil {
			return err
		}
		if token, ok := fenced.TokenFrom(ctx, account); ok {
			if err := httpguard.SetToken(req, account, token); err != nil {
				return err
			}
		}
		resp, err := service.Client().Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		fmt.Println(resp.Status)
		return httpguard.ResponseError(resp) // errors.Is guard.ErrStale: this request has written nothing
	}
	lock := fenced.NewLock(client, "account:42")
	err = lock.Do(context.Background(), func(ctx context.Context, _ int64) error { return deposit(ctx, "account:42") })
	fmt.Println(err)
	err = lock.Do(context.Background(), func(ctx context.Context, _ int64) error { return deposit(ctx, "account:42") })
	fmt.Println(err)

	paused := fenced.ContextWithToken(context.Background(), "account:42", 1) // the first holder once more
	err = deposit(paused, "account:42")
	fmt.Println(errors.Is(err, guard.ErrStale), err)
	fmt.Println(errors.Is(deposit(context.Background(), "account:42"), httpguard.ErrRequired))
	// Output:
	// 200 OK
	// <nil>
	// 200 OK
	// <nil>
	// 409 Conflict
	// true guard: stale fencing token of "account:42": 1 was shown, and 2 has been seen
	// 428 Precondition Required
	// true
}

// A service that owns its data in one process: check and handler are one step.
func ExampleHandler() {
	accounts := map[string]*struct{ balance int }{"42": {}}
	marks := guard.NewMemory() // one for the data
	resources := func(r *http.Request) []string { return []string{"account:" + r.PathValue("id")} }
	deposit := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if account := accounts[r.PathValue("id")]; account != nil {
			account.balance += 10 // no other request to this account runs meanwhile
		}
	})
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}", httpguard.Handler(marks, resources, deposit))

	post := func(token int64) {
		req := httptest.NewRequest("POST", "/accounts/42", nil)
		if err := httpguard.SetToken(req, "account:42", token); err != nil {
			log.Fatal(err)
		}
		fmt.Println(req.Header.Get(httpguard.Header))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		fmt.Println(w.Code, httpguard.ResponseError(w.Result()))
	}
	post(33)
	post(34)
	post(33)
	fmt.Println("balance", accounts["42"].balance)
	// Output:
	// "33";resource="account:42"
	// 200 <nil>
	// "34";resource="account:42"
	// 200 <nil>
	// "33";resource="account:42"
	// 409 guard: stale fencing token of "account:42": 33 was shown, and 34 has been seen
	// balance 20
}
