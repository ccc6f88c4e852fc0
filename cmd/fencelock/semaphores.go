package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/scripts"
)

// anySlot is the name that stands for all slots of a semaphore.
func anySlot(semaphore string) string { return scripts.PermitsOf(semaphore, 1).Lock }

// byName is by what lists are sorted that are sorted by name: the slots of a semaphore stand in their order, behind the name for all of them.
func byName(name string) string {
	if _, slot, is := scripts.SlotOf(name); is {
		return fmt.Sprintf("%s%04d", name[:len(name)-len(strconv.Itoa(slot))], slot)
	}
	return name
}

// withSemaphores adds the semaphores of the permits among the locks.
func (v *viewer) withSemaphores(ctx context.Context, locks []inspect.Lock) ([]inspect.Lock, error) {
	missing := map[string]bool{}
	for _, l := range locks {
		if l.Semaphore != "" {
			missing[anySlot(l.Semaphore)] = true
		}
	}
	for _, l := range locks {
		delete(missing, l.Name)
	}
	if len(missing) == 0 {
		return locks, nil
	}
	found, err := v.Look(ctx, slices.Sorted(maps.Keys(missing))...)
	var refused redis.Error
	if errors.As(err, &refused) { // a user without the right to these names sees less
		return locks, nil
	}
	return append(locks, found...), err
}

// countPermits tells the semaphores among the rows how many of their permits are.
func countPermits(rows []lockRow) {
	count := map[string]int{}
	for _, r := range rows {
		if r.Semaphore != "" && r.Holder != nil {
			count[anySlot(r.Semaphore)]++
		}
	}
	for i := range rows {
		rows[i].Permits = count[rows[i].Name]
	}
}

// semaphoreHint says that the name is one of a semaphore, and how to see that; "" for one of which Redis has nothing.
func (v *viewer) semaphoreHint(ctx context.Context, l inspect.Lock) string {
	if of, slot, is := scripts.SlotOf(l.Name); is && l.Semaphore == of {
		return fmt.Sprintf("slot %d of %s: fencelock show %s --permits N", slot, plain.Name(of), plain.Name(of))
	} else if l.Semaphore != "" {
		return fmt.Sprintf("%s: fencelock show %s --permits N", plain.Name(l.Semaphore), plain.Name(l.Semaphore))
	}
	keys := scripts.PermitsOf(l.Name, 1)
	locks, err := v.Look(ctx, keys.Lock, keys.SlotName(0))
	if err != nil || locks[0].Waiting == 0 && locks[1].Holder == nil && locks[1].Token == 0 {
		return ""
	}
	return fmt.Sprintf("there is one of this name: fencelock show %s --permits N", plain.Name(l.Name))
}

// semaphore is a semaphore as show prints it.
type semaphore struct {
	Name      string            `json:"name"`
	Permits   int               `json:"permits"`
	Taken     int               `json:"taken"`
	Listeners int               `json:"listeners"` // connections
	Waiting   int               `json:"waiting"`   // clients in the line
	Line      []waitRow         `json:"line"`      // the first of them
	Slots     []lockRow         `json:"slots"`
	More      bool              `json:"more"` // the slot after the last one has a permit, too: somebody says more permits
	Keys      map[string]string `json:"keys"`
	all       lockRow
}

// semaphore looks at the semaphore of this name, or of this name that stands for its slots.
func (v *viewer) semaphore(ctx context.Context, name string, permits int) (*semaphore, error) {
	if of := scripts.SemaphoreOf(name); of != "" {
		name = of
	}
	seen, err := v.Slots(ctx, name, permits)
	if err != nil {
		return nil, err
	}
	keys := scripts.PermitsOf(name, permits)
	first := scripts.KeysOf(keys.SlotName(0))
	rows, err := v.rows(ctx, append(seen.Slots, inspect.Lock{Name: keys.Lock, Waiting: seen.Waiting, Line: seen.Line}))
	if err != nil {
		return nil, err
	}
	s := &semaphore{Name: name, Permits: permits, Taken: seen.Taken, Waiting: seen.Waiting, Slots: rows[:permits], all: rows[permits], Keys: map[string]string{
		"first_lock": first.Lock, "first_token": first.Token, "line": keys.Line, "channel": keys.Channel(),
	}}
	s.Listeners, s.Line = s.all.Listeners, s.all.Line
	if permits < scripts.MostPermits {
		next, err := v.Look(ctx, keys.SlotName(permits))
		s.More = err == nil && next[0].Semaphore != ""
	}
	return s, nil
}

// slotColumns are those of the slots, of those of a lock.
var slotColumns = []string{"SLOT", "HOLDER", "COUNT", "TTL", "TOKEN", "AGE"}

func (s *semaphore) print(w io.Writer, wide bool) error {
	rows := [][]string{{"Semaphore", plain.Name(s.Name)}, {"Permits", fmt.Sprintf("%d, %d taken", s.Permits, s.Taken)}}
	if s.More {
		rows = append(rows, []string{"", fmt.Sprintf("slot %d is taken too: some program says more permits", s.Permits)})
	}
	rows = append(rows, s.all.lineRows()...)
	for _, key := range []string{"lock", "token"} {
		rows = append(rows, []string{"Keys of the " + key + "s", plain.Name(s.Keys["first_"+key]) + " and so on"})
	}
	for _, key := range []string{"line", "channel"} {
		rows = append(rows, []string{"Key of the " + key, plain.Name(s.Keys[key])})
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	columns := slices.Clone(slotColumns)
	if wide {
		columns = append(columns, "ID")
	}
	rows = [][]string{columns}
	for from := 0; from < len(s.Slots); {
		to := from + 1
		for to < len(s.Slots) && s.Slots[from].idle() && s.Slots[to].idle() { // free ones next to each other are one line
			to++
		}
		r := &s.Slots[from]
		cells := append([]string{strconv.Itoa(from)}, r.cells()[1:len(slotColumns)]...)
		if to > from+1 {
			cells = []string{fmt.Sprintf("%d-%d", from, to-1), "(free)", unknown, unknown, unknown, unknown}
		}
		if wide {
			cells = append(cells, r.field())
		}
		rows, from = append(rows, cells), to
	}
	return printTable(w, rows)
}

// idle tells whether there is nothing to say of the lock but its last token.
func (r *lockRow) idle() bool { return r.lock.Holder == nil && r.Other == "" && r.Counter == "" }
