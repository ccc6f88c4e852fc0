package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newService is one on a Redis and a SQLite of its own.
func newService(t *testing.T, guarded bool) *service {
	t.Helper()
	rdb, done, err := connect(t.Context(), "")
	noError(t, err)
	t.Cleanup(done)
	client, err := rlock.New(rdb)
	noError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	store, err := openStore(t.Context(), "", guarded)
	noError(t, err)
	t.Cleanup(store.close)
	return &service{client: client, store: store, lease: 10 * time.Second, pause: time.Sleep}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-demo"}, []string{"409 Conflict", `"items":["jam","tea"]`, "\nok: the late write was refused"}},
		{[]string{"-demo", "-redis", redistest.Start(t)}, []string{"409 Conflict", "\nok: the late write was refused"}},
		{[]string{"-demo", "-guard=false"}, []string{`"items":["tea"]`, "\nok: without the guard terminal 2's jam is lost"}},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, &out, &errs); code != 0 {
				t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, &out)
				}
			}
		})
	}
}

// A service that does not check the token must be found out, or the demo proves nothing; and one that does, too.
func TestDemoNeedsTheGuard(t *testing.T) {
	t.Parallel()
	for guarded, want := range map[bool]string{
		false: "terminal 1, who was late: <nil>",
		true:  "terminal 1, who was late: guard: stale fencing token",
	} {
		t.Run(fmt.Sprint(guarded), func(t *testing.T) {
			t.Parallel()
			err := demo(t.Context(), newService(t, guarded), !guarded, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	h := newService(t, true).routes()
	ask := func(ctx context.Context, method, target string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, target, nil))
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		method, target string
		code           int
		body           string
	}{
		{"GET", "/orders/7", 404, "no such order\n"},
		{"POST", "/orders/7/items", 400, "name an item: ?item=tea\n"},
		{"POST", "/orders/7/items?item=tea&pause=10", 400, "the pause is a duration such as 10s, 1m0s at most\n"},
		{"POST", "/orders/7/items?item=tea&pause=-1s", 400, "the pause is a duration such as 10s, 1m0s at most\n"},
		{"POST", "/orders/7/items?item=tea&pause=61s", 400, "the pause is a duration such as 10s, 1m0s at most\n"},
		{"GET", "/orders/7", 404, "no such order\n"},
		{"POST", "/orders/7/items?item=tea&pause=1ms", 200, `{"id":"7","items":["tea"],"token":1}` + "\n"},
		{"GET", "/orders/7", 200, `{"id":"7","items":["tea"],"token":1}` + "\n"},
		{"GET", "/orders/8", 404, "no such order\n"},
	} {
		if code, body := ask(t.Context(), c.method, c.target); code != c.code || body != c.body {
			t.Errorf("%s %s: %d %q", c.method, c.target, code, body)
		}
	}

	// Many at once, some of whom hang up: what was answered with 200 is there.
	var wait sync.WaitGroup
	var mu sync.Mutex
	var done []string
	for i := range 40 {
		wait.Go(func() {
			ctx := t.Context()
			if i%4 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Millisecond/4)
				defer cancel()
			}
			item := fmt.Sprintf("item%d", i)
			if code, body := ask(ctx, "POST", "/orders/many/items?item="+item); code == 200 {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, item)
			} else if i%4 != 0 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	wait.Wait()
	_, body := ask(t.Context(), "GET", "/orders/many")
	for _, item := range done {
		if !strings.Contains(body, `"`+item+`"`) {
			t.Errorf("%s is not in %s", item, body)
		}
	}
}

// The answer of an accepted write is 200 although the lease ran out meanwhile: nobody else came.
func TestAcceptedIsDone(t *testing.T) {
	realtime.Test(t, "a lease of 1 s")
	t.Parallel()
	s := newService(t, true)
	s.lease = time.Second
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, httptest.NewRequest("POST", "/orders/7/items?item=tea&pause=1100ms", nil))
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out, line := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() { ended <- run(ctx, []string{"-listen", "127.0.0.1:0"}, line, &errs) }()
	var url string
	_, err := fmt.Fscanf(out, "orders at %s", &url)
	noError(t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	resp, err := http.Post(strings.TrimSuffix(url, ",")+"/orders/7/items?item=tea", "", nil)
	noError(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d: %s", code, &errs)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not end with its context")
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"-h"}, 0, "within these 10 s", ""},
		{[]string{"-adr"}, 2, "", "see -h"},
		{[]string{"x"}, 2, "", `unexpected argument "x"`},
		{[]string{"-lease", "1ms"}, 2, "", "less than 10ms"},
		{[]string{"-redis", "127.0.0.1:1"}, 1, "", "no Redis answers at 127.0.0.1:1"},
		{[]string{"-postgres", "postgres://u@127.0.0.1:1/db?sslmode=disable"}, 1, "", "orders: the database: "},
		{[]string{"-listen", "127.0.0.1:99999"}, 1, "", "99999"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%q: exit code %d, output %q, errors %q", c.args, code, &out, &errs)
		}
	}
}
