package lockui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
	"github.com/fencelock/fencelock/rlock"
)

// The page beside the other pages of a service, behind their login. Who is on call may force a lock open.
func Example() {
	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	in, err := inspect.New(rdb)
	if err != nil {
		panic(err)
	}
	page := lockui.New(in, lockui.WithForceUnlock(func(r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		return user == "oncall"
	}))
	mux := http.NewServeMux()
	mux.Handle("/internal/locks/", requireLogin(page))
	site := httptest.NewServer(mux)
	defer site.Close()

	client, err := rlock.New(rdb, rlock.WithPresence("billing")) // so that the page can say who it is
	if err != nil {
		panic(err)
	}
	defer client.Close()
	lock := fenced.NewLock(client, "account:42")
	held, _, err := lock.LockAndGetToken(context.Background())
	if err != nil {
		panic(err)
	}
	defer lock.Unlock(held)

	request, err := http.NewRequest(http.MethodGet, site.URL+"/internal/locks/lock?format=json&name=account:42", nil)
	if err != nil {
		panic(err)
	}
	request.SetBasicAuth("oncall", "secret")
	answer, err := site.Client().Do(request)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode, answer.Header.Get("Content-Type"))
	// Output:
	// 200 application/json
}

// requireLogin is what the service's internal pages have.
func requireLogin(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "a password is needed", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	})
}
