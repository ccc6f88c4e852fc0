package httpguard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// byQuery names the resources that the request's query lists.
func byQuery(r *http.Request) []string { return r.URL.Query()["r"] }

// send asks the handler with these tokens, and returns its answer.
func send(h http.Handler, query string, fields ...string) *http.Response {
	r := httptest.NewRequest("POST", "/?"+query, nil)
	r.Header[Header] = fields
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func field(resource string, token int64) string { return format(map[string]int64{resource: token}) }

// Inv4: a write is let in if no larger token was.
func TestInv4_Handler(t *testing.T) {
	marks := guard.NewMemory()
	var written []string
	h := Handler(marks, byQuery, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		written = append(written, r.Header.Get(Header))
		fmt.Fprint(w, "done")
	}))
	for _, token := range []int64{1, 1, 9, 10} {
		resp := send(h, "r=a", field("a", token))
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || string(body) != "done" {
			t.Errorf("%d: %d %s", token, resp.StatusCode, body)
		}
	}
	resp := send(h, "r=a", field("a", 9))
	locktest.Equal(t, "status", resp.StatusCode, 409)
	var stale *guard.StaleError
	if err := ResponseError(resp); !errors.As(err, &stale) || *stale != (guard.StaleError{Resource: "a", Token: 9, Seen: 10}) {
		t.Errorf("%v", err)
	}
	locktest.Equal(t, "another resource", send(h, "r=b", field("b", 1)).StatusCode, 200)
	locktest.Equal(t, "written", len(written), 5)

	// Refused before the mark and the handler hear of it.
	for _, c := range []struct {
		status int
		query  string
		fields []string
	}{
		{428, "r=a", nil}, {428, "r=a", []string{field("b", 99)}}, {428, "r=b&r=a", []string{field("b", 99)}},
		{400, "r=a", []string{"99"}}, {400, "r=a", []string{field("a", 99), field("a", 98)}},
		{500, "", []string{field("a", 99)}}, {500, "r=", []string{field("", 99)}}, {500, "r=a&r=", []string{field("a", 99), field("", 99)}},
	} {
		resp := send(h, c.query, c.fields...)
		locktest.Equal(t, fmt.Sprint(c.query, c.fields), resp.StatusCode, c.status)
		locktest.Equal(t, "content type", resp.Header.Get("Content-Type"), contentType)
	}
	locktest.Equal(t, "written", len(written), 5)
	locktest.Equal(t, "seen", marks.Seen("a"), int64(10))
	locktest.Equal(t, "seen", marks.Seen("b"), int64(1))

	full := Handler(guard.NewMemory(guard.WithMaxResources(1)), byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	locktest.Equal(t, "status", send(full, "r=a", field("a", 1)).StatusCode, 200)
	resp = send(full, "r=b", field("b", 1))
	locktest.Equal(t, "status", resp.StatusCode, 503)
	locktest.Equal(t, "retry after", resp.Header.Get("Retry-After"), "60")
}

