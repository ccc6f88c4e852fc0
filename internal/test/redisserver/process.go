package redisserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// process is one run of a server program.
type process struct {
	cmd    *exec.Cmd
	log    string        // path of the file that takes its output
	exited chan struct{} // closed when it was waited for
}

// startProcess runs the program with its output in the file log, in a session of its own or in this process's.
func startProcess(program, log string, args []string, session bool) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p := &process{cmd: exec.Command(program, args...), log: log, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = out, out, childAttr(session)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // see childAttr
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.exited)
	}()
	return p, <-started
}

// output returns what the process has written so far.
func (p *process) output() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// kill ends the process, frozen or not, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// awaitUp waits until the process answers at addr.
func (p *process) awaitUp(addr string) error {
	var err error
	poll(startTimeout, func() bool {
		select {
		case <-p.exited:
			err = fmt.Errorf("%v", p.cmd.ProcessState)
			return true
		default:
			err = p.ping(addr)
			return err == nil
		}
	})
	return err
}

// ping asks the server at addr whether it is up, and is this process and not some other server that has got the same port.
func (p *process) ping(addr string) error {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, PoolSize: 1, MaxRetries: -1, DisableIdentity: true,
		DialTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, DialerRetries: 1,
	})
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	err := rdb.Ping(ctx).Err()
	for _, answer := range []string{"LOADING", "NOAUTH", "NOPERM"} { // of a server that is up
		if err != nil && redis.HasErrorPrefix(err, answer) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	info := rdb.Info(ctx, "server").Val() // nothing without the right to it
	_, id, found := strings.Cut(info, "\r\nprocess_id:")
	id, _, _ = strings.Cut(id, "\r\n")
	if found && id != strconv.Itoa(p.cmd.Process.Pid) {
		return fmt.Errorf("at %s answers process %s, not %d: another server, or the program does not exec it",
			addr, id, p.cmd.Process.Pid)
	}
	return nil
}

// stopped reports whether the kernel says that the process is stopped. Where there is no /proc it reports true.
func (p *process) stopped() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	// The state follows the name of the program, which is in brackets.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && bytes.HasPrefix(stat[i:], []byte(") T"))
}
