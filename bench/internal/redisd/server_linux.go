package redisd

import "syscall"

// childAttr makes the kernel kill the server when the thread that started it ends, so that it does not outlive this
// program.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
