// Package lockui is a page for people on call: which locks are stuck, who holds them, since when, and who waits. It is an
// http.Handler on an inspect.Inspector, and mounts under any prefix, with or without http.StripPrefix:
//
//	in, err := inspect.New(rdb)
//	mux.Handle("/internal/locks/", requireLogin(lockui.New(in)))
//
// With an inspector of inspect.NewQuorum it shows the locks of a quorum by the majority, and which servers do not count.
//
// The page shows names of locks, hosts and process ids, and asks nobody who they are: mount it behind the login that the service's
// other internal pages have. It only reads, unless WithForceUnlock allows more.
//
// A semaphore is one row, and has a page of its own with its slots and who waits.
//
// Clients that wait in a circle, as inspect.Cycles finds them, are named above all locks.
//
// A hold that is old while others wait for the lock comes first. A person sees that without JavaScript too; with it the page renews
// itself every two seconds, while its tab is visible. Each page has its data as JSON under ?format=json.
//
// However many people look, Redis is asked once a second at most, and only about the locks that are shown: 500 on a page. What
// clients say of themselves is read every five seconds. When
// Redis does not answer, or of a quorum too few servers answer and count, the page says so, with the status 503.
package lockui

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// Option changes a default of New.
type Option func(*handler)

// WithForceUnlock adds a button by which people free a lock whose holder is stuck. allowed says for each request whether its sender
// may; it is called for the pages that have the button, and again when it is used, and may be called several times at once. The
// hold that was shown is freed, and no other. Its holder may be in the middle of its work: what that means is on the page.
func WithForceUnlock(allowed func(*http.Request) bool) Option {
	return func(h *handler) { h.allowed = allowed }
}

// WithLongHold says from when on a hold that others wait for counts as stuck, but for one with rlock.Lasting. The default, also for 0 and less, is a
// minute.
func WithLongHold(d time.Duration) Option {
	return func(h *handler) {
		if d > 0 {
			h.longHold = d
		}
	}
}

// WithLease says how long the locks' leases are, as rlock.WithLease does: the bar of a lease is full then. The default, also for 0 and
// less, is that of rlock.WithLease, 30 s.
func WithLease(d time.Duration) Option {
	return func(h *handler) {
		if d > 0 {
			h.lease = d
		}
	}
}

// WithLogger is where each use of the button is told, and each failure to ask Redis. The default is slog.Default().
func WithLogger(log *slog.Logger) Option {
	return func(h *handler) {
		if log != nil {
			h.log = log
		}
	}
}

// New returns the page. It starts nothing, and asks Redis only when it is asked itself. It panics where in is nil.
func New(in *inspect.Inspector, opts ...Option) http.Handler {
	if in == nil {
		panic("lockui: New: the inspector is nil: make one with inspect.New")
	}
	h := &handler{in: in, longHold: time.Minute, lease: 30 * time.Second, log: slog.Default()}
	for _, opt := range opts {
		if opt != nil {
			opt(h)
		}
	}
	return h
}

type handler struct {
	in       *inspect.Inspector
	allowed  func(*http.Request) bool // nil: the page only reads
	longHold time.Duration
	lease    time.Duration
	log      *slog.Logger
	cross    http.CrossOriginProtection

	mu   sync.Mutex
	last *flight

	said said // of the inspections, of which there is one at a time
}

// ServeHTTP looks at the last part of the path alone: what comes before is where the page is mounted.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Robots-Tag", "noindex")
	head.Set("Referrer-Policy", "same-origin") // with no-referrer a form comes with the origin null, which CrossOriginProtection refuses
	if err := h.cross.Check(r); err != nil {
		h.fail(w, r, http.StatusForbidden, "The request came from a page of another site. Nothing was done.")
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if name != "free" && r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		h.fail(w, r, http.StatusMethodNotAllowed, "This page can only be read.")
		return
	}
	switch name {
	case "style.css", "script.js":
		http.ServeFileFS(w, r, assets, "assets/"+name)
	case "":
		if asked, _, _ := strings.Cut(r.RequestURI, "?"); r.URL.Path == "" && !strings.HasSuffix(asked, "/") { // of http.StripPrefix
			h.slash(w, r)
			return
		}
		h.locks(w, r)
	case "lock":
		h.lock(w, r)
	case "semaphore":
		h.semaphore(w, r)
	case "clients":
		h.clients(w, r)
	case "client":
		h.client(w, r)
	case "free":
		h.free(w, r)
	default:
		if h.isMountPoint(r, name) {
			h.slash(w, r)
			return
		}
		h.fail(w, r, http.StatusNotFound, "There is no such page.")
	}
}

// isMountPoint reports whether the path is where the page is mounted, without the slash at the end. http.ServeMux says what it has
// matched; of another router, what looks like a file is none.
func (h *handler) isMountPoint(r *http.Request, name string) bool {
	if r.Pattern != "" {
		return strings.HasSuffix(r.Pattern, "/"+name)
	}
	return !strings.Contains(name, ".")
}

// slash leads to the same path with a slash at the end, on which the page's links are built. What is in front of the last part, which
// a proxy may have taken off, the browser knows.
func (h *handler) slash(w http.ResponseWriter, r *http.Request) {
	asked, query, _ := strings.Cut(r.RequestURI, "?")
	to := "./" + path.Base(asked) + "/"
	if query != "" {
		to += "?" + query
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// A flight is one inspection for all who want one meanwhile.
type flight struct {
	done   chan struct{} // closed when survey and err are there
	ended  time.Time
	survey *survey
	err    error
}

const (
	// fresh is how long an inspection is shown before there is another one.
	fresh = time.Second
	// patience is how long Redis may take for one.
	patience = 10 * time.Second
)

// look returns an inspection that is no older than a second.
func (h *handler) look(ctx context.Context) (*survey, error) {
	h.mu.Lock()
	f := h.last
	if f == nil || f.isOver() && time.Since(f.ended) >= fresh {
		f = &flight{done: make(chan struct{})}
		h.last = f
		go h.fly(f)
	}
	h.mu.Unlock()
	select {
	case <-f.done:
		return f.survey, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *flight) isOver() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// fly makes the inspection. Whoever has asked for it may have gone; the others have not.
func (h *handler) fly(f *flight) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.survey, f.err = newSurvey(ctx, h.in, &h.said)
	if f.err != nil {
		h.log.Warn("lockui: no inspection", "error", plain.Error(f.err, ""))
	} else {
		f.survey.ordered = h.order(f.survey)
	}
	f.ended = time.Now()
	close(f.done)
}
