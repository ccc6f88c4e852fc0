package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/rlocktest"
)

// The lock is stolen between the read and the write of a request: the item that the thief has added stays, and the request is told.
func TestStolenBeforeTheWrite(t *testing.T) {
	rlocktest.AtEachStep(t, lockName("7"), func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
		store, err := openStore(t.Context(), "", true)
		noError(t, err)
		t.Cleanup(store.close)
		steps.OnSteal(func(thief *rlocktest.Other) {
			_, err := store.read(t.Context(), "7", thief.Token())
			noError(t, err)
			noError(t, store.write(t.Context(), order{ID: "7", Items: []string{"jam"}, Token: thief.Token()}, thief.Token()))
		})
		shop := &service{client: s.Client(), store: store, lease: 10 * time.Second, pause: func(time.Duration) { steps.Step("the write") }}

		answer := httptest.NewRecorder()
		shop.routes().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "POST", "/orders/7/items?item=tea&pause=1ms", nil))

		code, items := 200, `"items":["tea"]`
		if steps.Stolen() {
			code, items = 409, `"items":["jam"]`
		}
		if answer.Code != code {
			t.Errorf("the request was answered with %d, want %d", answer.Code, code)
		}
		answer = httptest.NewRecorder()
		shop.routes().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/orders/7", nil))
		if !strings.Contains(answer.Body.String(), items) {
			t.Errorf("the order is %s, want %s", answer.Body, items)
		}
	})
}