// Several resources are let in together or not at all.
func TestInv4_HandlerOfSeveral(t *testing.T) {
	marks := guard.NewMemory()
	calls := 0
	h := Handler(marks, byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	locktest.Equal(t, "status", send(h, "r=b&r=a&r=b", field("a", 5), field("b", 5), field("c", 5)).StatusCode, 200)
	locktest.Equal(t, "status", send(h, "r=a&r=b", field("a", 6), field("b", 4)).StatusCode, 409)
	locktest.Equal(t, "status", send(h, "r=a&r=b", field("a", 4), field("b", 6)).StatusCode, 409)
	locktest.Equal(t, "calls", calls, 1)
	locktest.Equal(t, "a", marks.Seen("a"), int64(5))
	locktest.Equal(t, "b", marks.Seen("b"), int64(5))
	locktest.Equal(t, "c, which was not asked for", marks.Seen("c"), int64(0))
}

// Whatever a handler has written before it failed, no older token gets in behind it.
func TestInv4_AFailedHandlerCounts(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"500":   func(w http.ResponseWriter) { w.WriteHeader(500) },
		"404":   func(w http.ResponseWriter) { w.WriteHeader(404) },
		"panic": func(http.ResponseWriter) { tear("torn") },
		"abort": func(http.ResponseWriter) { tear(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			marks := guard.NewMemory()
			h := Handler(marks, byQuery, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w) }))
			func() {
				defer func() {
					switch r := recover(); {
					case name == "panic" && r != "torn", name == "abort" && r != http.ErrAbortHandler:
						t.Errorf("the panic has become %v", r)
					case r != nil && !strings.Contains(string(debug.Stack()), "httpguard.tear("):
						t.Errorf("the stack of the panic is gone:\n%s", debug.Stack())
					}
				}()
				send(h, "r=a&r=b", field("a", 7), field("b", 8))
			}()
			locktest.Equal(t, "a", marks.Seen("a"), int64(7))
			locktest.Equal(t, "b", marks.Seen("b"), int64(8))
			locktest.Equal(t, "an older one", send(h, "r=a", field("a", 6)).StatusCode, 409)
			fail = func(http.ResponseWriter) {}
			locktest.Equal(t, "the same again", send(h, "r=a", field("a", 7)).StatusCode, 200) // and it is not locked
		})
	}
}

func tear(with any) { panic(with) }

// A request whose client has gone while it waited for its turn is not run, and its token does not count.
func TestHandler_TheClientHasGone(t *testing.T) {
	marks := guard.NewMemory()
	calls := 0
	h := Handler(marks, byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	r := httptest.NewRequest("POST", "/?r=a&r=b", nil)
	r.Header[Header] = []string{field("a", 7), field("b", 7)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	locktest.Equal(t, "status", w.Code, 503)
	locktest.Equal(t, "content type", w.Header().Get("Content-Type"), contentType)
	locktest.Equal(t, "retry after", w.Header().Get("Retry-After"), "1")
	locktest.Equal(t, "calls", calls, 0)
	locktest.Equal(t, "a", marks.Seen("a"), int64(0))
	locktest.Equal(t, "b", marks.Seen("b"), int64(0))
	h.ServeHTTP(w, r)
	locktest.Equal(t, "calls", calls, 1)
	locktest.Equal(t, "b", marks.Seen("b"), int64(7))

	// Gone while another one is at the resource: it does not go on waiting.
	waiting := make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	locktest.NoError(t, marks.Do(t.Context(), "b", 7, func(context.Context) error {
		go func() {
			defer close(waiting)
			h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		}()
		cancel()
		<-waiting
		return nil
	}))
	locktest.Equal(t, "calls", calls, 1)
}

// Requests to one resource run one at a time.
func TestInv4_OneAtATime(t *testing.T) {
	inside := map[string]*atomic.Int32{"a": {}, "b": {}}
	count := map[string]int{"a": 0, "b": 0}
	var all sync.Mutex
	h := Handler(guard.NewMemory(), byQuery, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, name := range byQuery(r) {
			if inside[name].Add(1) > 1 {
				t.Errorf("two are at %s", name)
			}
			all.Lock()
			count[name]++
			all.Unlock()
			runtime.Gosched()
		}
		for _, name := range byQuery(r) {
			inside[name].Add(-1)
		}
	}))
	var wait sync.WaitGroup
	for _, q := range []string{"r=a", "r=b", "r=a&r=b", "r=b&r=a"} {
		wait.Go(func() {
			for range 500 {
				send(h, q, field("a", 1), field("b", 1))
			}
		})
	}
	wait.Wait()
	locktest.Equal(t, "of a", count["a"], 1500)
	locktest.Equal(t, "of b", count["b"], 1500)
}

