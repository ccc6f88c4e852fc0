package httpguard

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

func answer(t *testing.T, err error) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Length", "5") // of what the handler wanted to say
	if !Error(w, err) {
		t.Fatalf("%v is not answered", err)
	}
	return w.Result()
}

func TestError(t *testing.T) {
	const typ = "https://pkg.go.dev/github.com/fencelock/fencelock/guard/httpguard#"
	_, required := Token(newRequest(), "a")
	r := newRequest()
	r.Header.Set(Header, "33")
	_, malformed := Tokens(r)
	stale := &guard.StaleError{Resource: "<café>", Token: math.MaxInt64 - 1, Seen: math.MaxInt64}
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{fmt.Errorf("secret: %w", errors.Join(io.EOF, stale)), 409, `{"type":"` + typ + `StaleToken","title":"Stale fencing token","status":409,` +
			`"detail":"The token 9223372036854775806 of \"<café>\" is older than 9223372036854775807, which has been seen. Nothing was written. Take the lock again, and begin from the read on.",` +
			`"resource":"<café>","token":"9223372036854775806","seen":"9223372036854775807"}`},
		{fmt.Errorf("secret: %w", guard.ErrStale), 409, `{"type":"` + typ + `StaleToken","title":"Stale fencing token","status":409}`},
		{fmt.Errorf("secret: %w", required), 428, `{"type":"` + typ + `TokenRequired","title":"Fencing token required","status":428,"detail":"send the token of \"a\" in the header Fencing-Token"}`},
		{malformed, 400, `{"type":"` + typ + `MalformedToken","title":"Malformed fencing token","status":400,"detail":"write a token as \"33\";resource=\"account:42\", with these quotes, not \"33\""}`},
		{fmt.Errorf("secret: %w", guard.ErrFull), 503, `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"There is no room for the token of one more resource."}`},
	} {
		resp := answer(t, c.err)
		locktest.Equal(t, "status", resp.StatusCode, c.status)
		body, err := io.ReadAll(resp.Body)
		locktest.NoError(t, err)
		locktest.Equal(t, "body", string(body), c.body+"\n")
		locktest.Equal(t, "content type", resp.Header.Get("Content-Type"), "application/problem+json")
		locktest.Equal(t, "cache", resp.Header.Get("Cache-Control"), "no-store")
		locktest.Equal(t, "length", resp.Header.Get("Content-Length"), "")
		locktest.Equal(t, "retry after", resp.Header.Get("Retry-After"), map[int]string{503: "60"}[c.status])
	}
	for _, err := range []error{nil, io.EOF, guard.ErrToken} {
		w := httptest.NewRecorder()
		if Error(w, err) || w.Flushed || w.Body.Len() > 0 || len(w.Header()) > 0 {
			t.Errorf("%v is answered", err)
		}
	}
}

// What one side says is what the other side reads, and the body is there as if nobody had looked.
func TestResponseError(t *testing.T) {
	for _, sent := range []error{
		&guard.StaleError{Resource: "café", Token: math.MaxInt64 - 1, Seen: math.MaxInt64},
		&fieldError{ErrRequired, "send it"},
		&fieldError{ErrMalformed, "not so"},
	} {
		resp := answer(t, sent)
		resp.Header.Set("Content-Type", "Application/Problem+JSON; charset=utf-8")
		for range 2 {
			got := ResponseError(resp)
			if got == nil || got.Error() != sent.Error() || !errors.Is(got, errors.Unwrap(sent)) {
				t.Errorf("%v, want %v", got, sent)
			}
		}
		body, err := io.ReadAll(resp.Body)
		locktest.NoError(t, err)
		if !strings.HasPrefix(string(body), `{"type"`) || !strings.HasSuffix(string(body), "}\n") {
			t.Errorf("the body is %q now", body)
		}
	}
	var stale *guard.StaleError
	if err := ResponseError(answer(t, &guard.StaleError{Resource: "r", Token: 1, Seen: 2})); !errors.As(err, &stale) || *stale != (guard.StaleError{Resource: "r", Token: 1, Seen: 2}) {
		t.Errorf("%v", stale)
	}
}

