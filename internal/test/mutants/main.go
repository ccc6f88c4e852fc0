// Mutants runs the tests against code that is broken on purpose, one break of package breaks at a time, and fails where no test notices.
//
//	go run ./internal/test/mutants              all of them
//	go run ./internal/test/mutants -only P1     those whose name matches
//	go run ./internal/test/mutants -list        what there is
//	go run ./internal/test/mutants -rules       the rules of docs/protocol.md, each with its tests and how many breaks it has
//	go run ./internal/test/mutants -times 10    ten times each: a test that notices only now and then shows
//
// A break is noticed by the first of three runs that fails, and the number of the run is printed where it was not the first; with -times each run
// must notice it. A run that takes longer than a minute is no notice: the break is printed as timed out, and the program fails.
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
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/test/breaks"
	"github.com/fencelock/fencelock/internal/test/weave"
)

func main() {
	only := flag.String("only", "", "run the breaks whose `name` matches this regular expression")
	list := flag.Bool("list", false, "list the breaks and do nothing")
	ofRules := flag.Bool("rules", false, "print each rule of docs/protocol.md with its tests and how many breaks it has, and do nothing else")
	jobs := flag.Int("jobs", 6, "how many run at once: tests wait most of the time")
	times := flag.Int("times", 0, "how often the tests run against each break, which they must notice each time; 0: until they notice it, three times at most")
	flag.Parse()
	if *times < 0 || *jobs < 1 {
		fmt.Fprintln(os.Stderr, "mutants: -times is 0 or more, and -jobs 1 or more")
		os.Exit(2)
	}
	if _, err := os.Stat("internal/test/breaks"); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: run it in the folder of the root module")
		os.Exit(2)
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: -only:", err)
		os.Exit(2)
	}
	if *ofRules {
		table, err := rulesTable(".")
		if err != nil {
			fail(err)
		}
		fmt.Print(table)
		return
	}
	var chosen []mutant
	others := 0
	for _, b := range breaks.All {
		if !match.MatchString(b.Name) {
			continue
		}
		if b.Pkg == "" {
			others++
			continue
		}
		files, err := b.Files(".")
		if err != nil {
			fail(fmt.Errorf("%s: %w", b.Name, err))
		}
		chosen = append(chosen, mutant{b, files})
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-90s %-22s %s\n", m.Name, m.Pkg, m.Run)
		}
		return
	}
	if len(chosen)+others == 0 {
		fail(fmt.Errorf("no break's name matches %q; -list shows them", *only))
	}
	if err := findServer(); err != nil {
		fail(err)
	}
	missed, err := runAll(chosen, *jobs, *times)
	if err != nil {
		fail(err)
	}
	if len(missed) > 0 {
		fmt.Printf("%d of %d breaks were NOT noticed:\n%s\n", len(missed), len(chosen), strings.Join(missed, "\n"))
		os.Exit(1)
	}
	fmt.Printf("all %d breaks were noticed", len(chosen))
	if others > 0 {
		fmt.Printf("; for %d more see verify and verify/sim, -broken", others)
	}
	fmt.Println()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(1)
}

// findServer has the tests use the real server that make test uses.
func findServer() error {
	out, err := exec.Command(".ci/redis-server").Output()
	if err != nil {
		return fmt.Errorf(".ci/redis-server: %w", err)
	}
	return os.Setenv("REDIS_SERVER", strings.TrimSpace(string(out)))
}

// A mutant is a break and the files that it changes, whole.
type mutant struct {
	breaks.Break
	files map[string]string
}

// runAll returns, a line each, the mutants that were not noticed each time.
func runAll(chosen []mutant, jobs, times int) (missed []string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var all []weave.Break
	for _, m := range chosen {
		all = append(all, weave.Break{Name: m.Name, Files: m.files})
	}
	woven, err := weave.Weave(".", all)
	if err != nil {
		return nil, err
	}
	tests := map[string]string{} // of each package, with all breaks that could be woven
	for _, m := range chosen {
		if woven.Numbers[m.Name] > 0 && tests[m.Pkg] == "" {
			began := time.Now()
			if tests[m.Pkg], err = compile(dir, m.Pkg, woven.Files); err != nil {
				return nil, err
			}
			fmt.Printf("compiled the tests of %s in %.1fs\n", m.Pkg, time.Since(began).Seconds())
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
				missed = append(missed, fmt.Sprintf("%s: nothing is broken, and the tests fail: %v", pkg, err))
			}
		})
	}
	for _, m := range chosen {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			began := time.Now()
			passed, err := m.try(woven.Numbers[m.Name], tests[m.Pkg], times)
			mu.Lock()
			defer mu.Unlock()
			done++
			verdict := "noticed"
			switch {
			case err != nil:
				verdict = err.Error()
				missed = append(missed, m.Name+": "+verdict)
			case passed > 0:
				verdict = fmt.Sprintf("noticed, but only by run %d", passed+1)
			}
			fmt.Printf("[%2d/%d] %5.1fs  %s: %s\n", done, len(chosen), time.Since(began).Seconds(), m.Name, verdict)
		})
	}
	wg.Wait()
	return missed, nil
}

// passUnbroken tells whether the tests that are to notice the breaks pass where none is switched on.
func passUnbroken(pkg, binary string, chosen []mutant) error {
	var names []string
	for _, m := range chosen {
		if m.Pkg == pkg {
			names = append(names, m.Run)
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
		return "", fmt.Errorf("%s does not compile with its breaks (-only finds out which of them is wrong): %w\n%s", pkg, err, out)
	}
	return tests, nil
}

// try returns nil if the tests notice the break, each of so many times or, for 0, soon; and how many runs passed. number is the break's in these
// tests; 0: they have not got it.
func (m mutant) try(number int, tests string, times int) (passed int, err error) {
	if number == 0 {
		dir, err := os.MkdirTemp("", "mutant")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		if tests, err = compile(dir, m.Pkg, m.files); err != nil {
			return 0, err
		}
	}
	most := times
	if times == 0 {
		most = patience
	}
	for range most {
		run := exec.Command(tests, "-test.timeout=1m", "-test.failfast", "-test.run="+m.Run)
		run.Dir, run.Env = m.Pkg, append(os.Environ(), "REDIS_VIRTUAL=1", fmt.Sprintf("%s=%d", weave.Switch, number))
		out, err := run.CombinedOutput()
		text := string(out)
		var exit *exec.ExitError
		switch {
		case err == nil && strings.Contains(text, "no tests to run"):
			return passed, fmt.Errorf("no test matches %s", m.Run)
		case err == nil:
			passed++
		case !errors.As(err, &exit):
			return passed, err
		case strings.Contains(text, "Error compiling script"):
			return passed, fmt.Errorf("NOT NOTICED: the broken script does not compile:\n%s", text)
		case strings.Contains(text, "panic: test timed out"):
			return passed, errors.New("TIMED OUT: as the break makes a test wait for ever, or as the machine was slow")
		case !strings.Contains(text, m.Says):
			return passed, fmt.Errorf("NOT NOTICED: the tests fail, and do not say %q:\n%s", m.Says, text)
		case times == 0:
			return passed, nil
		}
	}
	if passed > 0 {
		return passed, fmt.Errorf("NOT NOTICED: all tests passed, %d times of %d", passed, most)
	}
	return 0, nil
}
