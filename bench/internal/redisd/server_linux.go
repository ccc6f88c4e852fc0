package redisd

import "syscall"

// childAttr gives the server a session of its own, as a service has: where Linux schedules sessions as groups
// (sched_autogroup) it would otherwise have to share its clients' part of the CPUs. And it makes the kernel kill the server
// when the thread that started it ends, so that it does not outlive this program.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
