package lockui

import (
	"fmt"
	"net/http"

	"github.com/fencelock/fencelock/observe/inspect"
)

// shownSlots is what is shown of a semaphore.
type shownSlots struct {
	AllSlots bool         `json:"all_slots,omitempty"` // it is a semaphore, and no lock
	Taken    int          `json:"taken_slots,omitempty"`
	Seen     int          `json:"seen_slots,omitempty"`       // so many slots there are at least
	Oldest   milliseconds `json:"oldest_permit_ms,omitempty"` // its age
	Slots    []*shownLock `json:"slots,omitempty"`            // on the semaphore's own page
}

// Page is the page about the lock, or about the semaphore.
func (l *shownLock) Page() string {
	if l.AllSlots {
		return "semaphore"
	}
	return "lock"
}

// newSemaphore is the semaphore as lists show it.
func (h *handler) newSemaphore(s *survey, f *found) *shownLock {
	l := &shownLock{
		Name: f.Semaphore, Semaphore: f.Semaphore, Other: f.Other, Waiting: f.Waiting, Listeners: f.listeners, lease: h.lease, standby: true,
		shownSlots: shownSlots{AllSlots: true, Taken: f.semaphore.Taken, Seen: f.semaphore.Seen},
	}
	for _, slot := range f.semaphore.Slots {
		if slot.Holder != nil {
			l.Oldest = max(l.Oldest, newHolder(s, slot.Holder).For)
		}
	}
	l.addLine(s, f.Line)
	waits := f.semaphore.Waited(l.Listeners)
	switch {
	case l.Other != "":
		l.State = other
		return l
	case !waits && l.Taken == 0:
		l.State = free
	case !waits, f.semaphore.Lasts() && l.standby:
		l.State = heldBy
	default:
		l.State = waited
	}
	switch {
	case waits && f.semaphore.Blocked() != "":
		l.State, l.Why = stuck, f.semaphore.Blocked()
	case f.semaphore.Lasts():
	case l.overdue >= milliseconds(h.longHold):
		l.State, l.Why = stuck, "somebody has waited for a permit for "+l.overdue.String()
	}
	return l
}

type semaphorePage struct {
	surveyed
	Semaphore *shownLock `json:"semaphore"`
}

// slotRow is a slot as the page has it, or several free ones.
type slotRow struct {
	*shownLock
	Slots   string
	Many    bool
	Counter string
}

// Rows are the slots; free ones next to each other are one row.
func (p semaphorePage) Rows() (rows []slotRow) {
	all := p.Semaphore.Slots
	for from := 0; from < len(all); {
		to := from + 1
		for all[from].idle() && to < len(all) && all[to].idle() {
			to++
		}
		row := slotRow{all[from], fmt.Sprint(from), to > from+1, all[from].seen.Counter}
		if row.Many {
			row.Slots = fmt.Sprintf("%d to %d", from, to-1)
		}
		rows, from = append(rows, row), to
	}
	return rows
}

// idle tells whether there is nothing to say of the slot.
func (l *shownLock) idle() bool { return l.Holder == nil && l.Other == "" && l.seen.Counter == "" }

func (h *handler) semaphore(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		h.fail(w, r, http.StatusBadRequest, "Which semaphore? The parameter name is missing.")
		return
	}
	s, l, ok := h.one(w, r, inspect.AnySlot(name))
	if !ok {
		return
	}
	h.showSemaphore(w, r, s, l)
}

// showSemaphore shows a semaphore that was found by the name of all its slots.
func (h *handler) showSemaphore(w http.ResponseWriter, r *http.Request, s *survey, l *shownLock) {
	if !l.AllSlots {
		h.fail(w, r, http.StatusNotFound, "A quorum has no semaphores.")
		return
	}
	s.mu.Lock()
	f := s.looked[inspect.AnySlot(l.Semaphore)]
	s.mu.Unlock()
	for _, slot := range f.semaphore.Slots {
		l.Slots = append(l.Slots, h.newLock(s, &found{Lock: slot}))
	}
	h.show(w, r, http.StatusOK, "semaphore", semaphorePage{newSurveyed(s), l})
}

// ofName is the semaphore that has the name of a lock; nil if there is none.
func (h *handler) ofName(s *survey, name string) *shownLock {
	if s.servers != nil {
		return nil
	}
	all, err := s.locks([]string{inspect.AnySlot(name)})
	if err != nil || !all[0].semaphore.Exists() {
		return nil
	}
	return h.newSemaphore(s, all[0])
}
