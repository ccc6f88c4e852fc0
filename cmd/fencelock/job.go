package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard/httpguard"
	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// A job is one call of run or acquire.
type job struct {
	*runOptions
	name string
	path string // of the program
	argv []string
	log  *speech

	at      *connection
	servers []redis.UniversalClient // one, or those of a quorum
	client  *rlock.Client           // nil for a quorum
	lock    *fenced.Lock            // none for a permit
	hold    *fenced.Hold            // nil until there is one
	field   string                  // of the holder in Redis
	signals chan os.Signal
	restEnd time.Time             // of what is left to do once the lock was not acquired; zero before
	waited  atomic.Bool           // the call has waited for another holder
	renewal atomic.Pointer[error] // what the last renewal said, if it failed
}

// releaseTimeout is for how long the release waits for Redis, and then once more what is left to do. The lease ends by itself.
const releaseTimeout = 2 * time.Second

// restTimeout bounds what is left to do where the lock was not acquired: to ask who has it, and to release what may have been taken.
const restTimeout = time.Second

// say tells the user of something, unless -q was given.
func (j *job) say(format string, args ...any) {
	if !j.quiet {
		for i, arg := range args {
			if err, is := arg.(error); is {
				args[i] = cmp.Or(j.at.away(err), plain.Reason(err))
			}
		}
		j.log.say("fencelock: "+plain.Line(fmt.Sprintf(format, args...))+"\n", hearing)
	}
}

// tell tells the user of something that went well, if -v was given.
func (j *job) tell(format string, args ...any) {
	if j.verbose {
		j.say(format, args...)
	}
}

// run takes the lock, runs the command and releases the lock. It returns the exit code.
func (j *job) run(at *connection) (int, error) {
	return j.under(at, "run "+shorten(filepath.Base(j.path)), func() (int, error) {
		began := time.Now()
		code, lost, err := j.runCommand()
		if !lost && err == nil && !j.linger(began) {
			j.tell("%s was lost after the command had ended", j.hold.Name())
			return code, nil
		}
		return j.release(code, lost), err
	})
}

