package recipes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// clients returns as many clients of one Redis as there are processes.
func clients(t *testing.T, n int) []*rlock.Client {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	var all []*rlock.Client
	for range n {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		client, err := rlock.New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close(); _ = rdb.Close() })
		all = append(all, client)
	}
	return all
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A job's lock is taken from when it is queued to when it is done, by another process.
func TestTravels(t *testing.T) {
	two := clients(t, 2)
	lock, there := fenced.NewLock(two[0], "job"), fenced.NewLock(two[1], "job")
	queue := make(chan string, 1)
	send := func(_ context.Context, hold string) error { queue <- hold; return nil }
	noError(t, Enqueue(t.Context(), lock, send))
	if err := Enqueue(t.Context(), lock, send); !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("the job is queued twice: %v", err)
	}
	hold := <-queue
	noError(t, Work(t.Context(), there, hold, func(_ context.Context, token int64) error {
		if token != 2 {
			t.Errorf("token %d", token)
		}
		return nil
	}))
	if err := Work(t.Context(), there, hold, nil); !errors.Is(err, rlock.ErrNotHeld) {
		t.Errorf("the job is done twice: %v", err)
	}
	full := errors.New("the queue is full")
	if err := Enqueue(t.Context(), lock, func(context.Context, string) error { return full }); !errors.Is(err, full) {
		t.Errorf("a queue that is full: %v", err)
	}
	noError(t, Enqueue(t.Context(), lock, send))
}

// A leader that loses its lock leads again, with a larger token; another process takes over when it ends.
func TestLead(t *testing.T) {
	two := clients(t, 2)
	tokens := make(chan int64, 3)
	release, lost := make(chan struct{}), make(chan struct{})
	work := func(ctx context.Context, token int64) error {
		tokens <- token
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			lost <- struct{}{}
			return ctx.Err()
		}
	}
	ended := make(chan error, 2)
	for _, c := range two {
		go func() { ended <- Lead(t.Context(), fenced.NewLock(c, "leader"), work) }()
	}
	first := <-tokens
	_, err := fenced.NewLock(two[0], "leader").ForceUnlock(t.Context())
	noError(t, err)
	<-lost // the former leader no longer listens to release
	second := <-tokens
	release <- struct{}{}
	third := <-tokens
	if first >= second || second >= third {
		t.Errorf("tokens %d, %d, %d", first, second, third)
	}
	release <- struct{}{}
	noError(t, errors.Join(<-ended, <-ended))
}

// One machine runs the job; one whose clock is behind by less than the skew does not run it again.
func TestOnce(t *testing.T) {
	two := clients(t, 2)
	var runs atomic.Int32
	job := func(context.Context, int64) error { runs.Add(1); return nil }
	started := make(chan struct{})
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- Once(ctx, fenced.NewLock(two[0], "nightly"), time.Hour, func(ctx context.Context, token int64) error {
			defer close(started)
			return job(ctx, token)
		})
	}()
	<-started
	noError(t, Once(t.Context(), fenced.NewLock(two[1], "nightly"), time.Hour, job))
	if runs.Load() != 1 {
		t.Errorf("the job ran %d times", runs.Load())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	noError(t, Once(t.Context(), fenced.NewLock(two[1], "nightly"), time.Millisecond, job))
	if runs.Load() != 2 {
		t.Errorf("the next night: the job ran %d times", runs.Load())
	}
	for _, of := range []error{quorum.ErrSplitVote, rlock.ErrNotAcquired} { // of a lock that the job takes
		failed, before := fmt.Errorf("in the job: %w", of), runs.Load()
		err := Once(t.Context(), fenced.NewLock(two[1], "nightly"), time.Millisecond, func(context.Context, int64) error { runs.Add(1); return failed })
		if !errors.Is(err, failed) || runs.Load() != before+1 {
			t.Errorf("%v: %v, the job ran %d times", failed, err, runs.Load()-before)
		}
	}
}

func TestDeposit(t *testing.T) {
	client := clients(t, 1)[0]
	var result error
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{account}", Deposit(client, func(_ context.Context, account string, token int64) error {
		if account != "42" || token == 0 {
			t.Errorf("account %q, token %d", account, token)
		}
		return result
	}))
	post := func() int {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/accounts/42", nil))
		return answer.Code
	}
	for _, c := range []struct {
		result error
		want   int
	}{{nil, 204}, {guard.ErrStale, 503}, {errors.New("the database is away"), 500}} {
		result = c.result
		if got := post(); got != c.want {
			t.Errorf("%v: %d, want %d", c.result, got, c.want)
		}
	}
	lock := fenced.NewLock(client, "lock:account:42")
	held, _, err := lock.LockAndGetToken(t.Context())
	noError(t, err)
	if got := post(); got != http.StatusServiceUnavailable {
		t.Errorf("the account is busy: %d", got)
	}
	noError(t, lock.Unlock(held))
}

