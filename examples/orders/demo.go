package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/httpguard"
)

const (
	demoLease = 300 * time.Millisecond
	demoPause = 2 * demoLease
)

// demo plays both terminals on an order of its own, and returns an error if something does not happen as told. guarded
// says what is to happen.
func demo(ctx context.Context, s *service, guarded bool, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// The pause begins before terminal 2 sends, and ends when it has its answer, so that what happens does not depend on
	// luck.
	paused, goOn := make(chan struct{}), make(chan struct{})
	s.lease = demoLease
	s.pause = func(d time.Duration) {
		close(paused)
		time.Sleep(d)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	serving, stop := context.WithCancel(ctx)
	var server sync.WaitGroup
	server.Go(func() { _ = serve(serving, listener, s) })
	defer server.Wait()
	defer stop()

	t := terminals{url: "http://" + listener.Addr().String(), order: "/orders/demo-" + rand.Text()[:10], out: out}
	fmt.Fprintf(out, "The lease of a lock is %v, the pause of terminal 1 longer; tokens are checked: %v.\n", demoLease, guarded)
	var late error
	var first sync.WaitGroup
	first.Go(func() {
		_, late = t.send(ctx, "terminal 1", "POST", fmt.Sprintf("/items?item=tea&pause=%v", demoPause))
	})
	select {
	case <-paused:
	case <-ctx.Done():
		return fmt.Errorf("terminal 1 did not get to its pause: %w", ctx.Err())
	}
	_, err = t.send(ctx, "terminal 2", "POST", "/items?item=jam")
	close(goOn)
	first.Wait()
	if err != nil {
		return fmt.Errorf("terminal 2, who had the lock, was not answered with 200: %w", err)
	}
	if refused := errors.Is(late, guard.ErrStale); refused != guarded || !refused && late != nil {
		return fmt.Errorf("terminal 1, who was late: %v", late)
	}
	want := []string{"tea"}
	if guarded {
		if _, err := t.send(ctx, "terminal 1", "POST", "/items?item=tea"); err != nil {
			return fmt.Errorf("terminal 1, again: %w", err)
		}
		want = []string{"jam", "tea"}
	}
	o, err := t.send(ctx, "either", "GET", "")
	if err != nil {
		return err
	}
	if !slices.Equal(o.Items, want) {
		return fmt.Errorf("the order has %q, not %q", o.Items, want)
	}
	if guarded {
		fmt.Fprintln(out, "\nok: the late write was refused, sent again, and nothing is lost")
	} else {
		fmt.Fprintln(out, "\nok: without the guard terminal 2's jam is lost, as it was to be shown")
	}
	return nil
}

// terminals send requests, and print them as curl would have been called.
type terminals struct {
	url, order string

	mu  sync.Mutex
	out io.Writer
}

func (t *terminals) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// send returns the order of an answer of 200. The error of a refused write is guard.ErrStale.
func (t *terminals) send(ctx context.Context, who, method, path string) (order, error) {
	url := t.url + t.order + path
	t.printf("\n%-10s > curl -X %s '%s'\n", who, method, url)
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return order{}, err
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return order{}, err
	}
	defer resp.Body.Close()
	refused := httpguard.ResponseError(resp)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return order{}, err
	}
	t.printf("%-10s < after %v: %s\n%-10s   %s", who, time.Since(began).Round(time.Millisecond), resp.Status, who, text)
	var o order
	switch {
	case refused != nil:
		return o, refused
	case resp.StatusCode != http.StatusOK:
		return o, errors.New(resp.Status)
	}
	return o, json.Unmarshal(text, &o)
}
