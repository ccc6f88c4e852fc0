package main

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// caughtSignals are those that end the wait; the console gives them to the command, too.
var caughtSignals = []os.Signal{os.Interrupt}

// endingSignal is the number of a signal that asks for the end, 0 for others.
func endingSignal(os.Signal) int { return 2 }

// onTerminal does not matter here: the console sends its events to the command.
func onTerminal() bool { return true }

// isTerminal tells whether somebody sees what is written.
func isTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

func surviveBrokenPipe()       {}
func stopSelf()                {}
func stopOnTerminal(os.Signal) {}

// A child is the command and all that it starts, in a job object, which ends them when this process ends.
type child struct {
	events   chan event
	terminal bool
	process  *os.Process
	job      windows.Handle

	// What the calls about the job read and write. Not variables of a function: the calls take addresses as numbers, and the stack of a
	// goroutine may move before they use them.
	limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	counts accounting
}

// start starts the command. The event gone is the last one.
func (c *child) start(path string, argv, env []string) error {
	var err error
	if c.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	c.limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(c.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&c.limits)), uint32(unsafe.Sizeof(c.limits))); err != nil {
		return err
	}
	c.process, err = os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(c.job, handle)
		_ = windows.CloseHandle(handle)
	}
	if err != nil {
		_ = c.process.Kill()
		return err
	}
	go c.reap()
	return nil
}

// reap waits for the command and all that it has started.
func (c *child) reap() {
	state, err := c.process.Wait()
	code := exitTrouble
	if err == nil {
		code = state.ExitCode()
	}
	c.events <- event{kind: exited, code: code}
	for windows.QueryInformationJobObject(c.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&c.counts)), uint32(unsafe.Sizeof(c.counts)), nil) == nil && c.counts.activeProcesses > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	c.events <- event{kind: gone}
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	_               [4]int64  // times
	_               [2]uint32 // page faults, processes so far
	activeProcesses uint32
	_               uint32
}

// forward has nothing to do: the command has got the console's event.
func (c *child) forward(os.Signal, bool) (ends bool) { return true }

// terminate ends the command: there is no signal that asks for it.
func (c *child) terminate() { c.kill() }

// kill ends the command and all that it has started.
func (c *child) kill() { _ = windows.TerminateJobObject(c.job, exitSignal+9) }
