package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// hostFlag, before a name of services, makes this program the remote of another one of it: the host of a server that is not Redis.
// So the server shares neither garbage collection nor CPU time with its clients. The flag is not for users, and not in the help.
const hostFlag = "-host"

// services are the servers that a host can have.
var services = map[string]func(ctx context.Context, dir string) (served, error){
	"etcd":        func(ctx context.Context, dir string) (served, error) { return startEtcd(ctx, dir, true) },
	"etcd-nosync": func(ctx context.Context, dir string) (served, error) { return startEtcd(ctx, dir, false) },
	"postgres":    startPostgres,
}

// A served is a server that runs.
type served struct {
	addr     string
	versions map[string]string
	stop     func()
}

// A hosted is the server of a host process. It answers one command, serve, with the address and versions of the server, which runs
// then. When the commands end, so do the server and its files, and then the process.
type hosted struct {
	name string
	dir  string
	stop func()
}

func (h *hosted) work(ctx context.Context, in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // what the server says when the other process was killed must not end this one before its files are gone
	defer h.close()
	return work(ctx, in, out, h.answer)
}

func (h *hosted) answer(ctx context.Context, command string, _ url.Values) (answer, error) {
	if command != "serve" {
		return answer{}, fmt.Errorf("no command is called %q", command)
	}
	start, ok := services[h.name]
	if !ok {
		return answer{}, fmt.Errorf("no server is called %q", h.name)
	}
	var err error
	if h.dir, err = os.MkdirTemp("", "fencelock-bench-"); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := start(ctx, h.dir)
	h.stop = s.stop
	return answer{Address: s.addr, Versions: s.versions}, err
}

func (h *hosted) close() {
	if h.stop != nil {
		h.stop()
	}
	_ = os.RemoveAll(h.dir)
}

// An ownServer is the server of a contender that is not Redis, seen from where the rounds run.
type ownServer struct {
	name    string // of services
	process *remote
	addr    string
	before  int // connections without clients
}

// prepare is the contender's: it starts the server, in a session of its own as Redis has one.
func (s *ownServer) prepare(ctx context.Context, _ round, _ io.Writer) (map[string]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	host := exec.Command(program, hostFlag, s.name)
	host.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.process, err = startRemote("the host of "+s.name, host); err != nil {
		return nil, err
	}
	a, err := s.process.ask(ctx, patience, "serve", nil)
	if err == nil && a.Address == "" {
		err = errors.New("no address came")
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	s.addr = a.Address
	s.before = connectionsTo(s.addr)
	return a.Versions, nil
}

// stop is the contender's, too. The host that is killed could not end its server.
func (s *ownServer) stop() {
	_ = s.process.stdin.Close()
	late := time.AfterFunc(2*patience, func() { _ = s.process.cmd.Process.Kill() })
	defer late.Stop()
	for range s.process.answers { // until it has ended
	}
}

// read returns what the meters show that this server has: not the commands, which are Redis's.
func (s *ownServer) read() reading {
	asked := time.Now()
	r := reading{cpu: cpuOf(s.process.cmd.Process.Pid), connections: connectionsTo(s.addr) - s.before}
	r.at = asked.Add(time.Since(asked) / 2)
	return r
}

// fsyncTakes is what a write of 4 KiB to a file of the folder takes until it is on the disk, in the median: without it nobody
// knows what the rates of a server say that waits for that.
func fsyncTakes(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	page := make([]byte, 4096)
	var took []float64
	for range 51 {
		begin := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begin)))
	}
	return time.Duration(median(took)), nil
}
