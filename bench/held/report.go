package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A report is what was measured.
type report struct {
	settings
	progress io.Writer
	figures  []figure
	goals    []goal
}

// A figure is one measured quantity under a heading.
type figure struct{ heading, what, measured string }

// A goal is one row of what is to be reached, and the form of held.json.
type goal struct {
	What     string `json:"what"`
	AtLeast  string `json:"at_least"`
	Aim      string `json:"aim"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"` // why the aim is missed
}

func (r *report) say(format string, args ...any) {
	fmt.Fprintf(r.progress, format+"\n", args...)
}

// figure notes a quantity: the arguments are those of what and then those of the format.
func (r *report) figure(heading, what, format string, args ...any) {
	n := strings.Count(what, "%d")
	r.figures = append(r.figures, figure{heading, fmt.Sprintf(what, args[:n]...), fmt.Sprintf(format, args[n:]...)})
}

// goal notes a row; less is better.
func (r *report) goal(what string, atLeast, aim, measured float64, show func(float64) string) {
	g := goal{What: what, AtLeast: show(atLeast), Aim: show(aim), Measured: show(measured)}
	switch {
	case measured <= aim:
		g.Verdict = "aim"
	case measured <= atLeast:
		g.Verdict = "at least"
	default:
		g.Verdict = "missed"
	}
	if g.Verdict != "aim" {
		g.Reason = reasonFor(what)
	}
	r.goals = append(r.goals, g)
	r.say("%s: %s, %s", what, g.Measured, g.Verdict)
}

// reasons are why an aim may be missed, by a part of what is measured.
var reasons = []struct{ of, why string }{
	{"share of a Redis core", "three commands a hold inside the script; between batches the server's thread sleeps and wakes with cold caches"},
	{"share of a client core", "between batches the client's threads sleep and wake; a batch is one write and one read of the connection"},
	{"memory a held lock", "a hold has contexts that end by themselves, an entry in the client's books and its names"},
	{"memory a waiter", "the caller's stack doubles from 2 to 4 KiB; the rest is its timer, its place in line and the hold it is to become"},
}

func reasonFor(what string) string {
	for _, r := range reasons {
		if strings.Contains(what, r.of) {
			return r.why
		}
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }
func size(n float64) string        { return fmt.Sprintf("%.0f B", n) }

func (p pings) String() string {
	r := func(q float64) time.Duration { return p.quantile(q).Round(time.Microsecond) }
	return fmt.Sprintf("%v / %v / %v; %v", r(.5), r(.99), r(1), p.worst.Round(time.Microsecond))
}

// write puts held.json and held.md into the directory.
func (r *report) write() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r.goals, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "held.json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "held.md"), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	r.say("written to %s", r.out)
	return nil
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Held locks and waiters\n\nWritten by `go run ./held` in `bench/` on %s: %s, %s/%s, %d CPUs for clients and servers together, loopback.\n"+
		"Shares of the client are those of the whole measuring process. Memory is the difference of what is alive after a\n"+
		"garbage collection.\n\n| what | at least | aim | measured | verdict | reason |\n|---|--:|--:|--:|---|---|\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, g := range r.goals {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", g.What, g.AtLeast, g.Aim, g.Measured, g.Verdict, g.Reason)
	}
	heading := ""
	for _, f := range r.figures {
		if f.heading != heading {
			heading = f.heading
			fmt.Fprintf(&b, "\n## %s\n\n| what | measured |\n|---|--:|\n", heading)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", f.what, f.measured)
	}
	return b.String()
}
