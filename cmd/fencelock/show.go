package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/scripts"
)

// details is a lock as show prints it.
type details struct {
	lockRow
	Keys  map[string]string `json:"keys"`
	Slot  uint16            `json:"slot"`
	Guard int64             `json:"guard"` // the largest token that package redisguard has accepted; 0 for none
}

func newShow(at *connection) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show all about one lock",
		Long:              `show prints who holds a lock, who waits and in which order, its keys in Redis, and the largest token that a guard has accepted there.`,
		Example:           "  fencelock show account:42\n  fencelock show -o json account:42",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(func(v *viewer) error {
				d, err := v.details(cmd.Context(), args[0])
				switch {
				case err != nil:
					return err
				case out == "json":
					return printJSON(cmd.OutOrStdout(), d)
				case out == "name":
					return printName(cmd.OutOrStdout(), d.Name)
				}
				return d.print(cmd.OutOrStdout())
			})
		},
	}
	out.addFlag(cmd)
	return cmd
}

func (v *viewer) details(ctx context.Context, name string) (*details, error) {
	locks, err := v.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := v.rows(ctx, locks)
	if err != nil {
		return nil, err
	}
	keys := scripts.KeysOf(name)
	d := &details{lockRow: rows[0], Slot: keys.Slot, Keys: map[string]string{
		"lock": keys.Lock, "token": keys.Token, "line": keys.Line, "channel": keys.Channel(),
	}}
	if g, err := redisguard.New(v.rdb); err == nil {
		d.Guard, _ = g.Seen(ctx, name) // 0 for a name that no guard takes, or without the right to its key
	}
	return d, nil
}

func (d *details) print(w io.Writer) error {
	rows := [][]string{{"Name", plain.Name(d.Name)}}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	switch h := d.lock.Holder; {
	case d.Other != "":
		add("State", "no lock: "+plain.Name(d.Other))
	case h == nil:
		add("State", "free")
	default:
		add("State", "held")
		add("Holder", d.field())
		if h.By != nil {
			add("Process", fmt.Sprintf("%s, process %d, program %s, name %s", plain.Name(h.By.Host), h.By.PID, plain.Name(h.By.Program), plain.Name(h.By.Name))+heard(h.By))
		}
		add("Hold count", number(int64(h.Count)))
		add("Held for", span(d.age()))
		add("Lease ends in", d.ttl())
	}
	if d.Stuck != "" {
		add("Stuck", d.Stuck)
	}
	add("Last token", number(d.Token))
	add("Guard has seen", number(d.Guard))
	add("Waiting", fmt.Sprintf("%d (%d listening)", d.Waiting, d.Listeners))
	for i, waiter := range d.lock.Line {
		line := process(waiter.By, waiter.Client)
		if row := d.Line[i]; row.Calls > 0 {
			calls := "calls"
			if row.Calls == 1 {
				calls = "call"
			}
			line += fmt.Sprintf(", %d %s, for %s", row.Calls, calls, span(time.Duration(row.Age)))
		}
		add(fmt.Sprintf("%d.", i+1), line)
	}
	for _, key := range []string{"lock", "token", "line", "channel"} {
		add("Key of the "+key, plain.Name(d.Keys[key]))
	}
	add("Slot", fmt.Sprint(d.Slot))
	return printTable(w, rows)
}
