package httpguard

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/fencelock/fencelock/guard"
)

// Handler makes the check of a request's tokens and next one step, for a service that owns its data in one process: next
// is called if no larger token was accepted for any of the resources, and while it runs, no other request to one of them
// is. resources names what a request writes, or reads for the sake of a later write, such as []string{"account:" +
// r.PathValue("id")}; the header must have a token of each. Wrap the routes that need one, not the whole server:
//
//	mux.Handle("POST /accounts/{id}", httpguard.Handler(marks, resources, deposit))
//
// A refused request is answered as by Error, and next is not called: 409, 428 or 400, and 503 where the Memory is full, or
// where the request's context ends before its turn comes, because the client has gone. The answer is 500 where resources
// returns none, or one without a name, because then nothing would be checked; and inside another Handler of the same
// Memory that has one of the resources, because it would wait for itself for ever. What next calls over the network is
// not seen to be inside.
//
// Once next was called, the tokens count, whatever it answers, and also if it panics or ends its goroutine: what a failed
// handler has written before it failed is not known here, and an older token must not get in behind it. That shuts out
// nobody who still has the lock. A request that failed may be sent again under the same token. Where next answers 404 or
// 410, and no request for the resource has had another answer, the Memory may forget the token when it is full: see
// [guard.ErrAbsent].
//
// Every answer, also that to a GET, says Vary: Fencing-Token and Cache-Control: no-store, unless next sets
// private or no-store itself, and no public beside that: a read
// that a cache answers shows no token, and a write that depends on it can lose another one.
//
// next gets a ResponseWriter with Flush, Hijack and ReadFrom; http.ResponseController finds the rest. The resources are
// its own until it returns, also while it waits for a slow body or streams an answer: bound that (http.Server.ReadTimeout
// and WriteTimeout), or let the handler read first and call Memory.Do itself. What goes on after it has returned, in a
// goroutine or on a hijacked connection, is not covered. http.TimeoutHandler returns while the handler in it goes on: put
// it around Handler, not inside.
//
// Handler panics without its arguments, and for an http.TimeoutHandler as next: mistakes in the program.
func Handler(m *guard.Memory, resources func(r *http.Request) []string, next http.Handler) http.Handler {
	if m == nil || resources == nil || next == nil {
		panic("httpguard: Handler needs a Memory, a function that names the resources, and a handler")
	}
	if reflect.TypeOf(next) == timeoutHandler {
		panic("httpguard: Handler around http.TimeoutHandler: the write would go on after the turn: put TimeoutHandler around Handler")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Add("Vary", Header)
		names := slices.Clone(resources(r))
		slices.Sort(names) // in one order everywhere: two requests must not wait for each other
		names = slices.Compact(names)
		if len(names) == 0 || names[0] == "" {
			plain(http.StatusInternalServerError, "The service names no resource for this request.").write(w)
			return
		}
		tokens, err := Tokens(r)
		for _, name := range names {
			if err == nil {
				_, err = one(tokens, name)
			}
		}
		if err == nil {
			err = all(r.Context(), m, names, tokens, func(ctx context.Context) error {
				a := &guarded{ResponseWriter: w}
				inner := r.WithContext(ctx)
				defer func() { r.MultipartForm = inner.MultipartForm }() // whose files the server removes
				next.ServeHTTP(a, inner)
				a.say(http.StatusOK) // as the server does
				if a.status == http.StatusNotFound || a.status == http.StatusGone {
					return guard.ErrAbsent
				}
				return nil
			})
		}
		switch {
		case err == nil, errors.Is(err, guard.ErrAbsent), Error(w, err):
		case errors.Is(err, guard.ErrNested):
			plain(http.StatusInternalServerError, "The service handles this request inside another one of the same resource.").write(w)
		default: // that of the context
			p := plain(http.StatusServiceUnavailable, "The request was over before its turn came. Nothing was written.")
			p.retryAfter = retryTurn
			p.write(w)
		}
	})
}

var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// all runs write as a write of all the names.
func all(ctx context.Context, m *guard.Memory, names []string, tokens map[string]int64, write func(ctx context.Context) error) error {
	if len(names) == 0 {
		return write(ctx)
	}
	return m.Do(ctx, names[0], tokens[names[0]], func(ctx context.Context) error {
		return all(ctx, m, names[1:], tokens, write)
	})
}
