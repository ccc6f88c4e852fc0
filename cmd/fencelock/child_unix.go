//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// caughtSignals are those that are passed on to the command, or kept from ending this process.
var caughtSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP,
}

// surviveBrokenPipe makes a write to an output that nobody reads any more an error. Otherwise it would end this process, and leave behind
// what the command has started.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// endingSignal is the number of a signal that asks for the end, 0 for others.
func endingSignal(sig os.Signal) int {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP:
		return int(sig.(syscall.Signal))
	}
	return 0
}

// onTerminal tells whether somebody sits in front of the command.
func onTerminal() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if isTerminal(f) {
			return true
		}
	}
	return false
}

// isTerminal asks for the foreground group: of a terminal that is not this process's own it is not told.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// stopSelf stops this process, as the terminal has stopped the command, so that the shell takes over.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// stopOnTerminal does what the key ^Z asks for while no command runs.
func stopOnTerminal(sig os.Signal) {
	if sig == syscall.SIGTSTP {
		stopSelf()
	}
}

// A child is the command and all that it starts. On a terminal it stays in this process's group, so that the keyboard
// reaches it; otherwise it has a group of its own.
type child struct {
	events   chan event
	terminal bool
	process  *os.Process
	others   map[int]bool // children that this process had before
	resumed  time.Time    // when this process went on after a ^Z that forward was called for
}

// start starts the command. The event gone is the last one.
func (c *child) start(path string, argv, env []string) error {
	adoptOrphans()
	if before, is := c.family(); is {
		c.others = make(map[int]bool)
		for _, p := range before {
			c.others[p.pid] = true
		}
	}
	// Until the new process has become the command it keeps the thread that starts it, and that thread one of the runtime's processors. ^Z may
	// stop the process just then. A garbage collection would wait for that processor, and all else here for the collection: there is none
	// meanwhile, and one that has been asked for already ends first.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2))
	started, thread := make(chan error), make(chan int, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the kernel kills the command when this thread ends
		thread <- threadID()
		attr := &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attributes(!c.terminal)}
		var err error
		c.process, err = os.StartProcess(path, argv, attr)
		if errors.Is(err, syscall.ENOEXEC) { // a script without a first line that names its shell: as execvp, and so cron and env, runs it
			c.process, err = os.StartProcess("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), attr)
		}
		started <- err
		if err == nil {
			c.reap()
		}
	}()
	starter, wait := <-thread, time.NewTimer(startsWithin)
	defer wait.Stop()
	for {
		select {
		case err := <-started:
			return err
		case <-wait.C:
			for _, pid := range childrenOf(starter) { // stopped
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			wait.Reset(startsWithin / 10) // a key that is held down comes again
		}
	}
}

// startsWithin is how long it takes at most, mostly, until a new process has become the command.
const startsWithin = 100 * time.Millisecond

// reap waits for the command and, where the system gives them to this process, for all that it has started.
func (c *child) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil: // there are no children any more
			c.awaitGroup()
			c.events <- event{kind: gone}
			return
		case pid == c.process.Pid && status.Stopped():
			if c.terminal && status.StopSignal() == syscall.SIGTSTP {
				c.events <- event{kind: stopped}
			}
		case pid == c.process.Pid && status.Exited():
			c.events <- event{kind: exited, code: status.ExitStatus()}
		case pid == c.process.Pid:
			c.events <- event{kind: exited, code: exitSignal + int(status.Signal())}
		}
		if len(c.others) > 0 && !status.Stopped() {
			if left, _ := c.family(); len(left) == 0 {
				c.events <- event{kind: gone}
				return
			}
		}
	}
}

// forward passes a signal on, and tells whether it asks for the end. On a terminal the keyboard's have come to the command already. left: the
// command itself is over. What it has left behind may ignore the keyboard, as a shell's background processes do: it gets TERM then.
func (c *child) forward(sig os.Signal, left bool) (ends bool) {
	n := sig.(syscall.Signal)
	switch {
	case c.terminal && left && (n == syscall.SIGINT || n == syscall.SIGQUIT):
		c.terminate()
		return true
	case c.terminal && (n == syscall.SIGINT || n == syscall.SIGQUIT || n == syscall.SIGTSTP || n == syscall.SIGWINCH):
		return false
	case n == syscall.SIGUSR1 || n == syscall.SIGUSR2:
		_ = c.process.Signal(n)
		return false
	}
	if n == syscall.SIGTSTP && time.Since(c.resumed) < startsWithin { // typed before this process stopped
		return false
	}
	c.signalAll(n)
	if n == syscall.SIGTSTP { // from a terminal that neither reads nor writes here: its shell waits for this process
		stopSelf()
		c.resumed = time.Now()
	}
	return endingSignal(sig) != 0 && n != syscall.SIGHUP && n != syscall.SIGQUIT
}

// terminate asks the command and all that it has started to end, also what is stopped.
func (c *child) terminate() {
	c.signalAll(syscall.SIGTERM)
	c.signalAll(syscall.SIGCONT)
}

// kill ends the command and all that it has started.
func (c *child) kill() { c.signalAll(syscall.SIGKILL) }

// signalAll sends a signal to the command and all that it has started.
func (c *child) signalAll(sig syscall.Signal) {
	family, is := c.family()
	if !is {
		if c.terminal || syscall.Kill(-c.process.Pid, sig) != nil {
			_ = c.process.Signal(sig)
		}
		return
	}
	group := false
	for _, p := range family {
		if !c.terminal && p.group == c.process.Pid {
			group = true
			continue
		}
		_ = syscall.Kill(p.pid, sig)
	}
	if group { // at once, so that none of it can escape by starting another
		_ = syscall.Kill(-c.process.Pid, sig)
	}
}

// relative is a process that comes from the command.
type relative struct{ pid, group int }
