package redisserver

import "syscall"

// childAttr makes the kernel kill the server when the thread that started it ends, so that no server outlives a program that
// crashes.
func childAttr(session bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: session, Pdeathsig: syscall.SIGKILL}
}
