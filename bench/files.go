package main

import (
	"fmt"
	"syscall"
)

// What a run opens beside its clients, and a client for each server beside a connection for each caller.
const (
	filesBeside    = 256
	filesForClient = 5
)

// needFiles sees to it that so many files may be open as the modes need. A run that began without would fail in the middle.
func (p plan) needFiles() error {
	need := uint64(filesBeside)
	for _, m := range p.modes {
		need = max(need, filesBeside+uint64((filesForClient+m.callers)*m.clients*max(1, m.nodes)))
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if uint64(limit.Cur) >= need {
		return nil
	}
	raised := limit
	raised.Cur, raised.Max = need, max(raised.Max, need)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		return fmt.Errorf("%d files must be open at a time, and %d may be (%w): raise that with `ulimit -n %d`, or leave out modes with many clients, see -modes",
			need, limit.Cur, err, need)
	}
	return nil
}
