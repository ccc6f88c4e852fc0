package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

func newList(at *connection) *cobra.Command {
	var out format
	var by, scan string
	var olderThan duration
	var mine bool
	cmd := &cobra.Command{
		Use:     "ls [flags] [NAME...]",
		Aliases: []string{"list"},
		Short:   "List locks, with their holders and how many wait",
		Long: `ls lists the locks that clients with presence (rlock.WithPresence, and "fencelock run") hold or wait for, all locks that
somebody waits for, those of Redisson too, and what a client of this library has held for longer than a second. A lock may be
missing for a second after it was taken. Of a client that holds more than a thousand locks it lists a thousand, those that somebody
waits for, and says how many others there are. These, and a lock of Redisson's that nobody waits for, are found by their NAME only,
or by --scan, which walks through all keys in small steps.

HOLDER is host:pid and name, or what stands in Redis for a client that says nothing of itself; COUNT how often it has acquired the
lock without unlocking it; TTL the rest of the lease if nobody renews it; TOKEN the last fencing token; LISTENERS connections that
hear of a release, the holder's own too; WAITERS clients in the line. AGE is known of clients with presence, some seconds
after the lock was taken.

Of a read-write lock HOLDER is the one that writes, or the one of those that read whose lease ends last, and how many read.
Where clients wait in a circle, each for what the next one holds, ls names them on standard error, and the rows of their locks
in JSON. It goes by clients with presence, a quarter of a minute after the circle has closed.
Of a hold that is meant to last a word in brackets says what its holder does, such as (leads).
A semaphore is one row: HOLDER is how many of its slots are taken, of those that are seen, AGE that of the oldest permit. How many
permits there are is stored nowhere. Slot 0 of the semaphore jobs is the lock {jobs}:0, which is listed by that NAME.`,
		Example: `  fencelock ls
  fencelock ls -o wide --sort age --older-than 10m
  fencelock ls --scan='account:*' -o name
  fencelock ls -o json | jq '.[] | select(.semaphore == "jobs") | .taken'
  fencelock ls -o json | jq '.[] | select(.waiting > 10) | .name'`,
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if orders[by] == nil {
				return usage("--sort %s: use %s", by, strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
			}
			if scan != "" && len(args) > 0 {
				return usage("--scan takes its pattern after an equals sign: --scan='account:*'")
			}
			return at.with(func(v *viewer) error {
				var locks []inspect.Lock
				var semaphores []inspect.Semaphore
				var u used
				var err error
				switch {
				case len(args) > 0:
					locks, semaphores, err = v.named(cmd.Context(), args)
				case scan != "":
					for l, wrong := range v.Scan(cmd.Context(), scan, inspect.Pace{}) {
						if err = wrong; err == nil {
							locks = append(locks, l)
						}
					}
					if err == nil {
						locks, semaphores, err = v.fold(cmd.Context(), nil, locks, map[string]bool{})
					}
				default:
					u, err = v.used(cmd.Context())
				}
				rows := u.rows
				if err == nil && rows == nil {
					rows, err = v.rows(cmd.Context(), locks, semaphores...)
				}
				if err != nil {
					return err
				}
				rows = slices.DeleteFunc(rows, func(r lockRow) bool { return mine && !r.here() || r.age() < time.Duration(olderThan) })
				sortRows(rows, by)
				few := v.noteServers(cmd)
				if u.unlisted > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "fencelock: %s: --scan finds them\n", notListed(u.unlisted))
				}
				if text := cycleText(u.cycles, textWidth); text != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "fencelock: "+strings.Join(text, "\n"))
				}
				return cmp.Or(printLocks(cmd, out, rows), few)
			})
		},
	}
	out.addFlag(cmd)
	cmd.Flags().StringVar(&by, "sort", "name", "name, age, ttl, token or waiters")
	cmd.Flags().Var(&olderThan, "older-than", "only locks that are held for so long or longer, as far as that is known")
	cmd.Flags().BoolVar(&mine, "mine", false, "only locks that processes of this machine hold")
	cmd.Flags().StringVar(&scan, "scan", "", "walk through all keys that match this pattern")
	cmd.Flags().Lookup("scan").NoOptDefVal = "*"
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Sorted(maps.Keys(orders)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// maxName is how many letters of a name a table has that is not wide.
const maxName = 60

func printLocks(cmd *cobra.Command, out format, rows []lockRow) error {
	w := cmd.OutOrStdout()
	switch out {
	case "json":
		return printJSON(w, rows)
	case "name":
		for _, r := range rows {
			if err := printName(w, r.lock.Name); err != nil { // show takes it for the one or the other
				return err
			}
		}
		return nil
	}
	lines := [][]string{lockColumns}
	if out == "wide" {
		lines[0] = append(slices.Clone(lockColumns), "ID", "NEXT")
	}
	for _, r := range rows {
		cells := r.cells()
		if out == "wide" {
			next := unknown
			if len(r.lock.Line) > 0 {
				next = process(r.lock.Line[0].By, r.lock.Line[0].Client)
			}
			cells = append(cells, r.field(), next)
		} else {
			cells[0] = plain.Brief(cells[0], maxName)
		}
		lines = append(lines, cells)
	}
	return printTable(w, lines)
}
