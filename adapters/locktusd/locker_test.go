package locktusd_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/fencelock/fencelock/adapters/locktusd"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// A request is one that has a lock of the upload "a".
type request struct {
	handler.Lock
	asked int // how often it was asked to release the lock; a bubble's Wait orders this
}

func newRequest(t *testing.T, client *rlock.Client) *request {
	t.Helper()
	locker, err := locktusd.New(client)
	locktest.NoError(t, err)
	lock, err := locker.NewLock("a")
	locktest.NoError(t, err)
	return &request{Lock: lock}
}

// take locks as tusd does: with a context that it ends when Lock has returned.
func (r *request) take(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return r.Lock.Lock(ctx, func() { r.asked++ })
}

// The lock is held for as long as nobody else wants it. Then its holder is asked once to release it, and the other one has it.
func TestRequestToRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		one, two, three := newRequest(t, s.Client()), newRequest(t, s.Client()), newRequest(t, s.Client())
		locktest.NoError(t, one.take(time.Second))
		time.Sleep(10 * time.Minute)
		locktest.Equal(t, "requests without a waiter", one.asked, 0)

		took := locktest.Start(func() error { return two.take(20 * time.Second) })
		s.WaitForWaiters("tusd:upload:a", 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		locktest.Equal(t, "requests with a waiter", one.asked, 1)
		locktest.IsError(t, three.take(time.Second), handler.ErrLockTimeout)
		locktest.IsError(t, three.Unlock(), rlock.ErrNotHeld)
		synctest.Wait() // three has left the line
		locktest.NoError(t, one.Unlock())
		locktest.NoError(t, <-took)
		locktest.NoError(t, two.Unlock())
		synctest.Wait()
		locktest.Equal(t, "requests in all", one.asked, 1)
		locktest.Equal(t, "requests to the last one", two.asked, 0)
		locktest.IsError(t, two.Unlock(), rlock.ErrNotHeld)
	})
}

// Two requests in one server exclude each other as those in two do.
func TestOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := rlocktest.New(t).Client()
		one, two := newRequest(t, client), newRequest(t, client)
		locktest.NoError(t, one.take(time.Second))
		locktest.IsError(t, two.take(time.Second), handler.ErrLockTimeout)
		synctest.Wait()
		locktest.Equal(t, "requests", one.asked, 1)
		locktest.NoError(t, one.Unlock())
	})
}

// A holder that has lost the lock is asked too, once. Its Unlock says so, and leaves the next holder's lock alone.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		one := newRequest(t, s.Client())
		locktest.NoError(t, one.take(time.Second))
		thief := s.Steal("tusd:upload:a")
		synctest.Wait()
		locktest.Equal(t, "requests", one.asked, 1)
		locktest.IsError(t, one.Unlock(), rlock.ErrLost)
		locktest.Equal(t, "hold count", s.HoldCount("tusd:upload:a"), 1)
		thief.Unlock()
	})
}

// A lock that Redis does not give is no timeout.
func TestWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		client := s.Client()
		s.Stop(client)
		err := newRequest(t, client).take(time.Minute)
		locktest.IsNotError(t, err, handler.ErrLockTimeout)
		locktest.ErrorSays(t, err, "tusd:upload:a")
		s.Continue(client)
	})
}

func TestBadInput(t *testing.T) {
	_, err := locktusd.New(nil)
	locktest.ErrorSays(t, err, "rlock.New")
	locker, err := locktusd.New(rlocktest.New(t).Client(), locktusd.WithPrefix("images:"))
	locktest.NoError(t, err)
	_, err = locker.NewLock("")
	locktest.ErrorSays(t, err, "id", "empty")
}

// Two tusd processes: while one waits for data of a client that is gone, the client comes to the other one, and goes on there.
func TestTwoProcesses(t *testing.T) {
	server, folder := redistest.Real(t), t.TempDir()
	client, err := rlock.New(server.Client())
	locktest.NoError(t, err)
	defer client.Close()
	mine, err := serve(client, folder)
	locktest.NoError(t, err)
	defer mine.Close()
	theirs := locktest.StartSecond(t, server.Addr(), folder).Call("address")

	do := func(method, url string, body io.Reader, headers ...string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, body)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Tus-Resumable", "1.0.0")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		return response, err
	}
	patch := []string{"Content-Type", "application/offset+octet-stream", "Upload-Offset"}
	created, err := do("POST", mine.URL+"/files/", nil, "Upload-Length", "12")
	locktest.NoError(t, err)
	path := strings.TrimPrefix(created.Header.Get("Location"), mine.URL)

	body, sender := io.Pipe()
	interrupted := make(chan string, 1)
	go func() {
		response, err := do("PATCH", theirs+path, body, append(patch, "0")...)
		if err != nil {
			interrupted <- err.Error()
			return
		}
		interrupted <- response.Status
	}()
	_, err = sender.Write([]byte("hello "))
	locktest.NoError(t, err)
	redistest.Eventually(t, bound, func() bool {
		text, _ := os.ReadFile(filepath.Join(folder, filepath.Base(path)))
		return string(text) == "hello "
	}, "the first part is stored")

	head, err := do("HEAD", mine.URL+path, nil)
	locktest.NoError(t, err)
	locktest.Equal(t, "status", head.StatusCode, http.StatusOK)
	locktest.Equal(t, "offset", head.Header.Get("Upload-Offset"), "6")
	locktest.Equal(t, "what the first request ends with", redistest.Await(t, bound, interrupted, "the first request ends"), "400 Bad Request")
	_ = sender.Close()
	rest, err := do("PATCH", mine.URL+path, strings.NewReader("world!"), append(patch, "6")...)
	locktest.NoError(t, err)
	locktest.Equal(t, "status", rest.StatusCode, http.StatusNoContent)
	text, err := os.ReadFile(filepath.Join(folder, filepath.Base(path)))
	locktest.NoError(t, err)
	locktest.Equal(t, "what is stored", string(text), "hello world!")
}
