package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
)

func newTop(at *connection) *cobra.Command {
	every, longHold := duration(time.Second), duration(defaultLongHold)
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the locks, and who holds them",
		Long: `top shows what "fencelock ls" lists, again every second. What is stuck comes first: a lock that somebody waits for, and that has been
held or waited for longer than --long-hold, has no lease, or whose holder is not heard of any more, or waits in a circle of clients. Neither age nor standbys count of
a hold that is meant to last, as that of a leader or of "fencelock run --lasting". Keys: a, t, w, n sort by age, TTL, waiters, name; / filters by a part of
the name, the holder or its process; Enter shows one lock; f frees the lock of which the name is then typed; Esc goes back; q ends.
A semaphore is one row, and Enter shows who has which slot.

Without a terminal it prints the list once.`,
		Example: "  fencelock top\n  fencelock top -d 5\n  fencelock top --once",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if time.Duration(every) < 100*time.Millisecond {
				return usage("-d %v: use 0.1 or more", time.Duration(every))
			}
			return at.with(func(v *viewer) error {
				v.longHold = time.Duration(longHold)
				s := &screen{v: v, ctx: cmd.Context(), every: time.Duration(every), where: at.shown(), by: "age"}
				if once || !isTerminal(os.Stdout) || !isTerminal(os.Stdin) {
					return s.once(cmd.OutOrStdout())
				}
				return s.run()
			})
		},
	}
	cmd.Flags().VarP(&every, "delay", "d", "time between two looks")
	cmd.Flags().Var(&longHold, "long-hold", "a hold that others wait for is stuck when it is so old")
	cmd.Flags().BoolVar(&once, "once", false, "print the list once, and end")
	return cmd
}

// once prints the list.
func (s *screen) once(w io.Writer) error {
	m := s.look("")().(lookMsg)
	if m.err != nil {
		return m.err
	}
	s.take(m)
	for _, line := range s.head() {
		fmt.Fprintln(w, line)
	}
	lines := [][]string{topColumns}
	for _, r := range s.shown {
		cells := topCells(&r)
		cells[1] = plain.Brief(cells[1], maxName)
		lines = append(lines, cells)
	}
	return cmp.Or(printTable(w, lines), s.jury.exit())
}

func (s *screen) run() error {
	s.list = table.New(table.WithFocused(true), table.WithStyles(table.Styles{
		Header: lipgloss.NewStyle().Bold(true).PaddingRight(1), Cell: lipgloss.NewStyle().PaddingRight(1), Selected: lipgloss.NewStyle().Reverse(true),
	}))
	s.input = textinput.New()
	options := []tea.ProgramOption{tea.WithContext(s.ctx)}
	if os.Getenv("NO_COLOR") != "" {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	_, err := tea.NewProgram(s, options...).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}
