// Gotest is go test for a gate that is red only where the code is wrong: a failed test that package realtime marks is run again, alone, twice
// at most. Any other failure stands: a test without the mark, a data race, a panic, a goroutine that remains, a judge of exclusion or of tokens.
//
//	gotest -race -timeout=30m ./rlock ./...    flags are written as -name=value
//
// It prints what go test prints, and after 15 s of silence a line of what is under way; then what failed, in short, and what was run again. The file that
// GOTEST_REPORT names gets the last of it too. It leaves go vet to make lint.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tries is how often a marked test is run again.
const tries = 2

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "gotest: say what to test, as for go test: gotest -race ./...")
		os.Exit(2)
	}
	report, err := run(os.Args[1:], goCommand, os.Stdout)
	fmt.Print(report)
	if file := os.Getenv("GOTEST_REPORT"); file != "" && report != "" {
		if err := appendTo(file, report); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(2)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// goCommand runs go with these arguments, and writes its output.
func goCommand(args []string, out io.Writer) error {
	cmd := exec.Command("go", args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// run runs the tests, and again what may be run again. report says what failed, and what was run again.
func run(args []string, command func([]string, io.Writer) error, out io.Writer) (report string, err error) {
	test := func(args []string, out io.Writer) ([]pkg, error) { return test(args, command, out) }
	failed, err := test(args, out)
	if err == nil {
		return "", nil
	}
	var exit interface{ ExitCode() int }
	if len(failed) == 0 || !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Sprintf("FAILED go test %s: %v\n", strings.Join(args, " "), err), err // go test itself was ended, or has said why: a wrong flag
	}
	var lines strings.Builder
	left := 0
	for _, p := range failed {
		for _, f := range p.failures() {
			n, why := again(args, p, f, test, out)
			if n > 0 {
				fmt.Fprintf(&lines, "RUN AGAIN %s %s: passed at try %d (%s)\n", p.name, f.test, n+1, f.again)
				continue
			}
			left++
			fmt.Fprintf(&lines, "FAILED %s %s%s\n%s", p.name, f.test, why, short(f.lines))
		}
	}
	if left > 0 {
		return lines.String(), fmt.Errorf("%d tests, or packages, failed: %w", left, err)
	}
	return lines.String(), nil
}

func packagesOf(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
}

// test runs go test, and returns the packages that failed.
func test(args []string, command func([]string, io.Writer) error, out io.Writer) (failed []pkg, err error) {
	var list strings.Builder
	if err := command(append([]string{"list", "-f={{.ImportPath}} {{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}"}, packagesOf(args)...), &list); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, list.String())
	}
	var p parser
	tested := map[string]string{}
	for line := range strings.Lines(list.String()) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		p.packages = append(p.packages, name)
		if filepath.IsAbs(folder) {
			tested[folder] = name
		}
	}
	progress, err := newProgress(tested, out)
	if err != nil {
		return nil, err
	}
	defer progress.close()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(progress, line)
			p.line(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return
			}
		}
	}()
	err = command(append([]string{"test", "-vet=off", progress.flag()}, args...), w)
	_ = w.Close()
	<-done
	return p.failed, err
}

// again runs a failed test again, and returns which of these tries passed, 0 for none, and why not.
func again(args []string, p pkg, f failure, test func([]string, io.Writer) ([]pkg, error), out io.Writer) (passed int, why string) {
	if f.again == "" {
		return 0, ""
	}
	alone := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-run") || strings.HasPrefix(arg, "-skip") || strings.HasPrefix(arg, "-p=")
	})
	alone = append(alone, "-run=^"+f.test+"$", p.name)
	for try := range tries {
		fmt.Fprintf(out, "== %s %s again, alone, as real time may have made it fail: %s\n", p.name, f.test, f.again)
		var text strings.Builder
		failed, err := test(alone, io.MultiWriter(out, &text))
		switch {
		case err == nil && strings.Contains(text.String(), "[no tests to run]"):
			return 0, ", and there is no such test to be run alone"
		case err == nil:
			return try + 1, ""
		case len(failed) == 0 || slices.ContainsFunc(failed[0].failures(), func(f failure) bool { return f.again == "" }):
			return 0, ", and when run again in a way that is not by chance"
		}
	}
	return 0, fmt.Sprintf(", and %d times more when run alone", tries)
}

// short is the beginning of what a failed test has said.
func short(lines []string) string {
	const most, wide = 24, 300
	var b strings.Builder
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(&b, "    ... and %d lines more, above\n", len(lines)-most)
			break
		}
		fmt.Fprintf(&b, "    %s\n", line[:min(len(line), wide)])
	}
	return b.String()
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	return err
}