// A leader is found also when Redis was away for longer than a call waits for it.
func TestLeadAfterAnOutage(t *testing.T) {
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	failed := make(chan struct{}, 1)
	client, err := rlock.New(rdb, rlock.WithPatience(10*time.Millisecond), rlock.WithTrace(&locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) {
		if e.Err != nil && len(failed) == 0 {
			failed <- struct{}{}
		}
	}}))
	noError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	server.SetError("LOADING Redis is loading the dataset in memory")
	ended := make(chan error)
	go func() {
		ended <- Lead(t.Context(), fenced.NewLock(client, "leader"), func(context.Context, int64) error { return nil })
	}()
	<-failed
	server.SetError("")
	noError(t, <-ended)
}

// A job that no machine got at first, as several asked a quorum at once, is run all the same.
func TestOnceOfAQuorum(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var servers []*miniredis.Miniredis
		var nodes []redis.UniversalClient
		for i := range 3 {
			server, rdb := redistest.Pipe(t)
			noError(t, rdb.Ping(t.Context()).Err()) // it is up with its first connection
			redistest.TellClock(server, fmt.Sprint("run", i), time.Now().Add(-time.Hour), 0)
			servers, nodes = append(servers, server), append(nodes, rdb)
		}
		split := make(chan struct{}, 1)
		client, err := quorum.New(nodes, rlock.WithTrace(&locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) {
			if errors.Is(e.Err, quorum.ErrSplitVote) && len(split) == 0 {
				split <- struct{}{}
			}
		}}))
		noError(t, err)
		defer time.Sleep(10 * time.Second) // what sleeps in a link goes on first: time ends with this goroutine
		defer func() { _ = client.Close() }()
		for i := range 2 { // two other machines have a node each
			servers[i].HSet("nightly", fmt.Sprintf("6b1f0d1e-0000-4000-8000-00000000000%d:1", i), "1")
			servers[i].SetTTL("nightly", time.Hour)
		}
		ran, ended := false, make(chan error)
		go func() {
			ended <- Once(t.Context(), fenced.NewLock(client, "nightly"), time.Second, func(context.Context, int64) error { ran = true; return nil })
		}()
		<-split
		servers[0].Del("nightly")
		servers[1].Del("nightly")
		if err := <-ended; err != nil || !ran {
			t.Errorf("%v, the job ran: %v", err, ran)
		}
	})
}

// A client that is closed before the write has done nothing; one that is closed while the write is under way says nothing of it.
func TestDepositWhileTheClientIsClosed(t *testing.T) {
	client := clients(t, 1)[0]
	handler := Deposit(client, func(ctx context.Context, _ string, _ int64) error {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	for _, want := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/accounts/42", nil))
		if answer.Code != want {
			t.Errorf("%d, want %d: %s", answer.Code, want, answer.Body)
		}
	}
}

// When the channel of jobs is closed those in hand are done, and no other one is made up.
func TestServeToTheEndOfTheJobs(t *testing.T) {
	jobs := make(chan string, 2)
	jobs <- "a"
	jobs <- "b"
	close(jobs)
	var mu sync.Mutex
	var done []string
	noError(t, Serve(t.Context(), clients(t, 1)[0], jobs, func(_ context.Context, job string, _ int64) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, job)
		return nil
	}, func(job string) { t.Errorf("%s goes back", job) }))
	slices.Sort(done)
	if !slices.Equal(done, []string{"a", "b"}) {
		t.Errorf("the jobs %q", done)
	}
}

