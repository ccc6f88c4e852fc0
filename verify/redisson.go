package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// redissonProcess is the number of the process that is a JVM with a client of Redisson's, in the ops.
const redissonProcess = 9999

// redissonClasses returns the class path of the JVM, which the tests with Redisson have built, or this does, with Maven.
func redissonClasses(ctx context.Context, progress io.Writer) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "interop", "redisson")
	jar := filepath.Join(dir, "target", "interop.jar")
	if _, err := exec.LookPath("java"); err != nil {
		return "", err
	}
	if _, err := os.Stat(jar); err != nil {
		fmt.Fprintln(progress, "building the client of Redisson's with Maven")
		build := exec.CommandContext(ctx, "mvn", "-q", "-B", "package")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("mvn package: %w\n%s", err, out)
		}
	}
	return jar + string(filepath.ListSeparator) + filepath.Join(dir, "target", "dependency", "*"), nil
}

// redisson is the JVM, with one thread, whose calls are written down here.
type redisson struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	rec     *recorder
	stop    chan struct{}
	stopped sync.Once
	gone    chan struct{} // closed when it has left the lock for good
	died    error         // before it was stopped; after gone

	resting resting
}

// startRedisson starts the JVM. Nothing befalls it but what is done to the server. Its way there is as long as that of
// others.
func (s *stage) startRedisson(classes string) *redisson {
	j := &redisson{stop: make(chan struct{}), gone: make(chan struct{})}
	j.rec = &recorder{process: redissonProcess, put: func(o op) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ops[o.ID] = o
	}}
	way, err := newLink(s.locks.Addr())
	s.must(err)
	s.Cleanup(way.close)
	j.cmd = exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, "Main")
	j.in, err = j.cmd.StdinPipe()
	s.must(err)
	out, err := j.cmd.StdoutPipe()
	s.must(err)
	j.out = bufio.NewScanner(out)
	s.must(j.cmd.Start())
	s.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		_ = j.cmd.Wait()
	})
	_, err = j.ask("open", "address=%s&watchdog=30000", way.addr())
	s.must(err)
	return j
}

var errEnded = errors.New("it has ended")

// ask waits for the answer to a command, a number where it is one.
func (j *redisson) ask(command, format string, args ...any) (int64, error) {
	if _, err := fmt.Fprintf(j.in, "1 thread %s client=c&%s\n", command, fmt.Sprintf(format, args...)); err != nil {
		return 0, errors.Join(errEnded, err)
	}
	if !j.out.Scan() {
		return 0, errors.Join(errEnded, j.out.Err())
	}
	var answer struct {
		Value any    `json:"value"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(j.out.Bytes(), &answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, errors.New("java: " + answer.Error)
	}
	n, _ := answer.Value.(float64)
	return int64(n), nil
}

// run takes and gives back the lock until it is stopped, as a caller does. It rests for as long as others rest now and then.
func (j *redisson) run(lock string, wait, lease time.Duration) {
	defer close(j.gone)
	arguments := "kind=fenced&name=" + lock
	for number := redissonProcess * 10; !within(j.stop, 0); {
		if j.resting.now() {
			within(j.stop, 10*time.Millisecond)
			continue
		}
		o := j.rec.begin(op{Client: number, Kind: acquire, Lock: lock, Value: int64(wait)})
		token, err := j.ask("tryLockAndGetToken", "%s&wait=%d&lease=%d", arguments, wait.Milliseconds(), lease.Milliseconds())
		switch {
		case errors.Is(err, errEnded):
			j.died = err
			return
		case err != nil: // also a wait that ended while it subscribed
			j.rec.end(o, unknown, err)
			within(j.stop, 10*time.Millisecond)
			continue
		case token == 0:
			j.rec.end(o, refused, nil)
			continue
		}
		o.Token = token
		o = j.rec.end(o, done, nil)
		time.Sleep(time.Millisecond)
		last := min(now(), o.Call+int64(lease))
		j.rec.emit(op{
			ID: -o.ID, Client: number, Kind: alive, Lock: lock, Hold: o.ID, Token: token, Value: int64(lease),
			Call: o.Return, Return: last, Outcome: done,
		})
		u := j.rec.begin(op{Client: number, Kind: unlock, Lock: lock, Hold: o.ID, Token: token})
		switch _, err = j.ask("unlock", "%s", arguments); {
		case err == nil:
			j.rec.end(u, done, nil)
		case strings.Contains(err.Error(), "IllegalMonitorState"):
			j.rec.end(u, refused, err)
		default:
			j.rec.end(u, unknown, err)
		}
	}
}

// leave stops it and ends the JVM. It may be called again.
func (j *redisson) leave(patience time.Duration) error {
	j.stopped.Do(func() { close(j.stop) })
	if !within(j.gone, patience) {
		return errors.New("it does not come to an end")
	}
	_ = j.in.Close() // which ends the program
	return j.died
}
