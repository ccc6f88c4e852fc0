package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/scripts"
)

// byName is by what lists are sorted that are sorted by name: the slots of a semaphore stand in their order.
func byName(name string) string {
	if _, slot, is := scripts.SlotOf(name); is {
		return fmt.Sprintf("%s%04d", name[:len(name)-len(strconv.Itoa(slot))], slot)
	}
	return name
}

// canonical is the name of the semaphore as others say it that have the same one.
func canonical(semaphore string) string { return inspect.SemaphoreOf(inspect.AnySlot(semaphore)) }

// fold returns the semaphores of the permits among the locks, and these ones, and the locks that they
// do not show: no permits, or such whose lock itself is waited for.
func (v *viewer) fold(ctx context.Context, clients []inspect.Client, locks []inspect.Lock, semaphores map[string]bool) ([]inspect.Lock, []inspect.Semaphore, error) {
	for _, l := range locks {
		if l.Semaphore != "" {
			semaphores[l.Semaphore] = true
		}
	}
	if len(v.all) > 1 || len(semaphores) == 0 {
		return locks, nil, nil
	}
	found, err := v.SlotsWith(ctx, clients, slices.Sorted(maps.Keys(semaphores))...)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]int{}
	for _, s := range found {
		seen[s.Name] = s.Seen
	}
	locks = slices.DeleteFunc(locks, func(l inspect.Lock) bool {
		_, slot, _ := inspect.SlotOf(l.Name)
		return l.Semaphore != "" && l.Waiting == 0 && slot < seen[l.Semaphore]
	})
	return locks, slices.DeleteFunc(found, func(s inspect.Semaphore) bool { return s.Taken == 0 && s.Waiting == 0 && s.Other == "" }), nil
}

// named returns the locks of these names, and the semaphores among them. A name of both is twice there.
func (v *viewer) named(ctx context.Context, names []string) ([]inspect.Lock, []inspect.Semaphore, error) {
	locks, err := v.Look(ctx, names...)
	if err != nil || len(v.all) > 1 {
		return locks, nil, err
	}
	may := map[string]bool{}
	for _, l := range locks {
		if of := cmp.Or(inspect.SemaphoreOf(l.Name), canonical(l.Name)); l.Mode == "" {
			may[of] = true
		}
	}
	found, err := v.SlotsWith(ctx, nil, slices.Sorted(maps.Keys(may))...)
	if err != nil {
		return nil, nil, err
	}
	found = slices.DeleteFunc(found, func(s inspect.Semaphore) bool { return !s.Exists() })
	return slices.DeleteFunc(locks, func(l inspect.Lock) bool {
		return neverUsed(l) && slices.ContainsFunc(found, func(s inspect.Semaphore) bool { return s.Name == canonical(l.Name) }) || inspect.SemaphoreOf(l.Name) != ""
	}), found, nil
}

// neverUsed tells whether Redis has nothing of the lock.
func neverUsed(l inspect.Lock) bool {
	return l.Holder == nil && l.Other == "" && l.Waiting == 0 && l.Token == 0 && l.Counter == ""
}

// semaphoreHint says that the name is one of a semaphore, and how to see that; "" for one of which Redis has nothing.
func (v *viewer) semaphoreHint(ctx context.Context, l inspect.Lock) string {
	if of, slot, is := scripts.SlotOf(l.Name); is && l.Semaphore == of {
		return fmt.Sprintf("slot %d of %s: fencelock show '%s'", slot, plain.Name(of), plain.Name(inspect.AnySlot(of)))
	}
	if len(v.all) > 1 {
		return ""
	}
	all, err := v.SlotsWith(ctx, nil, canonical(l.Name))
	if err != nil || !all[0].Exists() {
		return ""
	}
	s := &all[0]
	return fmt.Sprintf("there is one of this name, %d taken of %d seen, %d waiting: fencelock show '%s'", s.Taken, s.Seen, s.Waiting, plain.Name(inspect.AnySlot(s.Name)))
}

