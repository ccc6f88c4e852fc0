package httpguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A Handler inside a Handler of the same resource would wait for itself: it answers 500, and what it wraps does not run.
func TestHandler_Nested(t *testing.T) {
	synctest.Test(t, testHandlerNested) // which finds out at once who waits for itself
}

func testHandlerNested(t *testing.T) {
	marks := guard.NewMemory()
	calls := 0
	inner := Handler(marks, byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	h := Handler(marks, byQuery, inner)
	resp := send(h, "r=a&r=b", field("a", 5), field("b", 5))
	body, err := io.ReadAll(resp.Body)
	locktest.NoError(t, err)
	if resp.StatusCode != 500 || calls != 0 || !strings.Contains(string(body), "inside another one") {
		t.Errorf("%d %s, %d calls", resp.StatusCode, body, calls)
	}
	other := func(*http.Request) []string { return []string{"c"} }
	locktest.Equal(t, "another resource", send(Handler(marks, other, inner), "r=a", field("a", 5), field("c", 5)).StatusCode, 200)
	locktest.Equal(t, "another Memory", send(Handler(guard.NewMemory(), byQuery, inner), "r=a", field("a", 5)).StatusCode, 200)
	locktest.Equal(t, "calls", calls, 2)

	h = Handler(marks, byQuery, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := marks.Check(r.Context(), "a", 5); !errors.Is(err, guard.ErrNested) {
			t.Errorf("error %v", err)
		}
	}))
	locktest.Equal(t, "status", send(h, "r=a", field("a", 5)).StatusCode, 200)
}

// Requests for what does not exist count, but do not fill the Memory.
func TestHandler_NotFound(t *testing.T) {
	for name, absent := range map[string]func(w http.ResponseWriter, r *http.Request){
		"404": http.NotFound,
		"410": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(410) },
	} {
		t.Run(name, func(t *testing.T) {
			const most = 10
			marks := guard.NewMemory(guard.WithMaxResources(most))
			there := "there"
			h := Handler(marks, byQuery, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if byQuery(r)[0] != there {
					absent(w, r)
				}
			}))
			locktest.Equal(t, "status", send(h, "r=there", field("there", 2)).StatusCode, 200)
			want := map[string]int{"404": 404, "410": 103}[name] // the recorder takes the first, a server the last
			for i := range 100 * most {
				id := fmt.Sprint("none:", i)
				locktest.Equal(t, "status", send(h, "r="+id, field(id, 2)).StatusCode, want)
				locktest.Equal(t, "an older token", send(h, "r="+id, field(id, 1)).StatusCode, 409)
			}
			there = "new"
			locktest.Equal(t, "a resource that exists", send(h, "r=new", field("new", 2)).StatusCode, 200)
			locktest.Equal(t, "an older token", send(h, "r=there", field("there", 1)).StatusCode, 409)
			// Found once, it is kept, and another answer than the first status does not count.
			marks = guard.NewMemory(guard.WithMaxResources(1))
			h = Handler(marks, byQuery, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "found")
				absent(struct{ http.ResponseWriter }{w}, r)
			}))
			locktest.Equal(t, "status", send(h, "r=a", field("a", 1)).StatusCode, 200)
			locktest.Equal(t, "status", send(h, "r=b", field("b", 1)).StatusCode, 503)
		})
	}
}

