package main

import (
	"io"
	"time"
)

// speech writes lines to a reader that may have stopped reading: a pager, a terminal on which ^S was typed, a log whose disk is full.
// Whoever has a command to stop does not wait for that.
type speech struct{ lines chan spoken }

type spoken struct {
	text    string
	written chan struct{} // closed when it is
}

const (
	// hearing is how long a line is waited for, so that it stands before what happens next.
	hearing = 100 * time.Millisecond
	// lastWord is how long the last lines are waited for.
	lastWord = time.Second
)

func newSpeech(w io.Writer) *speech {
	s := &speech{make(chan spoken, 64)}
	go func() {
		for line := range s.lines {
			_, _ = io.WriteString(w, line.text)
			close(line.written)
		}
	}()
	return s
}

// say writes text, and is back soon in any case. What is behind too much that is not read is left out.
func (s *speech) say(text string, patience time.Duration) {
	line := spoken{text, make(chan struct{})}
	select {
	case s.lines <- line:
	default:
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-line.written:
	case <-late.C:
	}
}

// end waits for what is not written yet, for a while.
func (s *speech) end() { s.say("", lastWord) }