// semaphore is a semaphore as show prints it.
type semaphore struct {
	Name      string            `json:"name"`
	Permits   int               `json:"permits"`   // 0: nobody has said how many
	Seen      int               `json:"seen"`      // so many slots there are at least
	Taken     int               `json:"taken"`     // of Slots
	Listeners int               `json:"listeners"` // connections
	Waiting   int               `json:"waiting"`   // clients in the line
	Line      []waitRow         `json:"line"`      // the first of them
	Stuck     string            `json:"stuck,omitempty"`
	Slots     []lockRow         `json:"slots"`
	Beyond    []int             `json:"beyond"` // slots seen that are none of Slots: somebody says more permits
	Keys      map[string]string `json:"keys"`
	all       lockRow
}

// semaphore looks at the semaphore of this name, of so many permits; 0 for those that are seen.
func (v *viewer) semaphore(ctx context.Context, name string, permits int) (*semaphore, error) {
	seen, err := v.Slots(ctx, canonical(cmp.Or(inspect.SemaphoreOf(name), name)), permits)
	if err != nil {
		return nil, err
	}
	keys := scripts.PermitsOf(seen.Name, 1)
	first := scripts.KeysOf(keys.SlotName(0))
	rows, err := v.rows(ctx, seen.Slots, seen)
	if err != nil {
		return nil, err
	}
	all := rows[len(seen.Slots)]
	return &semaphore{
		Name: seen.Name, Permits: permits, Seen: seen.Seen, Taken: seen.Taken, Listeners: all.Listeners, Waiting: seen.Waiting, Line: all.Line, Stuck: all.Stuck,
		Slots: rows[:len(seen.Slots)], Beyond: append([]int{}, seen.Beyond...), all: all,
		Keys: map[string]string{"first_lock": first.Lock, "first_token": first.Token, "line": keys.Line, "channel": keys.Channel()},
	}, nil
}

// semaphoreRow is the semaphore as lists show it.
func (v *viewer) semaphoreRow(s inspect.Semaphore, listeners int) lockRow {
	r := lockRow{
		Name: s.Name, Semaphore: s.Name, Taken: s.Taken, Seen: s.Seen, Listeners: listeners, Waiting: s.Waiting, Line: []waitRow{}, Other: s.Other,
		lock: inspect.Lock{Name: inspect.AnySlot(s.Name), Semaphore: s.Name, Waiting: s.Waiting, Line: s.Line}, of: &s,
	}
	for _, l := range s.Slots {
		if l.Holder != nil {
			r.Oldest = max(r.Oldest, age(l.Holder.For, l.Holder.By))
		}
	}
	return r
}

// slotColumns are those of the slots, of those of a lock.
var slotColumns = []string{"SLOT", "HOLDER", "COUNT", "TTL", "TOKEN", "AGE"}

func (s *semaphore) print(w io.Writer, wide bool) error {
	permits := fmt.Sprintf("%d, %d taken", s.Permits, s.Taken)
	if s.Permits == 0 {
		permits = fmt.Sprintf("%d seen, %d taken", s.Seen, s.Taken)
	}
	rows := [][]string{{"Semaphore", plain.Name(s.Name)}, {"Permits", permits}}
	if len(s.Beyond) > 0 {
		rows = append(rows, []string{"", beyond(s.Beyond) + ": some program says more permits, or did"})
	}
	if s.Stuck != "" {
		rows = append(rows, []string{"Stuck", s.Stuck})
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
		if r.Holder != nil && r.Semaphore == "" {
			cells[1] += " (a lock, no permit)"
		}
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

// beyond says that these slots exist.
func beyond(slots []int) string {
	var parts []string
	for from := 0; from < len(slots); {
		to := from
		for to+1 < len(slots) && slots[to+1] == slots[to]+1 {
			to++
		}
		if to > from+1 {
			parts = append(parts, fmt.Sprintf("%d-%d", slots[from], slots[to]))
		} else {
			parts = append(parts, strconv.Itoa(slots[from]))
			to = from
		}
		from = to + 1
	}
	last := len(parts) - 1
	switch {
	case len(slots) == 1:
		return fmt.Sprintf("slot %d exists", slots[0])
	case last == 0:
		return "slots " + parts[0] + " exist"
	}
	return "slots " + strings.Join(parts[:last], ", ") + " and " + parts[last] + " exist"
}

// idle tells whether there is nothing to say of the lock but its last token.
func (r *lockRow) idle() bool { return r.lock.Holder == nil && r.Other == "" && r.Counter == "" }
