package httpguard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
)

// guarded is the ResponseWriter of a guarded request: it knows the status of what was answered.
type guarded struct {
	http.ResponseWriter
	status int // 0: none yet
}

func (a *guarded) WriteHeader(status int) {
	if status >= 200 { // others come before the answer
		a.say(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *guarded) Write(b []byte) (int, error) {
	a.say(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// ReadFrom is for io.Copy, which lets the kernel copy a file.
func (a *guarded) ReadFrom(r io.Reader) (int64, error) {
	a.say(http.StatusOK)
	return io.Copy(a.ResponseWriter, r)
}

func (a *guarded) FlushError() error {
	a.say(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

func (a *guarded) Flush() { _ = a.FlushError() } // as http.Flusher wants it

func (a *guarded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (a *guarded) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// say notes the first status, which is the one that the client gets, and keeps the answer out of shared caches.
func (a *guarded) say(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	h := a.Header()
	if !private(h.Values("Cache-Control")) {
		h.Set("Cache-Control", "no-store")
	}
	for _, line := range h.Values("Vary") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name == "*" || strings.EqualFold(name, Header) {
				return
			}
		}
	}
	h.Add("Vary", Header)
}

// private tells whether these directives keep an answer out of shared caches: private, without names of fields, or
// no-store, and not public beside them.
func private(lines []string) bool {
	found := false
	for rest := strings.Join(lines, ","); rest != ""; {
		var directive string
		directive, rest = cutDirective(rest)
		switch strings.ToLower(strings.TrimSpace(directive)) {
		case "private", "no-store":
			found = true
		case "public":
			return false
		}
	}
	return found
}

// cutDirective cuts off the text before the first comma that is not in quotes.
func cutDirective(text string) (directive, rest string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
