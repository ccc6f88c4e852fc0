package redistest_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestRealArgs(t *testing.T) {
	s := redistest.Real(t, "--maxmemory", "64mb")
	got, err := s.Client().ConfigGet(ctx, "maxmemory").Result()
	locktest.NoError(t, err)
	if got["maxmemory"] != "67108864" {
		t.Errorf("got %v", got)
	}
}

func TestRealWithPassword(t *testing.T) {
	s := redistest.Real(t, "--requirepass", "secret")
	if err := s.Client().Ping(ctx).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("got %v", err)
	}
}

func TestRealFreezeAndThaw(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	s := redistest.Real(t)
	c, patient := s.Client(hasty), s.Client(once)
	locktest.NoError(t, c.Ping(ctx).Err())
	locktest.NoError(t, patient.Ping(ctx).Err())
	s.Freeze()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a frozen server answered")
	}
	call := async(patient)
	s.Thaw()
	locktest.NoError(t, get(t, call).err)
}

func TestRealKillAndRestart(t *testing.T) {
	s := redistest.Real(t)
	c := s.Client(once)
	locktest.NoError(t, c.Set(ctx, "n", 1, 0).Err())
	addr, pid := s.Addr(), s.Pid()
	running := s.Running()
	s.Kill()
	if !running || s.Running() {
		t.Errorf("it runs before Kill: %v, after: %v", running, s.Running())
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the process is there after Kill: %v", err)
	}
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a killed server answered")
	}
	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("restarted at %s as %d, was at %s as %d", s.Addr(), s.Pid(), addr, pid)
	}
	want(t, s.Client(), "")
}

func TestRealEndsAFrozenServer(t *testing.T) {
	pid := 0
	t.Run("frozen", func(t *testing.T) {
		s := redistest.Real(t)
		s.Freeze()
		pid = s.Pid()
	})
	if pid == 0 {
		return // none was started: it failed, or -short
	}
	redistest.Eventually(t, bound, func() bool {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	}, "process %d is gone", pid)
}

func TestRealSaysWhatFailed(t *testing.T) {
	errs := new(double).run(t, func(t testing.TB) { redistest.Real(t, "--no-such-option", "1") })
	if len(errs) != 1 || !strings.Contains(errs[0], "no-such-option") {
		t.Errorf("got %q", errs)
	}
	t.Setenv("REDIS_SERVER", "/no/such/program")
	errs = new(double).run(t, func(t testing.TB) { redistest.Real(t) })
	if len(errs) != 1 || !strings.Contains(errs[0], "set REDIS_SERVER") {
		t.Errorf("got %q", errs)
	}
}

func TestRealExpires(t *testing.T) {
	c := redistest.Real(t).Client()
	locktest.NoError(t, c.Set(ctx, "n", 1, 20*time.Millisecond).Err())
	redistest.Eventually(t, bound, func() bool { return c.Exists(ctx, "n").Val() == 0 }, "the key expires")
}
