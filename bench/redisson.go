package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// jvm is the program in the directory redisson: one process for all rounds, so that what the JVM compiled once stays.
// It is started again where it must be: after a failure, and when threads are stuck.
type jvm struct {
	process  *remote
	versions map[string]string
	progress io.Writer
}

// redisson is the JVM of the contender of this name.
var redisson jvm

// warmUps are the loads that a new JVM runs before it is measured, each for warmUpWindows windows, at most for
// warmUpMost. The compiler is done with what they use by then.
var warmUps = []mode{{family: "own", goroutines: 64, clients: 1}, {family: "one", goroutines: 64, clients: 4},
	mode{kind: semaphore}.with(16, 1), mode{kind: readWrite, reads: 9}.with(16, 1)}

const (
	warmUpWindows = 5
	warmUpMost    = 8 * time.Second
)

// buildMost is how long Maven may take, downloads included.
const buildMost = 5 * time.Minute

// prepare builds the program and starts it. Its error says nothing about the machine: it is for the report. What Maven
// says goes to the progress.
func (j *jvm) prepare(ctx context.Context, r round, progress io.Writer) (map[string]string, error) {
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("there is no %s on the PATH; it needs a JDK (17 or later) and Maven", program)
		}
	}
	fmt.Fprintln(progress, "redisson: building with Maven, then warming up the JVM")
	building, cancel := context.WithTimeout(ctx, buildMost)
	defer cancel()
	build := exec.CommandContext(building, "mvn", "-q", "-B", "package")
	build.Dir, build.WaitDelay = "redisson", abandon
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(progress, "mvn -q -B package in bench/redisson: %v\n%s\n", err, bytes.TrimSpace(out))
		return nil, errors.New("Maven could not build it; `mvn -B package` in bench/redisson tells why")
	}
	j.progress = progress
	if err := j.start(ctx, r); err != nil {
		fmt.Fprintln(progress, err)
		return nil, errors.New("the JVM did not start or did not get through its warm-up")
	}
	return j.versions, nil
}

// start starts the JVM and warms it up.
func (j *jvm) start(ctx context.Context, r round) error {
	classes := filepath.Join("redisson", "target", "bench.jar") + string(filepath.ListSeparator) +
		filepath.Join("redisson", "target", "dependency", "*")
	process, err := startRemote("the JVM", exec.Command("java", "-cp", classes, "Main"))
	if err != nil {
		return err
	}
	j.process = process
	hello, err := process.ask(ctx, 0, "hello", nil)
	if err != nil {
		j.stop()
		return err
	}
	j.versions = maps.Clone(hello.Versions)
	r.timing.warm, r.timing.window = 0, min(warmUpWindows*r.timing.window, warmUpMost)
	for _, r.mode = range warmUps {
		switch res, err := j.measure(ctx, r); {
		case err != nil:
			return err
		case res.Stuck > 0:
			return errors.New("the JVM hung in its warm-up")
		}
		if err := r.rdb.FlushAll(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the JVM, if there is one.
func (j *jvm) stop() {
	if j.process != nil {
		j.process.stop()
		j.process = nil
	}
}

// run is the contender's. A JVM that fails spoils this round alone.
func (j *jvm) run(ctx context.Context, r round) (result, error) {
	var err error
	if j.process == nil {
		err = j.start(ctx, r)
	}
	var res result
	if err == nil {
		res, err = j.measure(ctx, r)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(j.progress, err)
		return result{Seconds: r.timing.window.Seconds(), Errors: 1, FirstError: "the JVM failed in the round"}, nil
	}
	return res, err
}

// measure lets the JVM put the load of the round on. Without an error the JVM is ready for the next one, or gone.
func (j *jvm) measure(ctx context.Context, r round) (res result, err error) {
	defer func() {
		if err != nil || res.Stuck > 0 {
			j.stop()
		}
	}()
	args := url.Values{
		"kind": {r.mode.kind}, "room": {strconv.Itoa(int(r.mode.room()))}, "reads": {strconv.Itoa(r.mode.reads)}, "lone": {strconv.FormatBool(r.mode.lone)},
		"family": {r.mode.family}, "goroutines": {strconv.Itoa(r.mode.goroutines)}, "clients": {strconv.Itoa(r.mode.clients)},
		"inside": {r.mode.inside}, "hot": {strconv.Itoa(hotKeys)}, "keys": {strconv.Itoa(r.mode.keyCount())},
		"pause_ns": {strconv.FormatInt(int64(r.mode.pause()), 10)}, "small": {strconv.FormatBool(r.mode.callers > 0)},
		"prefix": {r.prefix()}, "address": {r.addr}, "direct": {r.rdb.Options().Addr},
	}
	if _, err := j.process.ask(ctx, 0, "start", args); err != nil {
		return result{}, err
	}
	var at site = j.process
	if r.mode.slow {
		at = withLink{j.process}
	}
	if res, err = measureAt(ctx, r, at); err != nil || res.Stuck > 0 {
		return res, err
	}
	_, err = j.process.ask(ctx, abandon, "close", nil)
	return res, err
}

// withLink is a site in another process whose link to the server is in this one: that counts, as it does for contenders
// in this process.
type withLink struct{ site }

func (w withLink) enter(ctx context.Context, phase int32) (usage, error) {
	u, err := w.site.enter(ctx, phase)
	if err != nil {
		return u, err
	}
	own, err := usageHere()
	return usage{At: u.At, CPU: u.CPU + own.CPU, Allocs: u.Allocs, AllocBytes: u.AllocBytes}, err
}
