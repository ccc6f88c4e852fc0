//go:build unix

package main

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// get asks the page as a browser does, for this host's name.
func get(t *testing.T, page, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// The page shows a lock, to this machine alone, and only reads unless it was asked to do more.
func TestUI(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	client, err := rlock.New(server.Client(), rlock.WithPresence("billing"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lock := fenced.NewLock(client, "account:42")
	held, _, err := lock.LockAndGetToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock(held) }()

	for _, allow := range []bool{false, true} {
		args := []string{"ui"}
		if allow {
			args = append(args, "--allow-force-unlock")
		}
		p := start(t, server.Addr(), args...)
		page := p.line()
		at, err := url.Parse(page)
		if err != nil || at.Hostname() != "127.0.0.1" {
			t.Fatalf("the page is at %q: %v", page, err)
		}
		one := page + "lock?name=account:42"
		status, body := get(t, one, at.Host)
		equal(t, "status", status, http.StatusOK)
		if !strings.Contains(body, "billing") || !strings.Contains(body, "account:42") {
			t.Errorf("the page does not show the lock and its holder:\n%s", body)
		}
		equal(t, "there is a way to force the lock open", strings.Contains(body, "free?"), allow)
		status, _ = get(t, one, "localhost:"+at.Port())
		equal(t, "status for localhost", status, http.StatusOK)
		status, body = get(t, one, "evil.example:"+at.Port())
		equal(t, "status for another name", status, http.StatusMisdirectedRequest)
		if strings.Contains(body, "account") {
			t.Errorf("it reads %s", body)
		}
		equal(t, "it warns", strings.Contains(p.said(), "whoever reaches this page"), false)
		p.signal(syscall.SIGINT)
		equal(t, "exit code", p.ends(), 0)
	}

	for _, address := range []string{"0.0.0.0:0", "127.0.0.1:no", "no such host.:1"} {
		p := start(t, server.Addr(), "ui", "--listen", address)
		equal(t, "exit code with "+address, p.ends(), exitUsage)
		if !strings.Contains(p.said(), "--listen "+address) {
			t.Errorf("with %s it says %s", address, p.said())
		}
	}
	p := start(t, server.Addr(), "ui", "--listen", server.Addr())
	equal(t, "exit code with a port in use", p.ends(), exitFailed)
	equal(t, "with a port in use it says", p.said(), "fencelock: --listen "+server.Addr()+": the port is in use: take another one\n")
	for _, more := range [][]string{nil, {"--allow-force-unlock"}} {
		p := start(t, server.Addr(), append([]string{"ui", "--listen", "0.0.0.0:0", "--public"}, more...)...)
		if page := p.line(); !strings.HasPrefix(page, "http://") {
			t.Errorf("a public page is at %q", page)
		}
		equal(t, "it warns of a public page that frees locks", strings.Contains(p.said(), "whoever reaches this page may free any lock"), len(more) > 0)
		p.signal(syscall.SIGTERM)
		equal(t, "exit code", p.ends(), 0)
	}
}
