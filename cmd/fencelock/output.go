package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// format is how a list is printed: "" is the table, wide has more columns, name the names alone.
type format string

func (f *format) Set(text string) error {
	switch text {
	case "table":
		text = ""
	case "", "wide", "json", "name":
	default:
		return fmt.Errorf("use table, wide, json or name")
	}
	*f = format(text)
	return nil
}

func (f *format) String() string { return cmp.Or(string(*f), "table") }
func (*format) Type() string     { return "format" }

func (f *format) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "table, wide, json, or name")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "wide", "json", "name"}, cobra.ShellCompDirectiveNoFileComp))
}

// printTable prints rows in columns.
func printTable(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plain.Line(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// printJSON prints a value as people and programs read it.
func printJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(plain.JSON(text.Bytes()))
	return err
}

// printName prints a name on a line of its own, for a person or for a program that reads lines.
func printName(w io.Writer, name string) error {
	_, err := fmt.Fprintln(w, plain.Name(name))
	return err
}

const unknown = "-"

// span is a time as tables have it, in two units at most; "-" for one that is not known.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch s := d.Round(time.Second); {
	case d <= 0:
		return unknown
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case s < time.Minute:
		return fmt.Sprintf("%ds", s/time.Second)
	case s < time.Hour:
		return fmt.Sprintf("%dm%02ds", s/time.Minute, s%time.Minute/time.Second)
	case s < 2*day:
		return fmt.Sprintf("%dh%02dm", s/time.Hour, s%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", s/day, s%day/time.Hour)
	}
}

func number(n int64) string {
	if n == 0 {
		return unknown
	}
	return strconv.FormatInt(n, 10)
}

// process is a client by its process, or its id where it says nothing of itself.
func process(by *inspect.Client, id string) string {
	if by == nil {
		return plain.Name(id)
	}
	return plain.Name(strings.TrimSuffix(fmt.Sprintf("%s:%d %s", by.Host, by.PID, by.Name), " ")) + heard(by)
}

// heard says when a client was heard of last that should have been heard of since; otherwise nothing.
func heard(by *inspect.Client) string {
	if !by.Quiet() {
		return ""
	}
	return ", last heard of " + span(by.Silent) + " ago"
}
