//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// release calls the first one that waits, for a lock and for a permit.
func TestReleaseCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	for line, flags := range map[string][]string{"fencelock_line:{x}": {"x"}, "fencelock_line_of:{x}:*": {"--permits", "1", "x"}} {
		holds := start(t, server.Addr(), append([]string{"acquire", "--lease", "1h"}, flags...)...)
		text := holds.line()
		equal(t, "acquire", holds.ends(), 0)
		waits := start(t, server.Addr(), append(append([]string{"run"}, flags...), sh("echo up")...)...)
		redistest.Eventually(t, soon, func() bool { return rdb.ZCard(ctx, line).Val() == 1 }, "run waits")
		calls := rdb.PSubscribe(ctx, strings.ReplaceAll(line, "*", `\*`)+":*-*")
		if _, err := calls.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		equal(t, "release", start(t, server.Addr(), "release", text).ends(), 0)
		called := redistest.Await(t, soon, calls.Channel(), "a call").Payload
		equal(t, called, strings.HasPrefix(called, "c "), true)
		equal(t, "who waits", waits.line(), "up")
		equal(t, "run", waits.ends(), 0)
		_ = calls.Close()
	}
}

// Of two that release a hold at the same time one is told that it was gone.
func TestReleaseByTwo(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	holds := start(t, server.Addr(), "acquire", "x", "--lease", "1h")
	text := holds.line()
	one, two := start(t, server.Addr(), "release", text), start(t, server.Addr(), "release", text)
	codes := []int{one.ends(), two.ends()}
	slices.Sort(codes)
	if !slices.Equal(codes, []int{0, exitLost}) {
		t.Errorf("exit codes %v", codes)
	}
}

// The text may be a program's, also of a side that writes. Its hold lasts on by extend, and ends by release: the program hears of it, and so does who waits.
func TestReleaseOfAProgram(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	client := func() *rlock.Client {
		c, err := rlock.New(server.Client(), rlock.WithLease(time.Hour)) // no renewal tells it
		equal(t, "error", err, nil)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for name, lock := range map[string]func(c *rlock.Client) *fenced.Lock{
		"x":    func(c *rlock.Client) *fenced.Lock { return fenced.NewLock(c, "x") },
		"page": func(c *rlock.Client) *fenced.Lock { return fenced.NewRWLock(c, "page").Write() },
	} {
		h, err := lock(client()).Acquire(ctx)
		equal(t, "error", err, nil)
		text, err := h.Export()
		equal(t, "error", err, nil)
		equal(t, "extend", start(t, server.Addr(), "extend", text, "--lease", "2h").ends(), 0)
		if left := server.Client().PTTL(ctx, name).Val(); left < 110*time.Minute {
			t.Errorf("%s: the lease ends in %v", name, left)
		}
		waits, next := make(chan error, 1), lock(client())
		go func() {
			_, err := next.Acquire(ctx)
			waits <- err
		}()
		redistest.Eventually(t, soon, func() bool { return server.Client().ZCard(ctx, "fencelock_line:{"+name+"}").Val() == 1 }, "another waits")
		equal(t, "release", start(t, server.Addr(), "release", text).ends(), 0)
		redistest.Await(t, soon, h.Done(), "the hold's end")
		if err := h.Err(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		equal(t, "who waits", redistest.Await(t, soon, waits, "who waits"), nil)
	}
}

// The lease is not renewed while the text waits for a reader.
func TestAcquireIsNotRenewed(t *testing.T) {
	realtime.Test(t, "a lease of a second")
	t.Parallel()
	server := redistest.Real(t)
	r, w, err := os.Pipe()
	equal(t, "error", err, nil)
	full := int(w.Fd())
	_ = unix.SetNonblock(full, true)
	for err == nil {
		_, err = unix.Write(full, make([]byte, 1))
	}
	equal(t, "error", err, error(unix.EAGAIN))
	_ = unix.SetNonblock(full, false)
	cmd := exec.Command("fencelock", "acquire", "--lease", "1s", "--url", "redis://"+server.Addr(), "x")
	cmd.Stdout = w
	equal(t, "error", cmd.Start(), nil)
	_ = w.Close()
	rdb := server.Client()
	redistest.Eventually(t, soon, func() bool { return rdb.Get(ctx, "redisson_lock_token:{x}").Val() == "1" }, "the lock was taken")
	redistest.Eventually(t, soon, func() bool { return rdb.Exists(ctx, "x").Val() == 0 }, "the lease is over")
	_ = r.Close()
	_ = cmd.Wait()
	equal(t, "exit code", cmd.ProcessState.ExitCode(), exitTrouble)
}

// Nothing is left taken by an acquire whose text nobody gets, or that a signal has ended.
func TestAcquireLeavesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	r, w, err := os.Pipe()
	equal(t, "error", err, nil)
	_ = r.Close()
	cmd := exec.Command("fencelock", "acquire", "--lease", "1h", "--url", "redis://"+server.Addr(), "x")
	cmd.Stdout = w
	_ = cmd.Run()
	_ = w.Close()
	equal(t, "exit code", cmd.ProcessState.ExitCode(), exitTrouble)
	equal(t, "keys", server.Client().Exists(ctx, "x").Val(), 0)
	holds := start(t, server.Addr(), "acquire", "x", "--lease", "1h")
	text := holds.line()
	waits := start(t, server.Addr(), "acquire", "x", "--lease", "1h")
	redistest.Eventually(t, soon, func() bool { return server.Client().ZCard(ctx, "fencelock_line:{x}").Val() == 1 }, "acquire waits")
	waits.signal(syscall.SIGTERM)
	equal(t, "exit code", waits.ends(), exitSignal+int(syscall.SIGTERM))
	equal(t, "release", start(t, server.Addr(), "release", text).ends(), 0)
	equal(t, "keys", server.Client().Exists(ctx, "x").Val(), 0)
}
