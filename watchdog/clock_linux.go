package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// bootClock reads CLOCK_BOOTTIME: the monotonic clock that goes on while the machine is suspended, when the usual one
// stands still and the wall clock may not have been set yet.
func bootClock() time.Duration {
	const clockBoottime = 7
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