// A job whose lock is taken goes back. At the end of ctx the job in hand is finished, with its lock, and no other one is begun.
func TestServe(t *testing.T) {
	clients := clients(t, 2)
	client, back := clients[0], make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	jobs := make(chan string)
	began, finish := make(chan context.Context), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, client, jobs, func(ctx context.Context, job string, token int64) error {
			began <- ctx
			<-finish
			return ctx.Err()
		}, func(job string) { back <- job })
	}()
	lock := fenced.NewLock(clients[1], "lock:job:b")
	taken, _, err := lock.LockAndGetToken(t.Context())
	noError(t, err)
	jobs <- "b" // another process does it, or has died
	if job := <-back; job != "b" {
		t.Errorf("%s goes back", job)
	}
	noError(t, lock.Unlock(taken))
	jobs <- "a"
	held := <-began
	stop()
	if err := held.Err(); err != nil {
		t.Errorf("the job in hand: %v", err)
	}
	close(finish)
	noError(t, <-ended)
	if _, _, err := fenced.NewLock(client, "lock:job:b").LockAndGetToken(t.Context()); !errors.Is(err, rlock.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestTogether(t *testing.T) {
	client := clients(t, 1)[0]
	lock := fenced.NewLock(client, "import")
	mine := errors.New("mine")
	var both sync.WaitGroup
	both.Add(2)
	step := func(ctx context.Context) error {
		both.Done()
		both.Wait() // the other one runs, too
		if _, ok := fenced.TokenFrom(ctx, "import"); !ok {
			t.Error("no token")
		}
		return nil
	}
	noError(t, Together(t.Context(), lock, step, step))
	err := Together(t.Context(), lock, func(context.Context) error { return mine }, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, mine) {
		t.Error(err)
	}
}

func TestStep(t *testing.T) {
	client := clients(t, 1)[0]
	lock := fenced.NewLock(client, "report")
	held, _, err := lock.LockAndGetToken(t.Context())
	noError(t, err)
	ran := 0
	step := func(ctx context.Context) error { ran++; return ctx.Err() }
	noError(t, Step(held, lock, 10*time.Second, step))
	if err := Step(held, lock, time.Minute, step); err == nil || !strings.Contains(err.Error(), "good for") {
		t.Errorf("a step longer than the lease: %v", err)
	}
	noError(t, lock.Unlock(held))
	if err := Step(held, lock, time.Second, step); !errors.Is(err, rlock.ErrUnlocked) || ran != 1 {
		t.Errorf("after Unlock: %v, %d steps", err, ran)
	}
}

// Callers that name the locks in opposite orders do not stop each other.
func TestTransfer(t *testing.T) {
	two := clients(t, 2)
	ended := make(chan error)
	moved := 0
	for i, c := range two {
		from, to := fenced.NewLock(c, "lock:account:1"), fenced.NewLock(c, "lock:account:2")
		if i == 1 {
			from, to = to, from
		}
		go func() {
			for range 50 {
				err := Transfer(t.Context(), from, to, func(ctx context.Context, first, second int64) error {
					for lock, token := range map[*fenced.Lock]int64{from: first, to: second} {
						if now, err := lock.Token(ctx); err != nil || now != token {
							t.Errorf("the token of %s is %d, %v, and move was given %d", lock.Name(), now, err, token)
						}
					}
					moved++
					return nil
				})
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	noError(t, errors.Join(<-ended, <-ended))
	if moved != 100 {
		t.Errorf("moved %d times", moved)
	}
}

// Behind an interface the hold outlives each call, has its token, and says when it was lost.
func TestBehind(t *testing.T) {
	both := clients(t, 2)
	locks := []*Behind{
		{lock: fenced.NewLock(both[0], "migration"), wait: time.Minute},
		{lock: fenced.NewLock(both[1], "migration")}, // which asks once
	}
	if err := locks[1].Unlock(); !errors.Is(err, rlock.ErrNotHeld) {
		t.Errorf("Unlock before Lock: %v", err)
	}
	if err := locks[0].Lock(); err != nil {
		t.Fatal(err)
	}
	if err := locks[1].Lock(); !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("the lock is taken: %v", err)
	}
	if token := locks[0].Held().Token(); token != 1 {
		t.Errorf("token %d", token)
	}
	if err := locks[0].Unlock(); err != nil {
		t.Error(err)
	}
	locks[1].wait = time.Minute
	if err := locks[1].Lock(); err != nil {
		t.Fatal(err)
	}
	if _, err := locks[0].lock.ForceUnlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-locks[1].Held().Done():
	case <-time.After(time.Minute):
		t.Error("the loss was not told")
	}
	if err := locks[1].Unlock(); !errors.Is(err, rlock.ErrLost) {
		t.Errorf("Unlock after the loss: %v", err)
	}
}

// Each has a slot of its own, while it works.
func TestImport(t *testing.T) {
	var mu sync.Mutex
	inside := map[int]bool{}
	var all sync.WaitGroup
	for _, client := range clients(t, 8) {
		all.Go(func() {
			err := Import(t.Context(), client, func(ctx context.Context, slot int, token int64) error {
				mu.Lock()
				if inside[slot] || slot > 4 || token < 1 {
					t.Errorf("slot %d, token %d, and %v are inside", slot, token, inside)
				}
				inside[slot] = true
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				delete(inside, slot)
				return ctx.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
