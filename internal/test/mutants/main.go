// Mutants runs the tests against code that is broken on purpose, one break at a time, and fails where no test notices.
// Each break is named by the invariant of the design, or the rule of the protocol, that it violates.
//
//	go run ./internal/test/mutants              all of them
//	go run ./internal/test/mutants -only P1     those whose name matches
//	go run ./internal/test/mutants -last 20     those of the files that the last 20 commits touch
//	go run ./internal/test/mutants -list        what there is
//	go run ./internal/test/mutants -times 10    ten times each: a test that notices only now and then shows
//
// A break counts as noticed by the first of three runs that fails, and the number of the run is printed where it was not
// the first; with -times each run must notice it. Where only the timeout of the tests notices, as a break makes somebody wait for ever, or as the
// machine is slow, that is printed too.
//
// The working tree is not touched: what is broken reaches the compiler through go test's -overlay.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/test/weave"
)

// A mutant is one break and the tests that must notice it.
type mutant struct {
	name     string // rule: what is broken
	file     string
	old, new string // old occurs once in file
	pkg      string
	run      string // the tests' names, as for go test -run
}

func main() {
	only := flag.String("only", "", "run the mutants whose `name` matches this regular expression")
	last := flag.Int("last", 0, "run the mutants of the files that so many `commits` touch, of the packages whose tests they touch, and of what is not committed; 0: all")
	list := flag.Bool("list", false, "list the mutants and do nothing")
	jobs := flag.Int("jobs", 6, "how many run at once: tests wait most of the time")
	times := flag.Int("times", 0, "how often the tests run against each break, which they must notice each time; 0: until they notice it, three times at most")
	flag.Parse()
	if *times < 0 || *last < 0 {
		fmt.Fprintln(os.Stderr, "mutants: -times and -last are 0 or more")
		os.Exit(2)
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -only:", err)
		os.Exit(2)
	}
	touched, err := touchedBy(*last)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -last:", err)
		os.Exit(2)
	}
	var chosen []mutant
	for _, m := range mutants {
		if match.MatchString(m.name) && (*last == 0 || touched[m.file] || touched[path.Clean(m.pkg)]) {
			chosen = append(chosen, m)
		}
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-70s %s\n", m.name, m.run)
		}
		return
	}
	survivors, err := runAll(chosen, *jobs, *times)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if len(survivors) > 0 {
		fmt.Printf("%d of %d breaks were NOT noticed:\n%s\n", len(survivors), len(chosen), strings.Join(survivors, "\n"))
		os.Exit(1)
	}
	fmt.Printf("all %d breaks were noticed\n", len(chosen))
}

// touchedBy returns the files that so many commits touch, and what is not committed, and the packages of whose tests they touch some.
func touchedBy(commits int) (map[string]bool, error) {
	files := map[string]bool{}
	if commits == 0 {
		return files, nil
	}
	for _, args := range [][]string{{"log", "-n", fmt.Sprint(commits), "--format=", "--name-only"}, {"diff", "HEAD", "--name-only"}} {
		out, err := exec.Command("git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		for line := range strings.Lines(string(out)) {
			file := strings.TrimSpace(line)
			files[file] = true
			if strings.HasSuffix(file, "_test.go") {
				files[path.Dir(file)] = true
			}
		}
	}
	return files, nil
}

