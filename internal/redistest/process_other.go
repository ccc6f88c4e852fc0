//go:build !linux

package redistest

import "syscall"

// childAttr returns nothing: here, a server can outlive a test program that
// crashes.
func childAttr() *syscall.SysProcAttr { return nil }
