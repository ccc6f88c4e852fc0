package lockui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
	"github.com/fencelock/fencelock/rlock"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 2)) }

// id is a client's, made of a number.
func id(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

// hold makes the client hold the lock.
func hold(t *testing.T, rdb *redis.Client, name string, n int, lease time.Duration) (field string) {
	t.Helper()
	field = id(n) + ":1"
	locktest.NoError(t, rdb.Del(t.Context(), name).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), name, field, 1).Err())
	if lease > 0 {
		locktest.NoError(t, rdb.PExpire(t.Context(), name, lease).Err())
	}
	return field
}

// wait puts the client into the lock's line.
func wait(t *testing.T, rdb *redis.Client, name string, n int) {
	t.Helper()
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line:{"+name+"}", redis.Z{Score: float64(n), Member: id(n) + ":1"}).Err())
}

// says makes the client say of itself what it holds and waits for.
func says(t *testing.T, rdb *redis.Client, n int, name string, holds []presence.Hold, waits []presence.Wait) {
	t.Helper()
	locktest.NoError(t, presence.Write(t.Context(), rdb, &presence.Client{ID: id(n), Name: name, Host: fmt.Sprint("host", n), PID: n, Program: "prog", Holds: holds, Waits: waits}))
	locktest.NoError(t, rdb.Persist(t.Context(), presence.Key(id(n))).Err()) // it is as if it had just been written, for as long as the test takes
}

// heard lets the client have been heard of last so long ago.
func heard(t *testing.T, rdb *redis.Client, n int, ago time.Duration) {
	t.Helper()
	locktest.NoError(t, rdb.PExpire(t.Context(), presence.Key(id(n)), time.Hour).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), presence.Key(id(n)), "lasts", (time.Hour+ago).Milliseconds()).Err())
}

// asked is a hook that counts the commands, also those in pipelines, and may refuse them.
type asked struct {
	commands atomic.Int64
	reads    atomic.Int64 // of the index of clients
	before   atomic.Pointer[func(command string) error]
}

func spyOn(rdb *redis.Client) *asked {
	a := new(asked)
	rdb.AddHook(a)
	return a
}

func (a *asked) call(before func(command string) error) { a.before.Store(&before) }

func (a *asked) see(command string) error {
	a.commands.Add(1)
	if before := a.before.Load(); before != nil {
		return (*before)(command)
	}
	return nil
}

// DialHook implements redis.Hook.
func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && args[1] == presence.IndexKey {
			a.reads.Add(1)
		}
		if err := a.see(cmd.Name()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := a.see(cmd.Name()); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmds)
	}
}

func newInspector(t *testing.T, rdb redis.UniversalClient) *inspect.Inspector {
	t.Helper()
	in, err := inspect.New(rdb)
	locktest.NoError(t, err)
	return in
}

func newPage(t *testing.T, rdb redis.UniversalClient, opts ...lockui.Option) http.Handler {
	t.Helper()
	return lockui.New(newInspector(t, rdb), append([]lockui.Option{lockui.WithLogger(new(locktest.Log).Logger())}, opts...)...)
}

// get is the answer to a request, as net/http's server hands it over.
func get(page http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// ok is the body of an answer with the status 200.
func ok(t *testing.T, page http.Handler, target string) string {
	t.Helper()
	w := get(page, target)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d: %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not have %q:\n%s", part, text)
		}
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("it has %q:\n%s", part, text)
		}
	}
}

// shown is what the JSON of the page of locks says.
type shown struct {
	Known, Chosen, Stuck, Waited, Pages int
	Trouble                             []string
	Locks                               []struct{ Name, State, Why string }
}

func list(t *testing.T, page http.Handler, target string) (s shown) {
	t.Helper()
	locktest.NoError(t, json.Unmarshal([]byte(ok(t, page, target)), &s))
	return s
}

func (s shown) String() string {
	var all []string
	for _, l := range s.Locks {
		all = append(all, l.Name+" "+l.State)
	}
	return strings.Join(all, ", ")
}