// under takes the lock, and does what is to be done then. It returns the exit code. As a client it says that it is presence.
func (j *job) under(at *connection, presence string, do func() (int, error)) (int, error) {
	defer j.log.end()
	surviveBrokenPipe()
	var err error
	j.at = at
	if j.servers, err = at.openAll(); err != nil {
		return 0, err
	}
	defer closeAll(j.servers)
	client, err := j.newClient(
		rlock.WithLease(time.Duration(j.lease)),
		rlock.WithPresence(presence),
		rlock.WithTrace(&locktrace.Trace{WaitStarted: j.waitStarted, AcquireDone: j.acquireDone, RenewalDone: j.renewalDone}),
		rlock.WithUnlockTimeout(releaseTimeout),
		rlock.WithLogger(slog.New(slog.DiscardHandler))) // the job says what there is to say
	if err != nil {
		return 0, err
	}
	defer j.close(client)
	j.signals = make(chan os.Signal, 16)
	for _, sig := range caughtSignals {
		if !signal.Ignored(sig) { // by nohup, or a shell: the command inherits that
			signal.Notify(j.signals, sig)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code, err := j.acquire(ctx, cancel)
	if err != nil || j.hold == nil {
		return code, err
	}
	j.tell("%s is taken, token %d", j.hold.Name(), j.hold.Token())
	return do()
}

// close closes the client, which waits for the releases that are under way.
func (j *job) close(client io.Closer) {
	done := make(chan struct{})
	go func() {
		_ = client.Close()
		close(done)
	}()
	var rest <-chan time.Time // of a lock that was held: Close has a bound of its own
	if !j.restEnd.IsZero() {
		rest = time.After(time.Until(j.restEnd))
	}
	select {
	case <-done:
	case <-rest:
	}
}

// shorten bounds a name for rlock.WithPresence.
func shorten(name string) string { return name[:min(len(name), 100)] }

// waitStarted tells somebody who waits for the lock that the own parent holds of it. The parent's lock may be on another Redis.
func (j *job) waitStarted(locktrace.WaitStarted) {
	if j.waited.Swap(true) {
		return
	}
	above, mine := os.Getenv("FENCELOCK_NAME"), j.name
	if j.permits > 0 {
		mine = strings.TrimSuffix(scripts.PermitsOf(j.name, 1).Lock, "*") // of any slot
		above = above[:min(len(above), len(mine))]
	}
	if above == mine {
		j.say("this is run by fencelock under the lock %s already, and may wait for itself", j.name)
	} else {
		j.tell("waiting for %s", j.name)
	}
}

func (j *job) acquireDone(e locktrace.AcquireDone) { j.field = e.Field }

func (j *job) renewalDone(e locktrace.RenewalDone) {
	if e.Err != nil {
		j.renewal.Store(&e.Err)
	} else {
		j.renewal.Store(nil)
	}
}

// acquire takes the lock. Without an error and without a hold the exit code says why. ctx bounds the hold, too: it is canceled here
// only if a signal ends the wait.
func (j *job) acquire(ctx context.Context, cancel func()) (int, error) {
	done := make(chan error, 1)
	go func() { done <- j.lockPatiently(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				j.restEnd = time.Now().Add(restTimeout)
			}
			switch {
			case errors.Is(err, rlock.ErrNotAcquired):
				j.say("%s was not acquired: %s", j.name, j.holder())
				return j.conflictCode, nil
			case err != nil:
				return 0, fmt.Errorf("%s: %w", j.name, j.at.explained(ctx, withoutCall(err)))
			}
			select {
			case sig := <-j.signals: // came first: from a keyboard, the command would not get it
				if n := endingSignal(sig); n != 0 {
					return j.giveUp(n), nil
				}
			default:
			}
			return 0, nil
		case sig := <-j.signals:
			n := endingSignal(sig)
			if n == 0 {
				stopOnTerminal(sig)
				continue
			}
			signal.Reset() // the next one ends what is left to do
			cancel()
			<-done
			return j.giveUp(n), nil
		}
	}
}

// lockPatiently takes the lock, or returns why not. A call that has waited for another holder goes on waiting while Redis is away for longer
// than a call of the library waits for it.
func (j *job) lockPatiently(ctx context.Context) error {
	for end := time.Now().Add(time.Duration(j.wait)); ; {
		err := j.take(ctx, end)
		if err == nil {
			return nil
		}
		over := errors.Is(err, rlock.ErrNotAcquired) || ctx.Err() != nil || j.waitGiven && time.Until(end) <= awayPause
		if over || !j.waited.Load() || !scripts.Passing(err) {
			return err
		}
		j.say("still waiting for %s: %v", j.name, withoutCall(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awayPause):
		}
	}
}

// take takes the lock, or a permit, by one call of the library, which waits until this end if there is one.
func (j *job) take(ctx context.Context, end time.Time) error {
	var opts []rlock.AcquireOption
	if j.noWait || j.waitGiven {
		opts = append(opts, rlock.Wait(max(time.Until(end), 0).Truncate(time.Millisecond)))
	}
	if j.lasting != "" {
		opts = append(opts, rlock.Lasting(j.lasting))
	}
	if j.unrenewed {
		opts = append(opts, rlock.Lease(time.Duration(j.lease)))
	}
	acquire := j.lock.Acquire
	if j.permits > 0 {
		acquire = fenced.NewSemaphore(j.client, j.name, j.permits).Acquire
	}
	h, err := acquire(ctx, opts...)
	if err == nil {
		j.hold = h
	}
	return err
}

// awayPause is the time between two attempts to wait for a lock while Redis is away.
const awayPause = time.Second

// giveUp releases the lock if it was taken, as signal n came before the command was run, and returns the exit code.
func (j *job) giveUp(n int) int {
	if j.hold != nil {
		_ = j.hold.Unlock(context.Background())
		j.hold = nil
	}
	j.restEnd = time.Now().Add(restTimeout)
	return exitSignal + n
}

// holder says who has the lock.
func (j *job) holder() string {
	switch {
	case j.permits == 1:
		return "the one permit is taken, or others wait"
	case j.permits > 1:
		return fmt.Sprintf("all %d permits are taken, or others wait", j.permits)
	}
	in, err := j.at.inspector(j.servers)
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithDeadline(context.Background(), j.restEnd)
	defer cancel()
	locks, err := in.Look(ctx, j.name)
	if err != nil || locks[0].Holder == nil {
		return "somebody else had it"
	}
	return "the holder is " + process(locks[0].Holder.By, locks[0].Holder.Field)
}

// environment is the command's. What this process was told of a lock by another fencelock run, which has started it, is left out: of two
// variables with one name some programs take the first.
func (j *job) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"FENCELOCK_NAME", "FENCELOCK_TOKEN", "FENCELOCK_HOLDER", "FENCELOCK_HTTP_FIELD", "FENCELOCK_SLOT"}, name)
	})
	env = append(env,
		"FENCELOCK_NAME="+j.hold.Name(),
		fmt.Sprintf("FENCELOCK_TOKEN=%d", j.hold.Token()),
		"FENCELOCK_HOLDER="+j.field)
	if j.permits > 0 {
		env = append(env, fmt.Sprintf("FENCELOCK_SLOT=%d", j.hold.Slot()))
	}
	req := &http.Request{Header: http.Header{}}
	if httpguard.SetToken(req, j.hold.Name(), j.hold.Token()) == nil { // otherwise the name cannot be sent in a header
		env = append(env, "FENCELOCK_HTTP_FIELD="+httpguard.Header+": "+req.Header.Get(httpguard.Header))
	}
	return env
}

// linger keeps the lock for as long as --hold-at-least says, or until a signal ends that. It is false if the lock was lost meanwhile.
func (j *job) linger(began time.Time) bool {
	if time.Since(began) >= time.Duration(j.holdAtLeast) {
		return true // Unlock tells
	}
	rest := time.NewTimer(time.Until(began.Add(time.Duration(j.holdAtLeast))))
	defer rest.Stop()
	for {
		select {
		case <-rest.C:
			return true
		case <-j.hold.Done():
			return false
		case sig := <-j.signals:
			if endingSignal(sig) != 0 {
				return true
			}
		}
	}
}

// release releases the lock, and returns the exit code.
func (j *job) release(code int, lost bool) int {
	err := j.hold.Unlock(context.Background())
	switch {
	case lost:
		return exitLost
	case err == nil:
		j.tell("%s is released", j.hold.Name())
		return code
	case errors.Is(err, rlock.ErrLost):
		j.say("%s was lost while the command ran: %v", j.hold.Name(), withoutCall(err))
		return exitLost
	}
	j.say("the release of %s is not confirmed, the lock is free after %v at most: %v", j.hold.Name(), time.Duration(j.lease), withoutCall(err))
	if j.strict {
		return exitLost
	}
	return code
}

// withoutCall is an error of a lock without the name of the method and the lock.
func withoutCall(err error) error {
	var call *rlock.Error
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
