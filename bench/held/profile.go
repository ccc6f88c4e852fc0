package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profileEverything makes the heap profile count every allocation.
func profileEverything(on bool) {
	if on {
		runtime.MemProfileRate = 1
	} else {
		runtime.MemProfileRate = 0
	}
}

// profile writes the heap profile of what is alive, where -profiles asks for it.
func (r *report) profile(name string) {
	if r.profiles == "" {
		return
	}
	err := os.MkdirAll(r.profiles, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.Create(filepath.Join(r.profiles, name+".pprof")); err == nil {
			err = pprof.Lookup("heap").WriteTo(f, 0)
			_ = f.Close()
		}
	}
	if err != nil {
		r.say("heap profile: %v", err)
	}
}