// What is stuck comes first: an old hold that somebody waits for, then what is waited for, then old holds.
func TestOrder(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "old and waited for", 1, time.Minute)
	wait(t, rdb, "old and waited for", 2)
	hold(t, rdb, "old", 1, time.Minute)
	hold(t, rdb, "young", 1, time.Minute)
	hold(t, rdb, "young and waited for", 1, time.Minute)
	wait(t, rdb, "young and waited for", 3)
	hold(t, rdb, "for ever", 4, 0)
	wait(t, rdb, "for ever", 3)
	hold(t, rdb, "waited for for long", 5, time.Minute) // by one who says nothing
	wait(t, rdb, "waited for for long", 2)
	holds := func(name string, d time.Duration) presence.Hold {
		return presence.Hold{Lock: name, Field: id(1) + ":1", For: d, Token: 7}
	}
	says(t, rdb, 1, "billing", []presence.Hold{
		holds("old and waited for", 10*time.Minute), holds("old", time.Hour), holds("young", time.Second),
		holds("young and waited for", time.Second), holds("over", time.Hour)}, nil)
	says(t, rdb, 2, "mail", nil, []presence.Wait{{Lock: "old and waited for", Calls: 3, For: 9 * time.Minute}, {Lock: "waited for for long", Calls: 1, For: 3 * time.Minute}})
	says(t, rdb, 3, "web", nil, []presence.Wait{{Lock: "young and waited for", Calls: 1, For: time.Second}, {Lock: "for ever", Calls: 1, For: 2 * time.Second}})

	page := newPage(t, rdb)
	all := list(t, page, "/?format=json")
	locktest.Equal(t, "the locks", all.String(), "old and waited for stuck, waited for for long stuck, for ever stuck, young and waited for waited, old held, young held")
	locktest.Equal(t, "stuck", all.Stuck, 3)
	text := ok(t, page, "/")
	contains(t, text, "3 locks are stuck", "held for 10 min 00 s while others wait", `host1, <span class="number">pid 1</span>, prog`, "1 client, 3 calls", "longest 9 min 00 s", "(3 stuck)", "no lease")
	if first := strings.Index(text, "old and waited for"); first < 0 || strings.Index(text, "<table") < first {
		t.Error("the one that is stuck is not named before the table")
	}
	locktest.Equal(t, "with a longer bound", list(t, newPage(t, rdb, lockui.WithLongHold(time.Hour)), "/?format=json").Stuck, 1) // the one for ever

	for filter, want := range map[string]string{
		"q=young":             "young and waited for waited, young held",
		"older=5m":            "old and waited for stuck, old held",
		"host=host3":          "for ever stuck, young and waited for waited",
		"waited=1&older=150s": "old and waited for stuck, waited for for long stuck",
		"q=nothing":           "",
	} {
		locktest.Equal(t, filter, list(t, page, "/?format=json&"+filter).String(), want)
	}
	locktest.Equal(t, "a bad length of time", get(page, "/?older=old").Code, http.StatusBadRequest)

	one := ok(t, page, "/lock?name="+url.QueryEscape("old and waited for"))
	contains(t, one, id(1)+":1", "held for 10 min", "The line", "mail", "3 calls")
	lacks(t, one, "Force open")
	contains(t, ok(t, page, "/clients"), "3 clients", "billing", `host1, <span class="number">pid 1</span>`, "5 locks")
	contains(t, ok(t, page, "/client?id="+id(1)), "billing", "young and waited for", "1 h 00 min")
	contains(t, ok(t, page, "/clients?format=json"), `"longest_hold_ms": 3600000`)
	contains(t, ok(t, page, "/client?format=json&id="+id(3)), `"waited_ms": 2000`)
	contains(t, ok(t, page, "/lock?name=old&format=json"), `"held_ms": 3600000`)
	locktest.Equal(t, "an unknown client", get(page, "/client?id=x").Code, http.StatusNotFound)
	locktest.Equal(t, "no name", get(page, "/lock").Code, http.StatusBadRequest)
	contains(t, ok(t, page, "/lock?name=nobody+ever"), "Nobody holds it")
}

// Locks of clients without presence, Redisson's for example, are found by those who listen. What is no lock is not taken for one.
func TestWithoutPresence(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "theirs", 1, time.Minute)
	hold(t, rdb, "perhaps", 1, time.Minute)
	hold(t, rdb, "quiet", 1, time.Minute)
	locktest.NoError(t, rdb.HSet(t.Context(), "rw", "mode", "read", id(1)+":1", 1).Err())
	listen := func(names ...string) {
		for i, name := range names {
			names[i] = "redisson_lock__channel:{" + name + "}"
		}
		sub := redistest.Client(t, rdb.Options().Addr).Subscribe(t.Context(), names...)
		t.Cleanup(func() { _ = sub.Close() })
		for range names {
			_, err := sub.Receive(t.Context())
			locktest.NoError(t, err)
		}
	}
	listen("theirs", "perhaps", "rw", "free")
	listen("theirs")
	page := newPage(t, rdb)
	s := list(t, page, "/?format=json")
	locktest.Equal(t, "the locks", s.String(), "theirs waited, free waited, perhaps maybe, rw other")
	locktest.Equal(t, "a word about what is not seen", len(s.Trouble), 1)
	contains(t, ok(t, page, "/"), "No client says what it holds", "2 clients listening", "perhaps waited for", "It does not see", "Redisson, or without presence", "read-write lock")
}

