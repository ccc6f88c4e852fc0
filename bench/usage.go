package main

import (
	"runtime"
	"syscall"
	"time"
)

// usage is what a process has used at one moment, and how a load in another process tells it.
type usage struct {
	At         time.Duration `json:"at_ns"` // since a moment of the process's own
	CPU        time.Duration `json:"cpu_ns"`
	Allocs     uint64        `json:"allocs"`
	AllocBytes uint64        `json:"alloc_bytes"`
}

var began = time.Now()

// usageHere is what this process has used.
func usageHere() (usage, error) {
	u := usage{At: time.Since(began)}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return usage{}, err
	}
	u.CPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	u.Allocs, u.AllocBytes = mem.Mallocs, mem.TotalAlloc
	return u, nil
}
