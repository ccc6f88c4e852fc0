package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes are those of the command's process: in a group of its own or not, and killed when this process is.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes what the command leaves behind a child of this process, which waits for it.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// threadID is the kernel's number of the calling thread.
func threadID() int { return unix.Gettid() }

// childrenOf returns the processes that this thread has started or, where the kernel does not tell that, all that come from this process.
func childrenOf(thread int) (pids []int) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread))
	if err != nil { // the kernel was built without these lists
		all, _ := (&child{}).family()
		for _, p := range all {
			pids = append(pids, p.pid)
		}
		return pids
	}
	for _, word := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitGroup has nothing to wait for: all were children of this process at last.
func (c *child) awaitGroup() {}

// family returns the processes that come from the command; false where the system does not tell.
func (c *child) family() ([]relative, bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	children := map[int][]relative{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat") // nothing for one that has ended
		var state string
		var parent, group int
		// These follow the name of the program, which is in brackets.
		if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent, &group); err == nil && state != "Z" {
			children[parent] = append(children[parent], relative{pid, group})
		}
	}
	if len(children) == 0 { // /proc is another thing than what is meant here
		return nil, false
	}
	var all []relative
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			if !c.others[p.pid] {
				all, next = append(all, p), append(next, p.pid)
			}
		}
	}
	return all, true
}