// Names come from users of the locks, and are shown as they are, or quoted where somebody could not see what they are.
func TestHostileNames(t *testing.T) {
	rdb := redistest.New(t)
	names := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "a\x00b\nc", "\xff\xfe", "{{.}}", "a b&name=c#d?e", "\u202eoj", " x ", "../x"}
	var holds []presence.Hold
	for _, name := range names {
		hold(t, rdb, name, 1, time.Minute)
		holds = append(holds, presence.Hold{Lock: name, Field: id(1) + ":1", For: time.Second})
	}
	says(t, rdb, 1, `<b onclick="x">`, holds, nil)
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	links := regexp.MustCompile(`href="(lock\?[^"]*)"`)
	var texts []string
	for _, path := range []string{"/", "/clients", "/client?id=" + id(1)} {
		texts = append(texts, ok(t, page, path))
	}
	for _, name := range names {
		if name == "\xff\xfe" { // what the client says of itself is JSON, which has no such name
			continue
		}
		texts = append(texts, ok(t, page, "/lock?name="+url.QueryEscape(name)))
		found := slices.ContainsFunc(links.FindAllStringSubmatch(texts[0], -1), func(m []string) bool {
			u, err := url.Parse(html.UnescapeString(m[1]))
			return err == nil && u.Query().Get("name") == name
		})
		if !found {
			t.Errorf("no link to %q", name)
		}
	}
	for _, text := range texts {
		lacks(t, text, "<script>alert", "<img", "<b ", `href="javascript`, "\x00", "\u202e")
	}
	contains(t, texts[0], "&lt;script&gt;alert(1)&lt;/script&gt;", `a\x00b\nc`, `\u202eoj`, "&#34; x &#34;")
}

// Clients, hosts, programs and ids are shown as names of locks are: nothing in them turns a line around, or is there unseen.
func TestHostileClients(t *testing.T) {
	rdb := redistest.New(t)
	const hostile = "\u202ea\u2066b\x1b[2J\u200b\u009b"
	hold(t, rdb, "l"+hostile, 1, time.Minute)
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line:{l"+hostile+"}", redis.Z{Member: "ticket" + hostile}).Err())
	locks := []string{"l" + hostile, "m" + hostile} // each waits for what the other one holds
	for i, client := range []string{id(1), "id" + hostile} {
		locktest.NoError(t, presence.Write(t.Context(), rdb, &presence.Client{
			ID: client, Name: "name" + hostile, Host: "host" + hostile, Program: "program" + hostile,
			Holds: []presence.Hold{{Lock: locks[i], Field: id(1) + ":1", For: 2 * time.Hour}}, Waits: []presence.Wait{{Lock: locks[1-i], For: time.Hour}},
		}))
	}
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	lock := url.QueryEscape("l" + hostile)
	values := regexp.MustCompile(` value="[^"]*"`) // what a form sends
	for _, path := range []string{"/", "/lock?name=" + lock, "/clients", "/client?id=" + id(1), "/client?id=id" + url.QueryEscape(hostile), "/free?token=0&name=" + lock + "&holder=" + id(1) + ":1"} {
		text := html.UnescapeString(values.ReplaceAllString(ok(t, page, path), ""))
		if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%s shows %q", path, text[max(at-80, 0):min(at+80, len(text))])
		}
	}
	for _, path := range []string{"/free?token=0&name=" + lock + "&holder=" + id(2) + ":1", "/client?format=json&id=" + id(1)} {
		lacks(t, get(page, path).Body.String(), "\u202e", "\u009b")
	}
}

// A very long name does not push what is stuck, and who holds it, off the page; the page of the lock has the name in full.
func TestLongName(t *testing.T) {
	rdb := redistest.New(t)
	name := "begin" + strings.Repeat("x", 4096) + "end"
	hold(t, rdb, name, 1, time.Minute)
	wait(t, rdb, name, 2)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: name, Field: id(1) + ":1", For: time.Hour}}, []presence.Wait{{Lock: name, Calls: 1}})
	page := newPage(t, rdb)
	tags := regexp.MustCompile(`<[^>]*>`)
	for _, path := range []string{"/", "/client?id=" + id(1)} {
		text := tags.ReplaceAllString(ok(t, page, path), "")
		contains(t, text, "beginxxx", "xxxend")
		lacks(t, text, strings.Repeat("x", 200))
	}
	contains(t, tags.ReplaceAllString(ok(t, page, "/lock?name="+name), ""), name)
}

