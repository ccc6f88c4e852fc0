package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/s3guard"
)

// gate holds each request back until the test lets it pass.
type gate struct {
	arrived chan chan struct{} // a request, which goes on when its channel is closed
	passed  chan *http.Response
}

func newGate() *gate { return &gate{make(chan chan struct{}), make(chan *http.Response, 1)} }

func (g *gate) wire(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	mine := make(chan struct{})
	g.arrived <- mine
	<-mine
	response, err := send()
	g.passed <- response
	return response, err
}

// A writer is a holder with a token, whose requests pass a gate.
type writer struct {
	token int64
	*gate
	done chan error
	err  error
	over bool
}

// step lets the writer's next request pass, and waits for its answer. It tells whether that has written.
func (w *writer) step() (wrote bool) {
	if w.over {
		return false
	}
	select {
	case request := <-w.arrived:
		close(request)
		response := <-w.passed
		return response.Request.Method == http.MethodPut && response.StatusCode == http.StatusOK
	case w.err = <-w.done:
		w.over = true
		return false
	}
}

// Inv4: two holders look and write, in all orders, over all that may be there, with bodies that differ or are the same. After the newer one's
// write none of the older one's is accepted, and the newer one's write is the last. What the newer one writes twice, so that the first
// body is there again, shuts the older one out too.
func TestInv4_EveryOrder(t *testing.T) {
	orders := [][]int64{{1, 1, 2, 2}, {1, 2, 1, 2}, {1, 2, 2, 1}, {2, 1, 1, 2}, {2, 1, 2, 1}, {2, 2, 1, 1}, {1, 2, 2, 2, 2, 1}, {2, 1, 2, 2, 2, 1}}
	bucket, n := newBucket(t), 0
	for _, before := range []string{"nothing", "unguarded", "guarded"} {
		for _, bodies := range [][]string{{"old", "new"}, {"same", "same"}, {"first", "first"}} {
			for _, update := range []bool{false, true} {
				for _, order := range orders {
					n++
					name := fmt.Sprint("object", n)
					t.Run(fmt.Sprint(before, "/", bodies, "/update=", update, "/", order), func(t *testing.T) {
						testOrder(t, bucket, name, before, bodies, update, order)
					})
				}
			}
		}
	}
}

func testOrder(t *testing.T, bucket, name, before string, bodies []string, update bool, order []int64) {
	plain := newGuard(t, nil)
	switch before {
	case "unguarded":
		putAt(t, bucket, name, "first")
	case "guarded":
		noError(t, plain.Put(t.Context(), bucket, name, 1, []byte("first")))
	}
	begin := func(token int64, writes ...string) *writer {
		w := &writer{token: token, gate: newGate(), done: make(chan error, 1)}
		g := newGuard(t, w.wire)
		go func() {
			for _, body := range writes {
				write := func() error { return g.Put(t.Context(), bucket, name, token, []byte(body)) }
				if update {
					write = func() error {
						return g.Update(t.Context(), bucket, name, token, func([]byte) ([]byte, error) { return []byte(body), nil })
					}
				}
				if err := write(); err != nil {
					w.done <- err
					return
				}
			}
			w.done <- nil
		}()
		return w
	}
	newer := bodies[1:]
	if len(order) > 4 {
		newer = []string{"between", bodies[1]}
	}
	writers := map[int64]*writer{1: begin(1, bodies[0]), 2: begin(2, newer...)}
	var accepted []int64
	for _, token := range order {
		if writers[token].step() {
			accepted = append(accepted, token)
		}
	}
	for _, token := range []int64{1, 2} { // whoever has to look again
		for !writers[token].over {
			if writers[token].step() {
				accepted = append(accepted, token)
			}
		}
	}
	if !slices.IsSorted(accepted) {
		t.Errorf("accepted in this order: %v", accepted)
	}
	if writers[2].err != nil {
		t.Errorf("the newer one: %v", writers[2].err)
	}
	if first := slices.Contains(accepted, 1); first != (writers[1].err == nil) || !first && !errors.Is(writers[1].err, guard.ErrStale) {
		t.Errorf("the older one: accepted: %v, error %v", first, writers[1].err)
	}
	if body, seen, err := plain.Get(t.Context(), bucket, name); string(body) != bodies[1] || seen != 2 || err != nil {
		t.Errorf("in the end there is %q of %d, %v", body, seen, err)
	}
}

// Inv4: a write whose answer was lost, and which arrives after a newer one, is refused by the store.
func TestInv4_LateCopy(t *testing.T) {
	for _, again := range []bool{false, true} {
		bucket := newBucket(t)
		late := make(chan func() (*http.Response, error), 9)
		g := newGuard(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPut {
				body, err := io.ReadAll(r.Body)
				copied := r.Clone(t.Context())
				copied.Body = io.NopCloser(bytes.NewReader(body))
				late <- func() (*http.Response, error) { return transport.RoundTrip(copied) }
				return nil, errors.Join(errCut, err)
			}
			return send()
		})
		put(t, bucket, "first", nil)
		if err := g.Put(t.Context(), bucket, key, 1, []byte("late")); !errors.Is(err, s3guard.ErrUnknown) || !errors.Is(err, errCut) {
			t.Errorf("error %v", err)
		}
		token := int64(2)
		if again { // the same holder goes on, and its own copy is no less late
			token = 1
		}
		for _, body := range []string{"other", "first"} {
			noError(t, newGuard(t, nil).Put(t.Context(), bucket, key, token, []byte(body)))
		}
		response, err := (<-late)()
		noError(t, err)
		if response.StatusCode != http.StatusPreconditionFailed {
			t.Errorf("the late copy: %s", response.Status)
		}
		has(t, bucket, "first", token)
	}
}
