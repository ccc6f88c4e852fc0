package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Meters of servers that have none of their own, from Linux's /proc. Where there is none they show nothing.

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time of the process and of those below it, ended ones included.
func cpuOf(pid int) time.Duration {
	parents, ticks := map[int]int{}, map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		of, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // from the third on: the second is a name in brackets
		if len(fields) < 15 {
			continue
		}
		parents[of], _ = strconv.Atoi(string(fields[1]))
		for _, field := range fields[11:15] { // its user and system time, and those of children that it has waited for
			n, _ := strconv.Atoi(string(field))
			ticks[of] += n
		}
	}
	sum := 0
	for of, n := range ticks {
		for above := of; above != 0; above = parents[above] {
			if above == pid {
				sum += n
				break
			}
		}
	}
	return time.Duration(sum) * tick
}

// cpuOfOthers is the CPU time of all that is not this process or below it, since the machine began.
func cpuOfOthers() time.Duration {
	raw, _ := os.ReadFile("/proc/stat")
	sum := 0
	for i, field := range strings.Fields(string(raw[:max(0, bytes.IndexByte(raw, '\n'))])) {
		if i == 4 || i == 5 || i > 8 { // idle, waiting for a disk, and guests, who are in the first ones
			continue
		}
		n, _ := strconv.Atoi(field) // the first field is a name
		sum += n
	}
	return time.Duration(sum)*tick - cpuOf(os.Getpid())
}

// connectionsTo is how many connections to the address are open, which is one of 127.0.0.1.
func connectionsTo(addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	local := fmt.Sprintf("0100007F:%04X", number)
	from := map[string]bool{}
	for range 3 { // where others connect meanwhile, the list has connections twice, or leaves some out
		raw, _ := os.ReadFile("/proc/net/tcp")
		for line := range strings.Lines(string(raw)) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[1] == local && fields[3] == "01" { // established
				from[fields[2]] = true
			}
		}
	}
	return len(from)
}
