package httpguard

import (
	"net/http"
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
// where the request's context is over when its turn comes, because the client has gone. The answer is 500 where resources
// returns none, or one without a name, because then nothing would be checked.
//
// Once next was called, the tokens count, whatever it answers, and also if it panics (the panic goes on): what a failed
// handler has written before it failed is not known here, and an older token must not get in behind it. That shuts out
// nobody who still has the lock. A request that failed may be sent again under the same token. A next that ends its
// goroutine (runtime.Goexit) counts as not called.
//
// next gets the server's own ResponseWriter, with Flush, Hijack and the rest. The resources are its own until it returns,
// also while it waits for a slow body or streams an answer: bound that (http.Server.ReadTimeout and WriteTimeout), or let
// the handler read first and call Memory.Do itself. What goes on after it has returned, in a goroutine or on a hijacked
// connection, is not covered.
//
// Handler panics without its arguments, which is a mistake in the program.
func Handler(m *guard.Memory, resources func(r *http.Request) []string, next http.Handler) http.Handler {
	if m == nil || resources == nil || next == nil {
		panic("httpguard: Handler needs a Memory, a function that names the resources, and a handler")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			var panicked any
			err = all(m, names, tokens, func() error {
				if err := r.Context().Err(); err != nil {
					plain(http.StatusServiceUnavailable, "The request was over before its turn came. Nothing was written.").write(w)
					return err
				}
				defer func() { panicked = recover() }()
				next.ServeHTTP(w, r)
				return nil
			})
			if panicked != nil {
				panic(panicked) // here, so that the Memory has not seen it
			}
		}
		Error(w, err)
	})
}

// all runs write as a write of all the names.
func all(m *guard.Memory, names []string, tokens map[string]int64, write func() error) error {
	if len(names) == 0 {
		return write()
	}
	return m.Do(names[0], tokens[names[0]], func() error { return all(m, names[1:], tokens, write) })
}