// Requests to two resources run at the same time: each waits here for the other.
func TestHandler_OthersAtTheSameTime(t *testing.T) {
	met := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	other := map[string]string{"a": "b", "b": "a"}
	h := Handler(guard.NewMemory(), byQuery, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := byQuery(r)[0]
		close(met[name])
		select {
		case <-met[other[name]]:
		case <-time.After(5 * time.Minute):
			t.Errorf("%s waits alone", name)
		}
	}))
	var wait sync.WaitGroup
	for name := range met {
		wait.Go(func() { send(h, "r="+name, field(name, 1)) })
	}
	wait.Wait()
}

// Requests that name the same resources in different orders do not wait for each other for ever.
func TestHandler_NoDeadlock(t *testing.T) {
	h := Handler(guard.NewMemory(), byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wait sync.WaitGroup
		for _, q := range []string{"r=a&r=b&r=c", "r=c&r=b&r=a", "r=b&r=c&r=a", "r=c&r=a&r=b"} {
			wait.Go(func() {
				for range 5000 {
					send(h, q, field("a", 1), field("b", 1), field("c", 1))
				}
			})
		}
		wait.Wait()
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("they wait for each other")
	}
}

// On a real connection: the answer streams, and the connection can be taken over.
func TestHandler_StreamsAndHijacks(t *testing.T) {
	goOn := make(chan struct{})
	mux := http.NewServeMux()
	one := func(*http.Request) []string { return []string{"a"} }
	marks := guard.NewMemory()
	mux.Handle("/stream", Handler(marks, one, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		<-goOn
		fmt.Fprintln(w, "second")
	})))
	mux.Handle("/hijack", Handler(marks, one, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ntaken")
		_ = c.Close()
	})))
	server := httptest.NewServer(mux)
	defer server.Close()
	post := func(path string, token int64) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, nil)
		locktest.NoError(t, err)
		locktest.NoError(t, SetToken(r, "a", token))
		resp, err := server.Client().Do(r)
		locktest.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	lines := bufio.NewReader(post("/stream", 3).Body)
	line, err := lines.ReadString('\n')
	locktest.NoError(t, err)
	locktest.Equal(t, "line", line, "first\n")
	locktest.Equal(t, "while it streams", marks.Seen("a"), int64(0))
	close(goOn)
	line, err = lines.ReadString('\n')
	locktest.NoError(t, err)
	locktest.Equal(t, "line", line, "second\n")
	body, err := io.ReadAll(post("/hijack", 4).Body)
	locktest.NoError(t, err)
	locktest.Equal(t, "body", string(body), "taken")
	locktest.Equal(t, "stale", post("/stream", 3).StatusCode, 409)
}

// A real server refuses no name, and hears it as it was.
func TestNamesOverTheNetwork(t *testing.T) {
	heard := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens, err := Tokens(r)
		heard <- fmt.Sprintf("%#v %v", tokens, err)
	}))
	defer server.Close()
	for _, name := range []string{" ", "a\r\nX-Evil: 1", "\x00", `"\%,;`, "café", "\U0001F512", strings.Repeat("é", 10000)} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
		locktest.NoError(t, err)
		locktest.NoError(t, SetToken(r, name, 33))
		resp, err := server.Client().Do(r)
		locktest.NoError(t, err)
		locktest.NoError(t, resp.Body.Close())
		locktest.Equal(t, "heard", <-heard, fmt.Sprintf("%#v <nil>", map[string]int64{name: 33}))
	}
}

func TestHandler_Arguments(t *testing.T) {
	says := "Handler needs"
	panics := func(m *guard.Memory, f func(*http.Request) []string, h http.Handler) {
		t.Helper()
		defer func() {
			if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), says) {
				t.Errorf("panic %v", r)
			}
		}()
		Handler(m, f, h)
	}
	panics(nil, byQuery, http.NotFoundHandler())
	panics(guard.NewMemory(), nil, http.NotFoundHandler())
	panics(guard.NewMemory(), byQuery, nil)
	says = "put TimeoutHandler around Handler"
	panics(guard.NewMemory(), byQuery, http.TimeoutHandler(http.NotFoundHandler(), time.Second, ""))
}
