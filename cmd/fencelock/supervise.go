package main

import (
	"cmp"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
)

// An eventKind is what happened to the command.
type eventKind int

const (
	exited  eventKind = iota // the command itself has ended
	gone                     // and all that it has started
	stopped                  // it was stopped from the terminal
)

type event struct {
	kind eventKind
	code int // of exited: the exit code, or 128 and the number of the signal
}

const (
	lookEvery = time.Second           // for how long a clock that was set, or a machine that slept, goes unnoticed
	killEvery = 20 * time.Millisecond // processes that are being started may not be seen the first time
	// patience is the time after which a second signal is meant as one: programs such as timeout(1) send the same one twice.
	patience = time.Second
)

// supervisor sees to it that the command is gone before the lease is.
type supervisor struct {
	*job
	child    *child
	deadline time.Time // until which the lease could be trusted when it was looked at last
	wall     time.Time // the same on the wall clock alone, which goes on while the machine is suspended
	stopping bool      // the command has been told to end because of the lock
	killAt   time.Time // zero: never
	ended    time.Time // when the first signal came that ends the command
	last     os.Signal // that asked for the end, and was passed on
	lastAt   time.Time // when it was
	left     time.Time // since when the command itself is over, and only what it has started goes on
	leftSaid bool      // that this is waited for
}

// runCommand runs the command until it has ended. lost: it was told to, as the lock was lost or about to be.
func (j *job) runCommand() (code int, lost bool, err error) {
	s := &supervisor{job: j, child: &child{events: make(chan event, 4), terminal: onTerminal()}}
	if err := s.child.start(j.path, j.argv, j.environment()); err != nil {
		code := exitCannotRun
		if errors.Is(err, os.ErrNotExist) {
			code = exitNotFound
		}
		return code, false, &exitError{code, err}
	}
	lostSignal := j.hold.Done()
	for {
		next := time.NewTimer(s.look())
		select {
		case e := <-s.child.events:
			switch {
			case e.kind == gone, e.kind == exited && j.detachOK && !s.stopping:
				if e.kind == exited {
					code = e.code
				}
				return code, s.stopping, nil
			case e.kind == exited:
				code, s.left = e.code, time.Now()
				j.tell("the command has ended with %d", code)
			case e.kind == stopped:
				stopSelf()
			}
		case sig := <-j.signals:
			s.signal(sig)
		case <-lostSignal:
			lostSignal = nil
		case <-next.C:
		}
		next.Stop()
	}
}

// look looks at the lease, does what it asks for, and returns when to look again.
func (s *supervisor) look() time.Duration {
	left, err := s.hold.Remaining(), s.hold.Err() // in this order: nothing is left of a hold that is over
	now, margin := time.Now(), killMargin(time.Duration(s.lease))
	grace := time.Duration(s.grace)
	switch {
	case err != nil && s.stoodStill(now):
		s.killAt = now
		s.child.kill()
		s.stop(now, "%s is lost: %v", s.name, err)
	case s.stopping:
	case err != nil:
		s.stop(now.Add(grace), "%s is lost: %v", s.name, err)
	case left <= grace+margin:
		s.stop(now.Add(min(grace, left-margin)), "the lease of %s ends in %v and was not renewed%s", s.name, left.Round(time.Millisecond), s.why())
	default:
		s.trust(now.Add(left))
	}
	if !s.leftSaid && !s.stopping && !s.left.IsZero() && now.Sub(s.left) >= lookEvery {
		s.leftSaid = true
		s.say("the command has ended, but not all that it has started: %s is held until it has (or use --detach-ok)", s.name)
	}
	if s.killAt.IsZero() {
		return min(left-grace-margin, lookEvery)
	}
	if wait := s.killAt.Sub(now); wait > 0 {
		return min(wait, lookEvery)
	}
	s.child.kill()
	return killEvery
}

// trust keeps until when the lease can be trusted.
func (s *supervisor) trust(until time.Time) { s.deadline, s.wall = until, until.Round(0) }

// stoodStill tells that the lease has ended before it was looked at again: this process, or the machine, stood still.
func (s *supervisor) stoodStill(now time.Time) bool {
	return !now.Before(s.deadline) || !now.Round(0).Before(s.wall)
}

// stop ends the command because of the lock, once.
func (s *supervisor) stop(killAt time.Time, format string, args ...any) {
	if s.stopping {
		return
	}
	s.stopping = true
	if s.killAt.IsZero() || killAt.Before(s.killAt) {
		s.killAt = killAt
	}
	s.child.terminate()
	s.say(format+"; the command is stopped", args...)
}

// why is what the last renewal said.
func (s *supervisor) why() string {
	if err := s.renewal.Load(); err != nil {
		return ": " + cmp.Or(s.at.away(*err), plain.Reason(*err))
	}
	return ""
}

// signal passes a signal on. One that ends the command kills it when it comes again.
// A TERM or INT that comes again at once is passed on once: timeout(1) sends it to fencelock and to its group, and a command takes the second
// one for impatience.
func (s *supervisor) signal(sig os.Signal) {
	if sig == syscall.SIGTERM || sig == os.Interrupt {
		if sig == s.last && time.Since(s.lastAt) < patience {
			return
		}
		s.last, s.lastAt = sig, time.Now()
	}
	if !s.child.forward(sig, s.leftSaid) {
		return
	}
	switch now := time.Now(); {
	case s.ended.IsZero():
		s.ended = now
	case now.Sub(s.ended) >= patience:
		s.killAt = now
	}
}
