package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exit is the error of a command that ended with this code.
type exit int

func (e exit) Error() string { return fmt.Sprint("exit status ", int(e)) }
func (e exit) ExitCode() int { return int(e) }

const (
	marked = `--- FAIL: TestMarked (0.52s)
    --- FAIL: TestMarked/sub (0.50s)
        a_test.go:7: the hold was lost
            in two lines
    realtime.go:25: realtime: a lease of 100 ms
FAIL
FAIL	example.org/a	0.9s
`
	bound       = "--- FAIL: TestBound (0.52s)\n    a_test.go:7: realtime: not within 1s: it is up\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	unmarked    = "--- FAIL: TestVirtual (0.52s)\n    a_test.go:7: the next waiter slept 1s\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	race        = "WARNING: DATA RACE\n" + bound
	judge       = "--- FAIL: TestBound (0.52s)\n    a_test.go:6: Inv1: two holders\n    a_test.go:7: realtime: not within 1s: it is up\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	leak        = "PASS\nInv9: 2 goroutines remain:\nFAIL\texample.org/a\t0.9s\n"
	build       = "# example.org/a\n./a.go:7: undefined: x\nFAIL\texample.org/a [build failed]\n"
	two         = "--- FAIL: TestBound (0.52s)\n    a_test.go:7: realtime: not within 1s: it is up\n--- FAIL: TestVirtual (0.52s)\n    a_test.go:7: the next waiter slept 1s\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	wrong       = "--- FAIL: TestBound (0.52s)\n    a_test.go:6: wrong token 7\n    a_test.go:7: realtime: not within 1s: it is up\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	parent      = "--- FAIL: TestParent (0.52s)\n    a_test.go:5: its own\n    --- FAIL: TestParent/sub (0.50s)\n        a_test.go:7: realtime: not within 1s: it is up\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	several     = "--- FAIL: TestMany (0.52s)\n    --- FAIL: TestMany/a (0.50s)\n        a_test.go:7: realtime: not within 1s: it is up\n    --- FAIL: TestMany/b (0.50s)\n        a_test.go:7: realtime: not within 1s: it is up\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	killed      = "--- FAIL: TestBound (0.52s)\n    a_test.go:7: realtime: not within 1s: it is up\nsignal: killed\nFAIL\texample.org/a\t0.9s\n"
	hidden      = "--- FAIL: TestBound (0.52s)\n    a_test.go:7: realtime: not within 1s: it is up\nprogress...--- FAIL: TestVirtual (0.5s)\n    a_test.go:7: slept 1s\nFAIL\nFAIL\texample.org/a\t0.9s\n"
	inside      = "--- FAIL: TestVirtual (0.52s)\n    a_test.go:7: slept 1s\nok  \texample.org/inner\t0.1s\n" + bound
	interrupted = bound + "\n"
	none        = "testing: warning: no tests to run\nok  \texample.org/a\t0.1s [no tests to run]\n"
	ok          = "ok  \texample.org/b\t0.1s\n"
)

// What go test has printed decides what is run again, and what that prints decides the outcome.
func TestRunAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		prints []string // of each run; ok is a success
		green  bool
		report string // a part of it
	}{
		{"all passes", []string{ok}, true, ""},
		{"marked, and passes", []string{marked + ok, ok}, true, "RUN AGAIN example.org/a TestMarked: passed at try 2 (a lease of 100 ms)"},
		{"marked, and passes later", []string{bound, bound, ok}, true, "RUN AGAIN example.org/a TestBound: passed at try 3 (not within 1s: it is up)"},
		{"marked, and never passes", []string{bound, bound, bound}, false, "FAILED example.org/a TestBound, and 2 times more when run alone"},
		{"marked, and fails otherwise when alone", []string{bound, unmarked}, false, "in a way that is not by chance"},
		{"no mark", []string{unmarked + ok}, false, "a_test.go:7: the next waiter slept 1s"},
		{"a mark beside one without", []string{two, ok}, false, "FAILED example.org/a TestVirtual"},
		{"a mark behind another message", []string{wrong}, false, "wrong token 7"},
		{"a mark of a subtest alone", []string{parent}, false, "its own"},
		{"a server's output beside a mark of a subtest", []string{strings.Replace(parent, "its own", "output of the server at 127.0.0.1:7:", 1), ok}, true, "RUN AGAIN example.org/a TestParent"},
		{"several subtests", []string{several, ok}, true, "RUN AGAIN example.org/a TestMany"},
		{"the tests were killed", []string{killed}, false, "signal: killed"},
		{"a failure behind other output", []string{hidden}, false, "FAILED example.org/a TestBound"},
		{"lines of another go test", []string{inside, ok}, false, "FAILED example.org/a TestVirtual"},
		{"nothing to run alone", []string{bound, none}, false, "no such test"},
		{"go test was ended", []string{interrupted}, false, ""},
		{"a data race", []string{race}, false, "FAILED example.org/a TestBound"},
		{"a judge of exclusion", []string{judge}, false, "FAILED example.org/a TestBound"},
		{"goroutines remain", []string{ok + leak}, false, "Inv9: 2 goroutines remain"},
		{"it does not compile", []string{build}, false, "undefined: x"},
		{"go test refuses", []string{"flag provided but not defined: -x\n"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			report, err := run([]string{"-race", "-p=3", "-skip=TestX", "./..."}, func(args []string, out io.Writer) error {
				if args[0] == "list" {
					_, _ = io.WriteString(out, "example.org/a\nexample.org/b\n")
					return nil
				}
				if runs >= len(c.prints) {
					t.Fatalf("run %d, with %v", runs+1, args)
				}
				text := c.prints[runs]
				if got := strings.Join(args, " "); runs > 0 && !strings.Contains(got, " -race -run=^Test") {
					t.Errorf("alone it is run with %s", got)
				}
				runs++
				_, _ = io.WriteString(out, text)
				switch {
				case text == ok || text == none:
					return nil
				case text == interrupted:
					return exit(-1)
				}
				return exit(1)
			}, io.Discard)
			if green := err == nil; green != c.green || !strings.Contains(report, c.report) || runs != len(c.prints) {
				t.Errorf("green is %v after %d runs: %v; the report:\n%s", green, runs, err, report)
			}
		})
	}
}

// After a silence a line says which packages are under way, and how many are done.
func TestUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p, err := newProgress(map[string]string{"/a b": "github.com/fencelock/fencelock/rlock", "/c": "example.org/c", "/d": "example.org/d"}, &out)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		time.Sleep(10 * time.Second)
		_, _ = io.WriteString(p, "ok\n")
		time.Sleep(14 * time.Second)
		if err := os.WriteFile(p.notes, fmt.Appendf(nil, "%d /a b\n%d /c\n", os.Getpid(), 1<<30), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := "ok\n-- 25s: 1 of 3 packages are done; under way: rlock\n"; out.String() != want {
			t.Errorf("it prints %q, and not %q", out.String(), want)
		}
	})
}
