//go:build unix && !linux

package main

import (
	"syscall"
	"time"
)

// attributes are those of the command's process: in a group of its own or not.
func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }

// adoptOrphans does nothing: only Linux gives a process what its descendants leave behind.
func adoptOrphans() {}

// awaitGroup waits until nothing of the command's group is left. The system does not tell when that is.
func (c *child) awaitGroup() {
	for !c.terminal && syscall.Kill(-c.process.Pid, 0) == nil {
		time.Sleep(20 * time.Millisecond)
	}
}

// family tells that there is no list of what comes from the command.
func (c *child) family() ([]relative, bool) { return nil, false }

// threadID is 0: the system's threads are of no use here.
func threadID() int { return 0 }

// childrenOf tells of none: the system has no list of what a thread has started.
func childrenOf(int) []int { return nil }
