package redistest

import "syscall"

// childAttr makes the kernel kill a child when the thread that started it ends,
// so that no server outlives a test program that crashes.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