// The page is where it is mounted, with its prefix or without.
func TestMounted(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Minute)
	page := newPage(t, rdb)
	mux := http.NewServeMux()
	mux.Handle("/a/b/", page)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", page))
	mux.Handle("/bare", http.StripPrefix("/bare", page)) // without the slash
	mux.Handle("/exact", page)
	mux.Handle("GET /wild/{rest...}", page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, prefix := range []string{"/a/b/", "/stripped/", "/wild/"} {
		for _, path := range []string{"", "lock?name=l", "clients", "style.css", "script.js"} {
			answer, err := server.Client().Get(server.URL + prefix + path)
			locktest.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			locktest.NoError(t, err)
			_ = answer.Body.Close()
			locktest.Equal(t, prefix+path, answer.StatusCode, http.StatusOK)
			lacks(t, string(body), `href="/`, `src="/`, `action="/`)
		}
		locktest.Equal(t, prefix+"nothing", status(t, server, prefix+"nothing"), http.StatusNotFound)
	}
	leads := func(handler http.Handler, path, want string) {
		t.Helper()
		w := get(handler, path)
		locktest.Equal(t, path, fmt.Sprint(w.Code, " ", w.Header().Get("Location")), "307 "+want)
	}
	leads(mux, "/bare?format=json", "./bare/?format=json")
	leads(mux, "/exact", "./exact/")
	leads(page, "/x/locks", "./locks/") // of a router that says nothing
	leads(page, "/x/a%2Fb%20c", "./a%2Fb%20c/")
	locktest.Equal(t, "a file", get(page, "/x/favicon.ico").Code, http.StatusNotFound)
	ok(t, http.StripPrefix("/", page), "/")
}

func status(t *testing.T, server *httptest.Server, path string) int {
	t.Helper()
	answer, err := server.Client().Get(server.URL + path)
	locktest.NoError(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// No answer may be kept, framed or sniffed, and none has a script or a style within.
func TestHeaders(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Minute)
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/lock?name=l": "text/html; charset=utf-8", "/clients": "text/html; charset=utf-8",
		"/client?id=x": "text/html; charset=utf-8", "/nothing.x": "text/html; charset=utf-8", "/?format=fragment": "text/html; charset=utf-8",
		"/?format=json": "application/json", "/nothing.x?format=json": "application/json",
		"/style.css": "text/css; charset=utf-8", "/script.js": "text/javascript; charset=utf-8",
		"/free?name=l&token=0&holder=" + url.QueryEscape(id(1)+":1"): "text/html; charset=utf-8",
	} {
		w := get(page, path)
		for name, want := range map[string]string{
			"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Robots-Tag": "noindex", "Referrer-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			locktest.Equal(t, path+": "+name, w.Header().Get(name), want)
		}
		if strings.HasPrefix(kind, "text/html") {
			if found := regexp.MustCompile(`<style|<script(?: defer)?>| style=| on[a-z]+=|<iframe|<base`).FindString(w.Body.String()); found != "" {
				t.Errorf("%s has %q", path, found)
			}
		}
	}
	fragment := ok(t, page, "/?format=fragment")
	contains(t, fragment, `<div id="live"`)
	lacks(t, fragment, "<html", "<form")
}

// A page without WithForceUnlock reads only, whatever is sent to it.
func TestReadOnly(t *testing.T) {
	rdb := redistest.New(t)
	field := hold(t, rdb, "l", 1, time.Minute)
	asked := "/free?token=0&name=l&holder=" + url.QueryEscape(field)
	never := lockui.WithForceUnlock(func(*http.Request) bool { return false })
	for _, page := range []http.Handler{newPage(t, rdb), newPage(t, rdb, never)} {
		locktest.Equal(t, "the form", get(page, asked).Code, http.StatusForbidden)
		locktest.Equal(t, "the button", post(page, asked, "l").Code, http.StatusForbidden)
		locktest.Equal(t, "POST elsewhere", post(page, "/lock?name=l", "l").Code, http.StatusMethodNotAllowed)
		lacks(t, ok(t, page, "/lock?name=l"), "Force open")
	}
	locktest.Equal(t, "keys", rdb.Exists(t.Context(), "l").Val(), 1)
}

