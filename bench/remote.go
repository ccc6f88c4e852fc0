package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A remote is a process that puts load on for this one: the JVM. Another is the host of a server, which has commands of its
// own: see hosted. It is asked by a line, a command and its arguments in the form of a URL's query, and answers each with a line
// of JSON:
//
//	hello    versions
//	start    usage; the load runs, and warms up
//	measure  usage; the window begins
//	end      usage; the window is over, and goroutines that wait get their turn
//	drain    tally
//	close    nothing; the clients are closed
//
// It ends when its standard input does.
type remote struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan answer // closed when the process has ended
	output  *tail       // what it says on standard error
}

// An answer is what a remote says to a command.
type answer struct {
	Error    string            `json:"error,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
	Usage    usage             `json:"usage,omitzero"`
	Tally    *tally            `json:"tally,omitempty"`
	Address  string            `json:"address,omitempty"` // of a server
}

// patience is how long a remote may take for an answer, beside what the command itself takes.
const patience = 30 * time.Second

// phaseWord is the command that begins a phase.
var phaseWord = map[int32]string{measuring: "measure", ending: "end"}

func startRemote(name string, cmd *exec.Cmd) (*remote, error) {
	r := &remote{name: name, cmd: cmd, answers: make(chan answer, 1), output: &tail{limit: 4096}}
	cmd.Stderr = r.output
	var err error
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.answers)
		lines := json.NewDecoder(stdout)
		for {
			var a answer
			if lines.Decode(&a) != nil {
				break
			}
			r.answers <- a
		}
		_ = cmd.Process.Kill() // where it says something else than answers
		_ = cmd.Wait()         // for all that it said on standard error
	}()
	return r, nil
}

// ask sends a command and returns the answer to it. After an error the remote is good for nothing but stop.
func (r *remote) ask(ctx context.Context, within time.Duration, command string, args url.Values) (answer, error) {
	if _, err := fmt.Fprintf(r.stdin, "%s %s\n", command, args.Encode()); err != nil {
		return answer{}, r.failed(command, err)
	}
	timer := time.NewTimer(within + patience)
	defer timer.Stop()
	select {
	case a, ok := <-r.answers:
		switch {
		case !ok:
			return answer{}, r.failed(command, errors.New("it ended"))
		case a.Error != "":
			return answer{}, r.failed(command, errors.New(a.Error))
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-timer.C:
		return answer{}, r.failed(command, fmt.Errorf("no answer in %v", within+patience))
	}
}

func (r *remote) failed(command string, err error) error {
	return fmt.Errorf("%s, at %q: %w%s", r.name, command, err, r.output)
}

func (r *remote) enter(ctx context.Context, phase int32) (usage, error) {
	a, err := r.ask(ctx, 0, phaseWord[phase], nil)
	return a.Usage, err
}

func (r *remote) drain(ctx context.Context, grace time.Duration) (tally, error) {
	a, err := r.ask(ctx, grace+abandon, "drain", url.Values{"grace_ms": {millis(grace)}, "abandon_ms": {millis(abandon)}})
	if err == nil && a.Tally == nil {
		err = r.failed("drain", errors.New("no tally came"))
	}
	if err != nil {
		return tally{}, err
	}
	return *a.Tally, nil
}

// stop ends the process and waits for its end.
func (r *remote) stop() {
	_ = r.stdin.Close()
	_ = r.cmd.Process.Kill()
	for range r.answers { // an answer that nobody waits for any more
	}
}

// work lets do answer commands until there are no more; see remote.
func work(ctx context.Context, in io.Reader, out io.Writer, do func(ctx context.Context, command string, args url.Values) (answer, error)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		command, query, _ := strings.Cut(lines.Text(), " ")
		args, err := url.ParseQuery(query)
		if err != nil {
			return err
		}
		a, err := do(ctx, command, args)
		if err != nil {
			a.Error = err.Error()
		}
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// A tail keeps the end of what is written to it.
type tail struct {
	limit int
	mu    sync.Mutex
	last  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-t.limit):]
	return len(p), nil
}

// String is empty, or begins with a word on what it is.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last) == 0 {
		return ""
	}
	return "; it said:\n" + string(bytes.TrimSpace(t.last))
}
