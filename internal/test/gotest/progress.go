package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// silence is how long nothing is printed before a line says what is under way.
const silence = 15 * time.Second

// A progress prints to out what it is given, and after each silence a line of what is under way: go test keeps back what a package prints until
// those before it are done. Each process of tests notes its number and its folder in a file before it begins.
type progress struct {
	tested map[string]string // the names of the packages that have tests, by their folders
	began  time.Time
	notes  string // the file
	timer  *time.Timer

	mu  sync.Mutex
	out io.Writer
}

func newProgress(tested map[string]string, out io.Writer) (*progress, error) {
	file, err := os.CreateTemp("", "gotest")
	if err != nil {
		return nil, err
	}
	p := &progress{tested: tested, began: time.Now(), notes: file.Name(), out: out}
	p.timer = time.AfterFunc(silence, func() {
		if len(tested) > 1 { // of one package it is known which is under way
			_, _ = io.WriteString(p, p.line())
		}
	})
	return p, file.Close()
}

func (p *progress) close() {
	p.timer.Stop()
	_ = os.Remove(p.notes)
}

// flag makes go test begin each package with a shell, which notes the process and then becomes the test binary.
func (p *progress) flag() string {
	return `-exec=sh -c 'echo "$$ $PWD" >>"` + p.notes + `"; exec "$0" "$@"'`
}

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Reset(silence)
	return p.out.Write(b)
}

func (p *progress) line() string {
	notes, _ := os.ReadFile(p.notes)
	var now []string
	done := 0
	for note := range strings.Lines(string(notes)) {
		number, folder, _ := strings.Cut(strings.TrimSpace(note), " ")
		if runs(number) {
			now = append(now, strings.TrimPrefix(p.tested[folder], "github.com/fencelock/fencelock/"))
		} else {
			done++
		}
	}
	if now == nil {
		now = []string{"go build"}
	}
	return fmt.Sprintf("-- %v: %d of %d packages are done; under way: %s\n", time.Since(p.began).Round(time.Second), done, len(p.tested), strings.Join(now, ", "))
}

// runs tells whether there is a process with this number.
func runs(number string) bool {
	pid, _ := strconv.Atoi(number)
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	return process.Signal(syscall.Signal(0)) == nil
}
