package s3test

import "syscall"

// endWithParent makes the kernel end a server when the thread that started it ends, so that none outlives a test program
// that crashes.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