// The answer to HEAD has no body, and says the same.
func TestResponseError_OfHead(t *testing.T) {
	var sent error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { Error(w, sent) }))
	defer server.Close()
	for _, sent = range []error{
		&guard.StaleError{Resource: "caf\u00e9 \U0001F512 \"\r\n\x7f<", Token: math.MaxInt64 - 1, Seen: math.MaxInt64},
		&guard.StaleError{Resource: strings.Repeat("\u00e9", 10000), Token: 1, Seen: 2},
		&fieldError{ErrRequired, "send it"},
		&fieldError{ErrMalformed, "not so: \u00e9"},
	} {
		resp, err := server.Client().Head(server.URL)
		locktest.NoError(t, err)
		defer resp.Body.Close()
		got := ResponseError(resp)
		if got == nil || got.Error() != sent.Error() || !errors.Is(got, errors.Unwrap(sent)) {
			t.Errorf("%v, want %v", got, sent)
		}
	}
	sent = guard.ErrFull
	resp, err := server.Client().Head(server.URL)
	locktest.NoError(t, err)
	defer resp.Body.Close()
	locktest.NoError(t, ResponseError(resp))
}

func TestResponseError_OfOthers(t *testing.T) {
	response := func(status int, media, body string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body))}
	}
	large := `{"type":"` + StaleToken + `","detail":"` + strings.Repeat("x", maxProblem) + `"}`
	for _, c := range []struct {
		status      int
		media, body string
	}{
		{200, contentType, `{"type":"` + StaleToken + `"}`},
		{409, "application/json", `{"type":"` + StaleToken + `"}`},
		{409, "", `{"type":"` + StaleToken + `"}`},
		{409, contentType, `{"type":"https://example.com/conflict","token":1,"seen":2}`},
		{409, contentType, `{"type":"` + TokenRequired + `"}`},
		{428, contentType, `{"type":"` + MalformedToken + `"}`},
		{400, contentType, `{"type":"` + StaleToken + `"}`},
		{409, contentType, `{"type":"` + StaleToken + `"`},
		{409, contentType, `{"type":"` + StaleToken + `","token":1}`},
		{409, contentType, ``},
		{409, contentType, large},
	} {
		resp := response(c.status, c.media, c.body)
		if err := ResponseError(resp); err != nil {
			t.Errorf("%d %s %.80s: %v", c.status, c.media, c.body, err)
		}
		body, err := io.ReadAll(resp.Body)
		locktest.NoError(t, err)
		locktest.Equal(t, "body", string(body), c.body)
	}
	if err := ResponseError(&http.Response{StatusCode: 409, Header: http.Header{"Content-Type": {contentType}}}); err != nil {
		t.Error(err)
	}

	// A connection that breaks within the document: the caller's own read says so.
	broken := errors.New("broken")
	resp := response(409, contentType, "")
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"type":`), iotest.ErrReader(broken)))
	if err := ResponseError(resp); err != nil {
		t.Error(err)
	}
	body, err := io.ReadAll(resp.Body)
	locktest.Equal(t, "body", string(body), `{"type":`)
	locktest.IsError(t, err, broken)

	closed := false
	resp = response(409, contentType, `{}`)
	resp.Body = closing{resp.Body, func() { closed = true }}
	_ = ResponseError(resp)
	locktest.NoError(t, resp.Body.Close())
	locktest.Equal(t, "closed", closed, true)
}

type closing struct {
	io.Reader
	close func()
}

func (b closing) Close() error { b.close(); return nil }

// A pointer to nothing as an error is a mistake of whoever made it, and no reason to panic.
func TestErrorOfAPointerToNothing(t *testing.T) {
	w := httptest.NewRecorder()
	locktest.Equal(t, "answered", Error(w, (*guard.StaleError)(nil)), true)
	locktest.Equal(t, "status", w.Code, 409)
}
