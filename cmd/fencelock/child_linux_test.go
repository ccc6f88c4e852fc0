package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A new process that is stopped, as by ^Z, before it has become the command goes on, also while fencelock's memory wants to be collected.
func TestStoppedBeforeItIsTheCommand(t *testing.T) {
	realtime.Test(t, "children that are met at the right moment")
	t.Parallel()
	server := redistest.Real(t)
	early := 0
	for round := 0; early < 12; round++ { // a collection is not always begun at the wrong moment
		if round == 1000 {
			t.Fatalf("%d new processes were stopped before they were the command", early)
		}
		p := startProgram(t, server.Addr(), "env", "GOGC=1", "fencelock", "run", "x", "--", "/bin/true")
		if stopChild(p) {
			early++
		}
		equal(t, "exit code", p.ends(), 0)
	}
}

// stopChild stops the program's first child as soon as there is one, and tells whether that was early: the child was the program still. If
// not, the child goes on.
func stopChild(p *program) (early bool) {
	for {
		select {
		case <-p.exited:
			return false
		default:
		}
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil || syscall.Kill(pid, syscall.SIGSTOP) != nil {
				continue
			}
			for {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err != nil || strings.Contains(string(stat), ") Z ") {
					return false
				}
				if strings.Contains(string(stat), ") T ") {
					break
				}
			}
			own, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.cmd.Process.Pid))
			now, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			if early = own != "" && own == now; !early {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			return early
		}
	}
}
