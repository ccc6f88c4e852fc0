package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/scripts"
)

// details is a lock as show prints it.
type details struct {
	lockRow
	Keys  map[string]string `json:"keys"`
	Slot  *uint16           `json:"hash_slot,omitempty"` // of the cluster; nil without one
	Guard int64             `json:"guard"`               // the largest token that package redisguard has accepted; 0 for none

	Judged []inspect.Server `json:"-"` // of a quorum

	SemaphoreHint string `json:"semaphore_hint,omitempty"` // that the name is one of a semaphore
}

func newShow(at *connection) *cobra.Command {
	var out format
	var permits int
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show all about one lock, or one semaphore",
		Long: `show prints who holds a lock, who waits and in which order, its keys in Redis, and the largest token that a guard has accepted there.

Of a semaphore it shows who has which slot, and who waits for a permit. All who use the name say the same number of permits, which is
stored nowhere: it shows the slots that have, or had, a permit. With --permits N it shows N, and says which others exist. Slot 3 of the
semaphore jobs is the lock {jobs}:3. Where NAME is also a lock's, '{jobs}:*' is the semaphore.`,
		Example: `  fencelock show account:42
  fencelock show -o json account:42
  fencelock show jobs
  fencelock show '{jobs}:3'
  fencelock show jobs --permits 5 -o json | jq '.slots[] | select(.holder == null) | .name'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("permits") && (permits < 1 || permits > scripts.MostPermits) {
				return usage("--permits %d: use 1 to %d", permits, scripts.MostPermits)
			}
			return at.with(func(v *viewer) error {
				if permits > 0 && len(v.all) > 1 {
					return usage("--permits: a quorum has no semaphores: give one URL")
				}
				d, err := v.about(cmd.Context(), args[0], permits)
				switch {
				case err != nil:
					return err
				case out == "json":
					return printJSON(cmd.OutOrStdout(), d)
				case out == "name":
					return printName(cmd.OutOrStdout(), args[0])
				}
				return d.print(cmd.OutOrStdout(), out == "wide")
			})
		},
	}
	out.addFlag(cmd)
	cmd.Flags().IntVar(&permits, "permits", 0, "show the semaphore NAME, of so many permits")
	return cmd
}

// about returns all about the semaphore of this name, if it is one of so many permits, stands for all
// slots, or is a semaphore's alone; otherwise all about the lock.
func (v *viewer) about(ctx context.Context, name string, permits int) (interface {
	print(w io.Writer, wide bool) error
}, error) {
	semaphore := permits > 0 || len(v.all) == 1 && inspect.SemaphoreOf(name) != ""
	if !semaphore && len(v.all) == 1 && name != "" {
		locks, semaphores, err := v.named(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		semaphore = len(semaphores) > 0 && len(locks) == 0
	}
	if semaphore {
		return v.semaphore(ctx, name, permits)
	}
	return v.details(ctx, name)
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
	if locks[0].Mode != "" {
		keys = scripts.ReadWriteOf(name, scripts.Reads)
	}
	d := &details{lockRow: rows[0], Keys: map[string]string{
		"lock": keys.Lock, "token": keys.Token, "line": keys.Line, "channel": keys.Channel(),
	}}
	if v.at.cluster {
		d.Slot = &keys.Slot
	}
	if locks[0].Mode == "read" {
		d.Keys["lease"] = keys.LeaseOf("<holder>", 1)
	}
	if g, err := redisguard.New(v.rdb); err == nil && len(v.all) == 1 {
		d.Guard, _ = g.Seen(ctx, name) // 0 for a name that no guard takes, or without the right to its key
	}
	d.Judged, _ = v.Servers(ctx) // those of the lock say why they do not answer
	d.SemaphoreHint = v.semaphoreHint(ctx, d.lock)
	return d, nil
}

func (d *details) print(w io.Writer, _ bool) error {
	rows := [][]string{{"Name", plain.Name(d.Name)}}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	switch h := d.lock.Holder; {
	case d.Other != "":
		add("State", "no lock: "+plain.Name(d.Other))
	case h == nil:
		add("State", byMajority(d.lock, "free"))
	case d.Mode == "read":
		add("State", "read by "+strconv.Itoa(d.Reading))
		for i, h := range d.lock.Readers {
			line := fmt.Sprintf("%s (%s)", process(h.By, h.Client), plain.Name(h.Field))
			if age := time.Duration(d.Readers[i].Age); age > 0 {
				line += ", for " + span(age)
			}
			add(fmt.Sprintf("Reader %d", i+1), line+", lease ends in "+left(h.TTL))
		}
	default:
		state := "held"
		if d.Mode != "" {
			state = "held to write"
		}
		if h.Lasting != "" {
			state += ", and meant to last: " + plain.Name(h.Lasting)
		}
		add("State", byMajority(d.lock, state))
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
	if d.SemaphoreHint != "" {
		add("Semaphore", d.SemaphoreHint)
	}
	if d.Counter != "" {
		add("No token", d.Counter)
	}
	add("Last token", number(d.Token))
	add("Guard has seen", number(d.Guard))
	rows = append(rows, d.lineRows()...)
	rows = append(rows, d.serverRows()...)
	for _, key := range []string{"lock", "lease", "token", "line", "channel"} {
		if d.Keys[key] != "" {
			add("Key of the "+key, plain.Name(d.Keys[key]))
		}
	}
	if d.Slot != nil {
		add("Hash slot", fmt.Sprint(*d.Slot))
	}
	return printTable(w, rows)
}

// lineRows say who waits, in which order.
func (r *lockRow) lineRows() [][]string {
	rows := [][]string{{"Waiting", fmt.Sprintf("%d (%d listening)", r.Waiting, r.Listeners)}}
	for i, waiter := range r.lock.Line {
		line := process(waiter.By, waiter.Client)
		if waiter.Mode != "" {
			line += ", to " + waiter.Mode
		}
		if row := r.Line[i]; row.Calls > 0 {
			calls := "calls"
			if row.Calls == 1 {
				calls = "call"
			}
			if row.Lasting != "" {
				calls += ", stands by"
			}
			line += fmt.Sprintf(", %d %s, for %s", row.Calls, calls, span(time.Duration(row.Age)))
		}
		rows = append(rows, []string{fmt.Sprintf("%d.", i+1), line})
	}
	if more := r.Waiting - len(r.Line); more > 0 && len(r.Line) > 0 {
		rows = append(rows, []string{"and", fmt.Sprintf("%d more", more)})
	}
	return rows
}