// runAll returns, a line each, the mutants that were not noticed each time.
func runAll(chosen []mutant, jobs, times int) (survivors []string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var breaks []weave.Break
	for _, m := range chosen {
		text, err := m.text()
		if err != nil {
			return nil, err
		}
		breaks = append(breaks, weave.Break{Name: m.name, Files: map[string]string{m.file: text}})
	}
	all, err := weave.Weave(".", breaks)
	if err != nil {
		return nil, err
	}
	tests := map[string]string{} // of each package, with all breaks that could be woven
	for _, m := range chosen {
		if _, woven := all.Numbers[m.name]; woven && tests[m.pkg] == "" {
			began := time.Now()
			if tests[m.pkg], err = compile(dir, m.pkg, all.Files); err != nil {
				return nil, err
			}
			fmt.Printf("compiled the tests of %s in %.1fs\n", m.pkg, time.Since(began).Seconds())
		}
	}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		room = make(chan struct{}, jobs)
		done int
	)
	for pkg, binary := range tests {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			err := passUnbroken(pkg, binary, chosen)
			if err != nil { // of these tests too some wait in real time
				err = passUnbroken(pkg, binary, chosen)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				survivors = append(survivors, fmt.Sprintf("%s: nothing is broken, and the tests fail: %v", pkg, err))
			}
		})
	}
	for _, m := range chosen {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			began := time.Now()
			passed, late, err := m.try(all.Numbers[m.name], tests[m.pkg], times)
			mu.Lock()
			defer mu.Unlock()
			done++
			verdict := "noticed"
			switch {
			case err == nil && late:
				verdict = "noticed by the timeout of the tests alone"
			case err == nil && passed > 0:
				verdict = fmt.Sprintf("noticed, but only by run %d", passed+1)
			case err != nil:
				verdict = "NOT NOTICED: " + err.Error()
				survivors = append(survivors, m.name+": "+verdict)
			}
			fmt.Printf("[%2d/%d] %5.1fs  %s: %s\n", done, len(chosen), time.Since(began).Seconds(), m.name, verdict)
		})
	}
	wg.Wait()
	return survivors, nil
}

// passUnbroken tells whether the tests that are to notice the breaks pass where none is switched on.
func passUnbroken(pkg, binary string, chosen []mutant) error {
	var names []string
	for _, m := range chosen {
		if m.pkg == pkg {
			names = append(names, m.run)
		}
	}
	run := exec.Command(binary, "-test.timeout=10m", "-test.failfast", "-test.run="+strings.Join(names, "|"))
	run.Dir, run.Env = pkg, append(os.Environ(), "REDIS_VIRTUAL=1", weave.Switch+"=0")
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// patience is how many runs may pass before a break counts as not noticed: some tests need a schedule that most runs have,
// but not all.
const patience = 3

// text is the file's text with the break.
func (m mutant) text() (string, error) {
	whole, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(whole), m.old); n != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s: bring the mutant up to date", m.name, m.old, n, m.file)
	}
	return strings.Replace(string(whole), m.old, m.new, 1), nil
}

// alone compiles the tests with this break only, in this folder.
func (m mutant) alone(dir string) (tests string, err error) {
	text, err := m.text()
	if err != nil {
		return "", err
	}
	return compile(dir, m.pkg, map[string]string{m.file: text})
}

// compile makes the tests of the package in this folder, with these texts in place of files, and returns their path.
func compile(dir, pkg string, files map[string]string) (string, error) {
	replace := map[string]string{}
	for file, text := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	tests := filepath.Join(dir, strings.NewReplacer("/", "-", ".", "").Replace(pkg)+".test")
	// Without inlining, and without vet, it takes half of the time.
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=github.com/fencelock/fencelock/...=-l", "-ldflags=-s -w", "-overlay="+list, "-o="+tests, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not compile: %w\n%s", pkg, err, out)
	}
	return tests, nil
}

// try returns nil if the tests notice the break, each of so many times or, for 0, soon; and how many runs passed, and whether it was their timeout
// that noticed. number is the break's in these tests; 0: they have not got it.
func (m mutant) try(number int, tests string, times int) (passed int, late bool, err error) {
	if number == 0 {
		dir, err := os.MkdirTemp("", "mutant")
		if err != nil {
			return 0, false, err
		}
		defer os.RemoveAll(dir)
		if tests, err = m.alone(dir); err != nil {
			return 0, false, err
		}
	}
	most := times
	if times == 0 {
		most = patience
	}
	for range most {
		run := exec.Command(tests, "-test.timeout=20s", "-test.failfast", "-test.run="+m.run)
		run.Dir, run.Env = m.pkg, append(os.Environ(), "REDIS_VIRTUAL=1", fmt.Sprintf("%s=%d", weave.Switch, number))
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		late = strings.Contains(string(out), "panic: test timed out")
		switch {
		case err == nil && strings.Contains(string(out), "no tests to run"):
			return passed, late, fmt.Errorf("no test matches %s", m.run)
		case err == nil:
			passed++
		case !errors.As(err, &exit):
			return passed, late, err
		case times == 0:
			return passed, late, nil
		}
	}
	if passed > 0 {
		return passed, late, fmt.Errorf("all tests passed, %d times of %d", passed, most)
	}
	return 0, late, nil
}