// post sends the form, as a page of this site does.
func post(page http.Handler, target, typed string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(url.Values{"typed": {typed}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

// The button frees the hold that was shown, by who may, with the name typed, from this site; and tells the log.
func TestForceUnlock(t *testing.T) {
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	l := rlock.NewLock(client, "a {b}\n")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	var log locktest.Log
	page := newPage(t, rdb, lockui.WithLogger(log.Logger()), lockui.WithForceUnlock(func(r *http.Request) bool { return r.Header.Get("X-Who") == "" }))
	link := regexp.MustCompile(`href="(free\?[^"]*)"`).FindStringSubmatch(ok(t, page, "/lock?name="+url.QueryEscape(l.Name())))
	if link == nil {
		t.Fatal("there is no button")
	}
	target := "/" + html.UnescapeString(link[1])
	form := ok(t, page, target)
	contains(t, form, `method="post"`, "a {b}\\n")
	for what, w := range map[string]*httptest.ResponseRecorder{
		"400 another name":  post(page, target, "a"),
		"400 no name":       post(page, target, ""),
		"403 another site":  post(page, target, l.Name(), "Sec-Fetch-Site", "cross-site"),
		"403 a sister site": post(page, target, l.Name(), "Sec-Fetch-Site", "same-site"),
		"403 another host":  post(page, target, l.Name(), "Sec-Fetch-Site", "", "Origin", "https://evil.example"),
		"403 who may not":   post(page, target, l.Name(), "X-Who", "somebody"),
		"400 no holder":     post(page, "/free?name=l&token=0", "l"),
		"400 no token":      post(page, "/free?name=l&holder=x", "l"),
	} {
		locktest.Equal(t, what, fmt.Sprint(w.Code), what[:3])
		lacks(t, w.Body.String(), "Freed")
	}
	contains(t, post(page, target, strings.Repeat("x", 1<<20)).Body.String(), "The form cannot be read") // nor kept in memory
	r := httptest.NewRequest(http.MethodPut, target, nil)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	locktest.Equal(t, "PUT", w.Code, http.StatusMethodNotAllowed)
	locktest.NoError(t, held.Err())
	locktest.Equal(t, "lines in the log", log.Count("forced open"), 0)

	w = post(page, target, `"a {b}\n"`) // as it is shown
	locktest.Equal(t, "status", w.Code, http.StatusOK)
	contains(t, w.Body.String(), "Freed")
	redistest.Eventually(t, time.Minute, func() bool { return held.Err() != nil }, "the holder learns of it")
	locktest.Equal(t, "lines in the log", log.Count("forced open"), 1)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)

	again, err := l.Lock(t.Context()) // another hold, of another holder
	locktest.NoError(t, err)
	for _, w := range []*httptest.ResponseRecorder{post(page, target, l.Name()), get(page, target)} {
		locktest.Equal(t, "status, of a hold that is over", w.Code, http.StatusConflict)
		contains(t, w.Body.String(), "Nothing was freed", "another client has the lock")
		lacks(t, w.Body.String(), "<form method")
	}
	locktest.NoError(t, again.Err())
	locktest.NoError(t, l.Unlock(again))
	contains(t, post(page, target, l.Name()).Body.String(), "nobody has the lock now")
}

// The same holder may have unlocked meanwhile and locked again: the token tells. That happens between the look and the release too.
func TestForceUnlockOfTheSameHolder(t *testing.T) {
	rdb := redistest.New(t)
	field := hold(t, rdb, "l", 1, time.Minute)
	locktest.NoError(t, rdb.Set(t.Context(), "redisson_lock_token:{l}", 4, 0).Err())
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	target := "/free?name=l&token=3&holder=" + url.QueryEscape(field)
	locktest.Equal(t, "status", post(page, target, "l").Code, http.StatusConflict)
	locktest.Equal(t, "keys", rdb.Exists(t.Context(), "l").Val(), 1)

	spy := spyOn(rdb)
	target = "/free?name=l&token=4&holder=" + url.QueryEscape(field)
	other := redistest.Client(t, rdb.Options().Addr)
	spy.call(func(command string) error {
		if strings.HasPrefix(command, "eval") {
			hold(t, other, "l", 2, time.Minute)
		}
		return nil
	})
	w := post(page, target, "l")
	locktest.Equal(t, "status, of a hold that another one has followed meanwhile", w.Code, http.StatusConflict)
	lacks(t, w.Body.String(), "Freed")
	locktest.Equal(t, "the other one", fmt.Sprint(rdb.HGetAll(t.Context(), "l").Val()), "map["+id(2)+":1:1]")
}

// However many look at the same time, Redis is asked once; and a second later again.
func TestOneInspectionForAll(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		hold(t, rdb, "l", 1, time.Minute)
		says(t, rdb, 1, "billing", []presence.Hold{{Lock: "l", Field: id(1) + ":1", For: time.Second}}, nil)
		spy := spyOn(rdb)
		page := newPage(t, rdb)
		look := func() int {
			before := spy.commands.Load()
			var viewers sync.WaitGroup
			for range 50 {
				viewers.Go(func() { ok(t, page, "/") })
			}
			viewers.Wait()
			return int(spy.commands.Load() - before)
		}
		first := look()
		if first == 0 || first > 30 {
			t.Errorf("%d commands for 50 viewers", first)
		}
		if n := spy.reads.Load(); n != 1 {
			t.Errorf("what clients say was read %d times", n)
		}
		locktest.Sleep(900 * time.Millisecond)
		locktest.Equal(t, "commands in the same second", look(), 0)
		locktest.Sleep(100 * time.Millisecond)
		if again := look(); again == 0 || again > 30 {
			t.Errorf("%d commands a second later", again)
		}
		contains(t, ok(t, page, "/lock?name=l"), "2 s") // a second when it was said, and one since
		locktest.Equal(t, "reads of what clients say", spy.reads.Load(), 1)
		locktest.Sleep(4 * time.Second)
		look()
		locktest.Equal(t, "reads of what clients say, after 5 s", spy.reads.Load(), 2)
		locktest.Sleep(time.Second)
	})
}