// No answer of a guarded route is for a shared cache, whatever the handler says about it, and not those of refusals.
func TestHandler_NotForCaches(t *testing.T) {
	type answer struct {
		next func(w http.ResponseWriter)
		want string
	}
	says := func(control, want string) answer {
		return answer{func(w http.ResponseWriter) { w.Header().Set("Cache-Control", control); fmt.Fprint(w, "x") }, want}
	}
	for name, c := range map[string]answer{
		"nothing":         {func(http.ResponseWriter) {}, "no-store"},
		"public, no body": {func(w http.ResponseWriter) { w.Header().Set("Cache-Control", "public, max-age=60") }, "no-store"},
		"another Vary":    {func(w http.ResponseWriter) { w.Header().Set("Vary", "Accept"); fmt.Fprint(w, "x") }, "no-store"},
		"Vary, no body":   {func(w http.ResponseWriter) { w.Header().Set("Vary", "Accept") }, "no-store"},
		"private fields":  says(`max-age=60, private="Set-Cookie"`, "no-store"),
		"quoted":          says(`max-age=60, ext="a, private"`, "no-store"),
		"escaped":         says(`ext="\", private, "`, "no-store"),
		"another word":    says("max-age=60, nonprivate", "no-store"),
		"both":            says("private, public, max-age=60", "no-store"),
		"behind quotes":   says(`ext="a, b", private`, `ext="a, b", private`),
		"public in another line": {func(w http.ResponseWriter) {
			w.Header()["Cache-Control"] = []string{"private", "public, max-age=60"}
			fmt.Fprint(w, "x")
		}, "no-store"},
		"a body":  {func(w http.ResponseWriter) { fmt.Fprint(w, "x") }, "no-store"},
		"public":  {func(w http.ResponseWriter) { w.Header().Set("Cache-Control", "public, max-age=60"); fmt.Fprint(w, "x") }, "no-store"},
		"deleted": {func(w http.ResponseWriter) { w.Header().Del("Cache-Control"); w.WriteHeader(500) }, "no-store"},
		"flushed": {func(w http.ResponseWriter) { w.Header().Del("Cache-Control"); w.(http.Flusher).Flush() }, "no-store"},
		"copied": {func(w http.ResponseWriter) {
			w.Header().Del("Cache-Control")
			_, _ = io.Copy(w, strings.NewReader("x"))
		}, "no-store"},
		"private": {func(w http.ResponseWriter) {
			w.Header().Set("Cache-Control", "Private, max-age=60")
			fmt.Fprint(w, "x")
		}, "Private, max-age=60"},
		"over again": {func(w http.ResponseWriter) {
			w.Header().Set("Cache-Control", "no-store, no-transform")
			fmt.Fprint(w, "x")
		}, "no-store, no-transform"},
	} {
		t.Run(name, func(t *testing.T) {
			h := Handler(guard.NewMemory(), byQuery, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.next(w) }))
			server := httptest.NewServer(h)
			defer server.Close()
			for token, want := range map[int64]string{5: c.want, 0: "no-store"} { // 0: refused
				r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/?r=a", nil)
				locktest.NoError(t, err)
				if token > 0 {
					locktest.NoError(t, SetToken(r, "a", token))
				}
				resp, err := server.Client().Do(r)
				locktest.NoError(t, err)
				locktest.NoError(t, resp.Body.Close())
				locktest.Equal(t, "Cache-Control", resp.Header.Get("Cache-Control"), want)
				vary := resp.Header.Values("Vary")
				locktest.Equal(t, "the last Vary", vary[len(vary)-1], Header)
				locktest.Equal(t, "values of Cache-Control", len(resp.Header.Values("Cache-Control")), 1)
			}
		})
	}
}

// A TimeoutHandler around a Handler answers before the write is over, and the turn is the write's until it is.
func TestHandler_InsideATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // otherwise the timeout may be over before the write has begun
		marks := guard.NewMemory()
		goOn := make(chan struct{})
		h := http.TimeoutHandler(Handler(marks, byQuery, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			<-goOn
		})), time.Second, "too late")
		locktest.Equal(t, "status", send(h, "r=a", field("a", 5)).StatusCode, 503)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := marks.Check(ctx, "a", 6); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		close(goOn)
		locktest.NoError(t, marks.Check(t.Context(), "a", 5))
	})
}

// The files of an upload are removed with the request.
func TestHandler_Uploads(t *testing.T) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("f", "f")
	locktest.NoError(t, err)
	_, err = io.WriteString(part, strings.Repeat("x", 11<<20))
	locktest.NoError(t, err)
	locktest.NoError(t, form.Close())
	var file string
	h := Handler(guard.NewMemory(), byQuery, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil {
			t.Error(err)
			return
		}
		f, _, err := r.FormFile("f")
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		file = f.(*os.File).Name()
	}))
	server := httptest.NewServer(h)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/?r=a", &body)
	locktest.NoError(t, err)
	r.Header.Set("Content-Type", form.FormDataContentType())
	locktest.NoError(t, SetToken(r, "a", 5))
	resp, err := server.Client().Do(r)
	locktest.NoError(t, err)
	locktest.NoError(t, resp.Body.Close())
	locktest.Equal(t, "status", resp.StatusCode, 200)
	redistest.Eventually(t, 20*time.Second, func() bool {
		_, err := os.Stat(file)
		return file != "" && os.IsNotExist(err)
	}, "the file is gone")
}
