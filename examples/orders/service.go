package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard/httpguard"
	"github.com/fencelock/fencelock/rlock"
)

const (
	wait    = 20 * time.Second // for the lock; longer than the lease of a holder that is gone
	longest = time.Minute      // pause
)

// service adds items to orders.
type service struct {
	client *rlock.Client
	store  *store
	lease  time.Duration
	pause  func(time.Duration)
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", s.get)
	mux.HandleFunc("POST /orders/{id}/items", s.addItem)
	return mux
}

func (s *service) get(w http.ResponseWriter, r *http.Request) {
	o, err := s.store.look(r.Context(), r.PathValue("id"))
	answer(w, o, err)
}

// addItem adds the item of the query to an order, and waits in the middle for as long as the query's pause.
func (s *service) addItem(w http.ResponseWriter, r *http.Request) {
	item := r.FormValue("item")
	if item == "" {
		http.Error(w, "name an item: ?item=tea", http.StatusBadRequest)
		return
	}
	var pause time.Duration
	if text := r.FormValue("pause"); text != "" {
		var err error
		if pause, err = time.ParseDuration(text); err != nil || pause < 0 || pause > longest {
			http.Error(w, fmt.Sprintf("the pause is a duration such as 10s, %v at most", longest), http.StatusBadRequest)
			return
		}
	}
	id := r.PathValue("id")
	var o order
	accepted := false
	// The lease is an explicit one, because the pause here is a sleep of one request: a process that stands still does not
	// renew its leases, but this one's watchdog would.
	err := fenced.NewLock(s.client, lockName(id)).TryDo(r.Context(), wait, s.lease, func(_ context.Context, token int64) (err error) {
		// By the request's context, not the lock's: that one would end with the lease, and stop the late write here. A pause
		// that comes after the last look at it is what only the guard can see.
		ctx := r.Context()
		if o, err = s.store.read(ctx, id, token); err != nil {
			return err
		}
		if pause > 0 {
			s.pause(pause)
		}
		o.Items = append(o.Items, item)
		o.Token = token
		err = s.store.write(ctx, o, token)
		accepted = err == nil
		return err
	})
	if accepted && errors.Is(err, rlock.ErrLost) {
		err = nil // the lease ran out, but nobody else came before the write: it is done
	}
	answer(w, o, err)
}

// lockName is the name of an order's lock, and of what its token protects.
func lockName(id string) string { return "order:" + id }

func answer(w http.ResponseWriter, o order, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o) // of strings and numbers; a client that has gone hears nothing
	case httpguard.Error(w, err): // 409: nothing was written, the request can be sent again
	case errors.Is(err, rlock.ErrNotAcquired):
		http.Error(w, "others are at this order, try later", http.StatusServiceUnavailable)
	case errors.Is(err, errNoOrder):
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
