package main

import (
	"errors"
	"fmt"
)

// The exit codes of fencelock itself. All others are the command's own.
const (
	exitFailed      = 1   // of the commands that show or free locks
	exitUsage       = 64  // EX_USAGE
	exitNotAcquired = 75  // EX_TEMPFAIL
	exitLost        = 124 // as timeout(1) ends
	exitTrouble     = 125 // and so on as env(1), nohup(1) and timeout(1) end
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // and the signal's number
)

// exitCodes is the table of "run --print-exit-codes" and the help.
const exitCodes = `  the command's own   the command ran under the lock and ended by itself
  64                  wrong usage; nothing was run
  75                  another holder had the lock for the whole wait; nothing was run (--conflict-exit-code changes the number)
  124                 the lock was lost, or was about to be, and the command was stopped; also if the command then ended with 0
  125                 fencelock failed, for example because Redis did not answer; nothing was run
  126                 the command cannot be run
  127                 the command was not found
  128+n               signal n ended the command, or the wait for the lock
`

// exitError is an error with the exit code that it is to have. err is nil where everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }
func (e *exitError) Unwrap() error { return e.err }

// ended is the error of a command that has ended with this code, where it says why, with that error.
func ended(code int, err error) error {
	switch {
	case err != nil && !errors.As(err, new(*exitError)):
		return &exitError{exitTrouble, err}
	case err == nil && code != 0:
		return &exitError{code: code}
	}
	return err
}

// usage is the error of somebody who has to type something else.
func usage(format string, args ...any) *exitError {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// reason is an error without its exit code.
func reason(err error) string {
	var exit *exitError
	if errors.As(err, &exit) && exit.err != nil {
		return exit.err.Error()
	}
	return err.Error()
}