// A client that has written nothing for longer than it ever does stands still, or is gone, also where no other client writes: what it
// holds is stuck at once, if somebody waits, and the page says when it was heard of last. Where nobody waits it says that alone.
func TestSilentHolder(t *testing.T) {
	realtime.Test(t, "a page that is shown within two seconds")
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Hour)
	wait(t, rdb, "l", 2)
	hold(t, rdb, "alone", 1, time.Hour)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: "l", Field: id(1) + ":1", For: time.Second}, {Lock: "alone", Field: id(1) + ":1", For: time.Second}}, nil)
	says(t, rdb, 2, "mail", nil, []presence.Wait{{Lock: "l", Calls: 1, For: time.Second}})
	for _, c := range []struct {
		ago   time.Duration
		want  string
		heard string
	}{{10 * time.Second, "l waited, alone held", ""}, {14 * time.Second, "l stuck, alone held", "14 s"}, {9 * time.Minute, "l stuck, alone held", "9 min 00 s"}} {
		heard(t, rdb, 1, c.ago)
		page := newPage(t, rdb)
		locktest.Equal(t, c.ago.String(), list(t, page, "/?format=json").String(), c.want)
		texts := map[string]string{}
		for _, path := range []string{"/", "/clients", "/lock?name=l", "/lock?name=alone", "/client?id=" + id(1)} {
			texts[path] = ok(t, page, path)
			if c.heard == "" {
				lacks(t, texts[path], "last heard of")
			} else {
				contains(t, texts[path], "last heard of "+c.heard+" ago")
			}
		}
		if c.heard != "" {
			contains(t, texts["/"], "its holder&#39;s client was last heard of "+c.heard+" ago", `on host1, <span class="number">pid 1</span>`)
		}
		contains(t, ok(t, page, "/lock?name=alone&format=json"), fmt.Sprintf(`"silent_ms": %d`, c.ago.Milliseconds()/10000))
	}
}

// What somebody has forged among the clients spoils neither the page nor its data, and makes nobody else's locks stuck.
func TestForgedClient(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Minute)
	wait(t, rdb, "l", 2)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: "l", Field: id(1) + ":1", For: time.Second}}, nil)
	says(t, rdb, 2, "mail", nil, []presence.Wait{{Lock: "l", Calls: 1, For: time.Second}})
	says(t, rdb, 3, "web\u202e", []presence.Hold{{Lock: "forged", For: 1<<63 - 1}}, nil)
	locktest.NoError(t, rdb.HSet(t.Context(), presence.Key(id(3)), "since", "999999999999999", "seen", "999999999999999", "host", "a\u202eb", "program", strings.Repeat("x", 28<<20), "waits", strings.Repeat("x", 28<<20)).Err())
	page := newPage(t, rdb)
	for _, path := range []string{"/?format=json", "/clients?format=json", "/lock?name=l&format=json", "/client?format=json&id=" + id(3)} {
		ok(t, page, path)
	}
	locktest.Equal(t, "the locks", list(t, page, "/?format=json").String(), "l waited")
	for _, path := range []string{"/", "/clients", "/lock?name=l", "/client?id=" + id(3)} {
		text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(ok(t, page, path), "")
		lacks(t, text, "\u202e", "for -", "-9223")
		contains(t, text, "what 1 client says of more than the page reads")
	}
}

