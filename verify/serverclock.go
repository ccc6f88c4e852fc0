package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

//go:embed clock/shift.c
var shiftLibrary []byte

// serverClock is the wall clock of the servers that are started with it.
type serverClock struct{ library, file string }

// newServerClock builds the library, which takes a C compiler.
func (s *stage) newServerClock() *serverClock {
	c := &serverClock{filepath.Join(s.dir, "shift.so"), filepath.Join(s.dir, "shift")}
	source := filepath.Join(s.dir, "shift.c")
	s.must(os.WriteFile(source, shiftLibrary, 0o600))
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", c.library, source).CombinedOutput(); err != nil {
		s.Fatalf("a server whose clock can be set needs a C compiler, as cc on the PATH: %v\n%s", err, out)
	}
	s.must(c.set(0))
	return c
}

// environment is this process's, which those that it starts have too. Other rounds may be played at the same time.
var environment sync.RWMutex

// starting calls f, which starts servers.
func starting(f func()) {
	environment.RLock()
	defer environment.RUnlock()
	f()
}

// start calls f, whose child processes have the clock.
func (c *serverClock) start(f func()) {
	for !environment.TryLock() { // Lock would keep others' servers from starting until those that start now are up
		time.Sleep(10 * time.Millisecond)
	}
	defer environment.Unlock()
	for name, value := range map[string]string{"LD_PRELOAD": c.library, "FENCELOCK_CLOCK": c.file} {
		before := os.Getenv(name)
		_ = os.Setenv(name, value)
		defer func() { _ = os.Setenv(name, before) }()
	}
	f()
}

func (c *serverClock) set(by time.Duration) error {
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(by)))
	return err
}

// jump sets the clock of the locks' server, and requires that the server sees it.
func jump(s *stage) {
	by := time.Duration(s.rng.IntN(6000)-3000) * time.Millisecond
	s.must(s.clock.set(by))
	rdb := s.direct(s.locks)
	defer func() { _ = rdb.Close() }()
	at, err := rdb.Time(context.Background()).Result()
	s.must(err)
	if off := time.Until(at) - by; off.Abs() > time.Second {
		s.Fatalf("the server's clock was to be %v ahead, and is %v", by, time.Until(at))
	}
}
