//go:build !linux

package redisd

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
