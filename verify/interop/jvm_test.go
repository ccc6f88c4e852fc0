package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// jvm is the program in the directory redisson: one process for all tests.
type jvm struct {
	cmd    *exec.Cmd
	stderr syncBuffer
	gone   chan struct{} // closed when nothing more is answered

	mu      sync.Mutex // guards the rest
	in      io.WriteCloser
	last    int
	pending map[int]chan<- answer
}

// answer is what the program says to a command.
type answer struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
	at    time.Time       // when it came
}

// errJava is an exception.
type errJava string

func (e errJava) Error() string { return "java: " + string(e) }

// redisson starts the JVM when the first test wants it, and running is what it has started.
var (
	redisson = sync.OnceValues(startJVM)
	running  *jvm
)

// startJVM does not build: a test run that downloads and compiles hides how long the tests take.
func startJVM() (*jvm, error) {
	if err := checkJar("redisson/target/interop.jar"); err != nil {
		return nil, err
	}
	j := &jvm{gone: make(chan struct{}), pending: make(map[int]chan<- answer)}
	classes := strings.Join([]string{"redisson/target/interop.jar", "redisson/target/dependency/*"}, string(filepath.ListSeparator))
	j.cmd = exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, "Main")
	j.cmd.Stderr = &j.stderr
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("java did not start; .ci/interop installs what is missing: %w", err)
	}
	running = j
	go j.read(out)
	return j, nil
}

// checkJar requires that the jar was built from the sources that are there.
func checkJar(jar string) error {
	const build = ": .ci/interop builds it"
	built, err := os.Stat(jar)
	if err != nil {
		return fmt.Errorf("the Java side is not built%s: %w", build, err)
	}
	return filepath.WalkDir("redisson/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := d.Info()
		if err == nil && source.ModTime().After(built.ModTime()) {
			err = fmt.Errorf("%s is newer than the Java side as it was built%s", path, build)
		}
		return err
	})
}

// read takes the answers until the program ends.
func (j *jvm) read(out io.Reader) {
	defer close(j.gone)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			fmt.Fprintf(&j.stderr, "no answer: %q: %v\n", lines.Text(), err)
			return
		}
		a.at = time.Now()
		j.mu.Lock()
		ch := j.pending[a.ID]
		delete(j.pending, a.ID)
		j.mu.Unlock()
		ch <- a
	}
}

// call gives a command to a thread. The answer comes on the channel, and nothing does once the program has ended.
func (j *jvm) call(thread, command string, args url.Values) <-chan answer {
	ch := make(chan answer, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.pending[j.last] = ch
	if _, err := fmt.Fprintf(j.in, "%d %s %s %s\n", j.last, thread, command, args.Encode()); err != nil {
		delete(j.pending, j.last)
		ch <- answer{Error: err.Error()}
	}
	return ch
}

// result waits for an answer.
func (j *jvm) result(ch <-chan answer) (answer, error) {
	select {
	case a := <-ch:
		return a, a.err()
	case <-time.After(patience):
		return answer{}, fmt.Errorf("the JVM has not answered within %v", patience)
	case <-j.gone:
	}
	select {
	case a := <-ch: // its last words
		return a, a.err()
	default:
		return answer{}, fmt.Errorf("the JVM has ended: %s", j.stderr.String())
	}
}

func (a answer) err() error {
	if a.Error != "" {
		return errJava(a.Error)
	}
	return nil
}

// stop ends the program with its standard input.
func (j *jvm) stop() error {
	j.mu.Lock()
	_ = j.in.Close()
	j.mu.Unlock()
	select {
	case <-j.gone:
		return j.cmd.Wait()
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("the JVM did not end within %v", patience), j.cmd.Process.Kill())
	}
}

// syncBuffer may be read while the process writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
