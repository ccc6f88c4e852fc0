package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// bootClock reads CLOCK_BOOTTIME, the monotonic clock that goes on while the machine is suspended: the usual monotonic clock stands
// still meanwhile, and the wall clock may not have been set yet after it. It returns 0 where the clock cannot be read.
func bootClock() time.Duration {
	const clockBoottime = 7
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
