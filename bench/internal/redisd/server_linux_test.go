package redisd

import (
	"syscall"
	"testing"
)

func TestASessionOfItsOwn(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	pid := s.cmd.Process.Pid
	session, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 || int(session) != pid {
		t.Errorf("the server %d is in session %d: %v", pid, session, errno)
	}
}
