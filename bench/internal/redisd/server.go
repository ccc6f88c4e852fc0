// Package redisd starts a server to measure.
package redisd

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

// A Server is a redis-server process on loopback that keeps nothing.
type Server struct {
	Addr   string
	cmd    *exec.Cmd
	output *bytes.Buffer // read it only after exited
	exited chan struct{}
}

// Start starts the program that the environment variable REDIS_SERVER names, else redis-server, on a free port.
func Start() (*Server, error) {
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("install redis-server (7 or later) on the PATH, or set REDIS_SERVER to the path of one: %w", err)
	}
	for range 3 { // another program can take a free port first
		var s *Server
		if s, err = startOnce(program); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func startOnce(program string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	s := &Server{Addr: net.JoinHostPort(host, port), output: new(bytes.Buffer), exited: make(chan struct{})}
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
		s.Stop()
		return nil, fmt.Errorf("%s: %w; its output:\n%s", program, err, s.output)
	}
	return s, nil
}

// awaitUp waits until the process answers, this one and no other that got the port.
func (s *Server) awaitUp() error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	var err error
	for range 500 {
		var info string
		if info, err = rdb.Info(context.Background(), "server").Result(); err == nil {
			if !strings.Contains(info, fmt.Sprintf("\r\nprocess_id:%d\r\n", s.cmd.Process.Pid)) {
				return fmt.Errorf("another server answers at %s", s.Addr)
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

// Stop ends the process and waits for its end.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}
