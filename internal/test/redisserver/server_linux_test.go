package redisserver

import (
	"os"
	"syscall"
	"testing"
)

func TestASessionAndAFolderOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("a server process of its own is for a run without -short")
	}
	s, err := StartApart()
	if err != nil {
		t.Fatal(err)
	}
	session, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(s.Pid()), 0, 0)
	if errno != 0 || int(session) != s.Pid() {
		t.Errorf("the server %d is in session %d: %v", s.Pid(), session, errno)
	}
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Error(err)
	}
	s.Close()
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("after Close its folder: %v", err)
	}
	if s.Running() {
		t.Error("it runs after Close")
	}
}
