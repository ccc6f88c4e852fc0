//go:build !linux

package watchdog

import "time"

// bootClock returns 0: there is no portable clock that counts through a suspend.
func bootClock() time.Duration { return 0 }
