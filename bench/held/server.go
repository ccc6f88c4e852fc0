package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server process on loopback that keeps nothing.
type server struct {
	addr   string
	cmd    *exec.Cmd
	output *bytes.Buffer // read it only after exited
	exited chan struct{}
}

// startServer starts the program that the environment variable REDIS_SERVER names, else redis-server, on a free port.
func startServer() (*server, error) {
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("install redis-server (7 or later) on the PATH, or set REDIS_SERVER to the path of one: %w", err)
	}
	for range 3 { // another program can take a free port first
		var s *server
		if s, err = startOnce(program); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func startOnce(program string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	s := &server{addr: net.JoinHostPort(host, port), output: new(bytes.Buffer), exited: make(chan struct{})}
	s.cmd = exec.Command(program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--dir", os.TempDir())
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = s.output, s.output, childAttr()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // see childAttr
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
		close(s.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := s.awaitUp(); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w; its output:\n%s", program, err, s.output)
	}
	return s, nil
}

// awaitUp waits until the process answers, this one and no other that got the port.
func (s *server) awaitUp() error {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	var err error
	for range 500 {
		var info string
		if info, err = rdb.Info(context.Background(), "server").Result(); err == nil {
			if !strings.Contains(info, fmt.Sprintf("\r\nprocess_id:%d\r\n", s.cmd.Process.Pid)) {
				return fmt.Errorf("another server answers at %s", s.addr)
			}
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %v", s.cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}

// stop ends the process and waits for its end.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}
