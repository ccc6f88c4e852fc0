package httpguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/fencelock/fencelock/guard"
)

const (
	// StaleToken is the type of a problem document with status 409: a newer holder has written before, and nothing was
	// written by this copy of the request. An earlier copy without an answer may have been. Its members beside those of RFC 9457: resource, token (of this request) and seen (the larger
	// one), both as strings, because a JSON number is exact up to 2^53 only. Take the lock again, and begin from the read on.
	StaleToken = docs + "StaleToken"

	// TokenRequired is the type of a problem document with status 428: the request needs a token of the resource.
	TokenRequired = docs + "TokenRequired"

	// MalformedToken is the type of a problem document with status 400: the header with the tokens cannot be read.
	MalformedToken = docs + "MalformedToken"

	docs        = "https://pkg.go.dev/github.com/fencelock/fencelock/guard/httpguard#"
	blank       = "about:blank" // says no more than its status
	contentType = "application/problem+json"

	// problemHeader has the document of a refusal again, for the answer to HEAD, which has no body.
	problemHeader = "Fencing-Problem"

	retryTurn = "1"  // seconds: others were at the resource
	retryRoom = "60" // a Memory that is full is so for a while
)

// maxProblem is how much of a response is read in search of a problem document. Ours are the size of the resource's name.
const maxProblem = 64 << 10

type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Resource string `json:"resource,omitempty"`
	Token    int64  `json:"token,omitempty,string"`
	Seen     int64  `json:"seen,omitempty,string"`

	retryAfter string // seconds, "" for none
}

// Error answers with a problem document if the error is one of a token, and tells whether it did: 409 for guard.ErrStale,
// as a storage's guard returns it, 428 for ErrRequired, 400 for ErrMalformed, 503 for guard.ErrFull. It writes nothing for
// any other error and for nil, which are the caller's to answer. What wraps the error is not sent; the resource's name
// and both tokens are. The document is in the header Fencing-Problem too, for an answer to HEAD. 503 has Retry-After.
// Return after it, and call it before anything else was written.
func Error(w http.ResponseWriter, err error) bool {
	var stale *guard.StaleError
	var field *fieldError
	p := problem{}
	switch {
	case errors.As(err, &stale) && stale != nil:
		p = problem{Resource: stale.Resource, Token: stale.Token, Seen: stale.Seen}
		p.Detail = fmt.Sprintf("The token %d of %q is older than %d, which has been seen. Nothing was written. Take the lock again, and begin from the read on.",
			stale.Token, stale.Resource, stale.Seen)
		fallthrough
	case errors.Is(err, guard.ErrStale):
		p.Type, p.Title, p.Status = StaleToken, "Stale fencing token", http.StatusConflict
	case errors.Is(err, ErrRequired):
		p.Type, p.Title, p.Status = TokenRequired, "Fencing token required", http.StatusPreconditionRequired
	case errors.Is(err, ErrMalformed):
		p.Type, p.Title, p.Status = MalformedToken, "Malformed fencing token", http.StatusBadRequest
	case errors.Is(err, guard.ErrFull):
		p = plain(http.StatusServiceUnavailable, "There is no room for the token of one more resource.")
		p.retryAfter = retryRoom
	default:
		return false
	}
	if errors.As(err, &field) {
		p.Detail = field.detail
	}
	p.write(w)
	return true
}

// plain is a problem that its status names.
func plain(status int, detail string) problem {
	return problem{Type: blank, Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p problem) write(w http.ResponseWriter) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // of strings and numbers
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if p.Type != blank {
		h.Set(problemHeader, ascii(body.String()))
	}
	if p.retryAfter != "" {
		h.Set("Retry-After", p.retryAfter)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes()) // the client has gone: nobody is left to tell
}

// ascii is a JSON text with all but printable ASCII escaped: its white space is between its parts only.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// ResponseError returns what Error has sent: a *guard.StaleError, which is guard.ErrStale, for a refused write, or an error
// that is ErrRequired or ErrMalformed. It returns nil for every other response, whatever its status. resp.Body may be read
// from its beginning afterwards, and is still to be closed.
func ResponseError(resp *http.Response) error {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != contentType || resp.Body == nil {
		return nil
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // an error comes again at the caller's own read
	resp.Body = body{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	var p problem
	if len(head) == 0 {
		head = []byte(resp.Header.Get(problemHeader))
	}
	if json.Unmarshal(head, &p) != nil {
		return nil
	}
	switch {
	case p.Type == StaleToken && resp.StatusCode == http.StatusConflict:
		return &guard.StaleError{Resource: p.Resource, Token: p.Token, Seen: p.Seen}
	case p.Type == TokenRequired && resp.StatusCode == http.StatusPreconditionRequired:
		return &fieldError{ErrRequired, p.Detail}
	case p.Type == MalformedToken && resp.StatusCode == http.StatusBadRequest:
		return &fieldError{ErrMalformed, p.Detail}
	}
	return nil
}

// body is a response's body of which the beginning was read, and is read again.
type body struct {
	io.Reader
	io.Closer
}
