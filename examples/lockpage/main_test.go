package main

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// The page needs the password, and shows what the story promises: who has the account, and who waits.
func TestPage(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	page := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "secret", func(url, _ string) { page <- url }) }()
	var url string
	select {
	case url = <-page:
	case err := <-ended:
		t.Fatal(err)
	}
	ask := func(password string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"lock?format=json&name="+account, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("oncall", password)
		return http.DefaultClient.Do(r)
	}
	answer, err := ask("guess")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("with another password: %s", answer.Status)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		answer, err := ask("secret")
		if err != nil {
			t.Fatal(err)
		}
		var shown struct {
			Lock struct {
				Waiting int `json:"waiting_clients"`
				Holder  struct {
					By struct{ Name string }
				}
			}
		}
		err = json.NewDecoder(answer.Body).Decode(&shown)
		_ = answer.Body.Close()
		if err == nil && shown.Lock.Holder.By.Name == "billing" && shown.Lock.Waiting == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %+v, %v", shown, err)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}
