package main

import (
	"os"
	"syscall"
	"unsafe"
)

// sharedMemory is the state of keys in a page that several processes have in their memory, so that the checks of a
// section cost the same few nanoseconds as within one process, and nothing of Redis.
type sharedMemory struct {
	file string
	raw  []byte
	keys []keyState
}

// createShared makes the file that the page is of.
func createShared(keys int) (*sharedMemory, error) {
	f, err := os.CreateTemp("", "fencelock-bench-")
	if err != nil {
		return nil, err
	}
	err = f.Truncate(int64(keys) * int64(unsafe.Sizeof(keyState{})))
	_ = f.Close()
	if err != nil {
		_ = os.Remove(f.Name())
		return nil, err
	}
	return openShared(f.Name(), keys)
}

func openShared(file string, keys int) (*sharedMemory, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size := keys * int(unsafe.Sizeof(keyState{}))
	raw, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	// keyState has no pointers, and pages begin at multiples of any alignment.
	return &sharedMemory{file: file, raw: raw, keys: unsafe.Slice((*keyState)(unsafe.Pointer(unsafe.SliceData(raw))), keys)}, nil
}

// close gives the page back. Goroutines that are stuck must not touch keys any more: it is for processes without such.
func (s *sharedMemory) close() error { return syscall.Munmap(s.raw) }
