//go:build !linux

package redisserver

import "syscall"

// childAttr is for a server that can outlive a program that crashes, which cannot be helped here.
func childAttr(session bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: session} }