// Of a key that is no lock the page shows nothing but that.
func TestNoLock(t *testing.T) {
	rdb := redistest.New(t)
	locktest.NoError(t, rdb.HSet(t.Context(), "session", "secret", "word").Err())
	locktest.NoError(t, rdb.HSet(t.Context(), "mixed", id(1)+":1", 1, "secret", "word").Err())
	locktest.NoError(t, rdb.Set(t.Context(), "text", "secret word", 0).Err())
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line:{l}", redis.Z{Score: 1, Member: "secret:word"}).Err())
	page := newPage(t, rdb)
	for _, path := range []string{"/lock?name=session", "/lock?name=mixed", "/lock?name=text", "/lock?name=l"} {
		for _, format := range []string{"", "&format=json"} {
			text := ok(t, page, path+format)
			lacks(t, text, "secret", "word")
			if path != "/lock?name=l" {
				contains(t, text, " no ") // lock, or hash
			}
		}
	}
}

// Of very many locks 500 are shown, those that are stuck among them, and only those are asked about.
func TestBounded(t *testing.T) {
	rdb := redistest.New(t)
	const locks = 1234
	holds := map[int][]presence.Hold{}
	for i := range locks {
		name := fmt.Sprintf("l%04d", i)
		holds[i/1000] = append(holds[i/1000], presence.Hold{Lock: name, Field: id(i/1000) + ":1", For: time.Duration(i) * time.Second})
	}
	_, err := rdb.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range locks {
			pipe.HSet(t.Context(), fmt.Sprintf("l%04d", i), id(i/1000)+":1", 1)
		}
		return nil
	})
	locktest.NoError(t, err)
	wait(t, rdb, "l0777", 9)
	says(t, rdb, 0, "a", holds[0], nil)
	says(t, rdb, 1, "b", holds[1], nil)
	says(t, rdb, 9, "c", nil, []presence.Wait{{Lock: "l0777", Calls: 1, For: time.Hour}})
	spy := spyOn(rdb)
	page := newPage(t, rdb)
	s := list(t, page, "/?format=json")
	if s.Known != locks || len(s.Locks) != 500 || s.Pages != 3 || s.Locks[0].Name != "l0777" || s.Locks[0].State != "stuck" || s.Locks[1].Name != "l1233" {
		t.Errorf("%d known, %d shown, %d pages, first %v", s.Known, len(s.Locks), s.Pages, s.Locks[:2])
	}
	if n := spy.commands.Load(); n < 6*500 || n > 6*500+100 {
		t.Errorf("%d commands", n)
	}
	seen := map[string]bool{}
	for p := 1; p <= 3; p++ {
		for _, l := range list(t, page, fmt.Sprint("/?format=json&page=", p)).Locks {
			seen[l.Name] = true
		}
	}
	locktest.Equal(t, "locks on all pages", len(seen), locks)
	text := ok(t, page, "/?page=2&q=l")
	contains(t, text, "Page 2 of 3", `href="./?page=1&amp;q=l"`, `href="./?page=3&amp;q=l"`, "1234 of 1234 locks")
	lacks(t, text, "No lock looks stuck")
}

// When Redis does not answer the page says so; when it refuses one way, the other is used, and the page says that.
func TestRedisAway(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Minute)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: "l", Field: id(1) + ":1", For: time.Second}}, nil)
	spy := spyOn(rdb)
	spy.call(func(command string) error {
		if command == "pubsub" {
			return locktest.Reply("NOPERM this user has no permissions")
		}
		return nil
	})
	s := list(t, newPage(t, rdb), "/?format=json")
	locktest.Equal(t, "the locks", s.String(), "l held")
	if len(s.Trouble) != 1 || !strings.Contains(s.Trouble[0], "NOPERM") {
		t.Errorf("the trouble: %q", s.Trouble)
	}
	spy.call(func(string) error { return errors.New("connection refused") })
	var log locktest.Log
	page := newPage(t, rdb, lockui.WithLogger(log.Logger()))
	for _, path := range []string{"/", "/lock?name=l", "/clients", "/client?id=x", "/?format=json", "/?format=fragment"} {
		w := get(page, path)
		locktest.Equal(t, path, w.Code, http.StatusServiceUnavailable)
		contains(t, w.Body.String(), "Redis did not answer", "connection refused")
	}
	locktest.Equal(t, "lines in the log", log.Count("no inspection"), 1)
}

// The page says once, in a sentence, that Redis lets it in nowhere.
func TestRefused(t *testing.T) {
	rdb := redistest.New(t)
	spy := spyOn(rdb)
	spy.call(func(string) error { return locktest.Reply("NOAUTH Authentication required.") })
	w := get(newPage(t, rdb), "/")
	locktest.Equal(t, "status", w.Code, http.StatusServiceUnavailable)
	contains(t, w.Body.String(), ">Redis refused: NOAUTH: the server asks for a password.<")
}

// The page names the server that does not answer, and says what that means; of a quorum each server.
func TestNobodyAnswers(t *testing.T) {
	away := func(port int) redis.UniversalClient {
		return redistest.Client(t, fmt.Sprint("127.0.0.1:", port), func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	}
	one, err := inspect.New(away(1))
	locktest.NoError(t, err)
	quorum, err := inspect.NewQuorum([]redis.UniversalClient{away(1), away(2), away(3)})
	locktest.NoError(t, err)
	for want, in := range map[string]*inspect.Inspector{
		"Redis at 127.0.0.1:1 does not answer: connection refused. Nobody gets a lock meanwhile.": one,
		"Redis at 127.0.0.1:1 does not answer: connection refused; Redis at 127.0.0.1:2 does not answer: connection refused; " +
			"Redis at 127.0.0.1:3 does not answer: connection refused. Nobody gets a lock meanwhile.": quorum,
	} {
		var log locktest.Log
		page := lockui.New(in, lockui.WithLogger(log.Logger()), lockui.WithForceUnlock(func(*http.Request) bool { return true }))
		for _, path := range []string{"/", "/lock?name=l", "/clients", "/client?id=x", "/free?name=l&holder=h&token=1", "/?format=json"} {
			w := get(page, path)
			locktest.Equal(t, path, w.Code, http.StatusServiceUnavailable)
			contains(t, w.Body.String(), want)
			lacks(t, w.Body.String(), "dial", `\n`)
		}
	}
}

// Where the line is longer than what is read of it, or a client in it does not say how many of its calls wait, the calls are a part.
func TestCallsOfALongLine(t *testing.T) {
	rdb := redistest.New(t)
	waits := []presence.Wait{{Lock: "long", Calls: 2, For: time.Second}, {Lock: "short", Calls: 1, For: time.Second}, {Lock: "mixed", Calls: 1, For: time.Second}}
	for n := 1; n <= inspect.MaxLine+5; n++ {
		says(t, rdb, n, "mail", nil, waits)
		wait(t, rdb, "long", n)
	}
	wait(t, rdb, "short", 1)
	wait(t, rdb, "mixed", 1)
	wait(t, rdb, "mixed", 999)
	text := ok(t, newPage(t, rdb), "/")
	contains(t, text, "<div>105 clients, at least 200 calls <", "<div>1 client, 1 call <", "<div>2 clients, at least 1 call <")
}

// The own channel of {a} and a is the same: where clients say that they hold or wait for {a}, and none that for a, that is the lock.
func TestNamesThatShareAChannel(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "{a}", 1, time.Minute)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: "{a}", Field: id(1) + ":1", For: time.Second}}, nil)
	for range 2 {
		heard := rdb.Subscribe(t.Context(), "redisson_lock__channel:{a}")
		t.Cleanup(func() { _ = heard.Close() })
		_, err := heard.Receive(t.Context())
		locktest.NoError(t, err)
	}
	s := list(t, newPage(t, rdb), "/?format=json")
	locktest.Equal(t, "the locks", s.String(), "{a} waited")
}

// Who goes away waits no longer, and the others get their answer.
func TestViewerLeaves(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "l", 1, time.Minute)
	spy := spyOn(rdb)
	reached, goOn := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(reached) })
	spy.call(func(string) error {
		once()
		<-goOn
		return nil
	})
	page := newPage(t, rdb)
	ctx, leave := context.WithCancel(t.Context())
	left := locktest.Start(func() error {
		page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		return nil
	})
	redistest.Await(t, time.Minute, reached, "Redis is asked")
	stays := locktest.Start(func() error {
		if w := get(page, "/"); w.Code != http.StatusOK {
			return errors.New(w.Body.String())
		}
		return nil
	})
	leave()
	locktest.NoError(t, redistest.Await(t, time.Minute, left, "who leaves"))
	close(goOn)
	locktest.NoError(t, redistest.Await(t, time.Minute, stays, "who stays"))
}
