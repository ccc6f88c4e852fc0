package scripts

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

var (
	//go:embed one.lua
	oneText string
	//go:embed barrier.lua
	barrierText string
	//go:embed slots.lua
	slotsText string
	//go:embed permit.lua
	permitText string
	//go:embed permit_outside.lua
	permitOutsideText string
	//go:embed vacate.lua
	vacateText string
	//go:embed vacate_outside.lua
	vacateOutsideText string

	permitsText = barrierText + tokenText + holderText + lineText + acquireText + slotsText

	permit        = alone("permit", permitsText+turnText+waitText+permitText)
	permitOutside = alone("permitOutside", permitsText+turnText+waitText+permitText+permitOutsideText)
	permitUnlined = alone("acquire", permitsText)
	vacate        = alone("vacate", permitsText+unlockText+vacateText)
	vacateOutside = alone("vacateOutside", permitsText+unlockText+vacateText+vacateOutsideText)
	permitLeave   = alone("leave", permitsText+unlockText+leaveText)
	permitBatch   = newBatch(permitsText+turnText+waitText+permitText+permitOutsideText+unlockText+vacateText+vacateOutsideText+leaveText,
		branches(&permitsOutside, &permitsInTurn, &permits, &vacates, &vacatesOutside, &permitLeaves))
)

// These kinds are about a semaphore as a whole. What is about one permit, whose slot is known, is an op on the lock of that slot.
var (
	permits        = newKind(ToAcquire, "acquire", &permitUnlined).of(semaphores)
	permitsInTurn  = newKind(ToAcquire, "wait", &permit).of(semaphores).or(&permits)
	permitsOutside = newKind(ToAcquire, "try", &permitOutside).of(semaphores).or(&permits)
	vacatesOutside = newKind(ToUnlock, "unlock", &vacateOutside).of(semaphores)
	vacates        = newKind(ToUnlock, "release", &vacate).of(semaphores).or(&vacatesOutside)
	permitLeaves   = newKind(ToLeave, "leave", &permitLeave).of(semaphores)
)

// MostPermits is the largest number of permits of a semaphore.
const MostPermits = 1024

// PermitsOf returns the keys of the semaphore with this name and so many permits, 1 to MostPermits. Slot i of it is the lock "{name}:i", or
// "name:i" for a name that has an opening brace of its own. Lock is no key, but the name that stands for all slots.
func PermitsOf(name string, n int) *Keys {
	base := slotBase(name)
	k := KeysOf(base + "*")
	last := strconv.Itoa(n - 1)
	k.last = &lastSlot{of: name, base: base, lock: base + last, token: strings.TrimSuffix(k.Token, "*") + last, n: n}
	return k
}

// A lastSlot is the last slot of a semaphore, by which the scripts know the semaphore.
type lastSlot struct {
	of          string // the semaphore, as PermitsOf was given its name
	base        string // of the names of all slots
	lock, token string
	n           int
}

// keys says which keys the slots have: their locks, and their counters.
func (l *lastSlot) keys() string { return "keys " + l.upTo(l.base) + ", " + l.upTo(l.counters()) }

// counters is what the names of the slots' counters begin with, before the number.
func (l *lastSlot) counters() string { return strings.TrimSuffix(l.token, strconv.Itoa(l.n-1)) }

// upTo says which names the slots give to what begins so.
func (l *lastSlot) upTo(base string) string {
	if l.n == 1 {
		return fmt.Sprintf("%q", base+"0")
	}
	return fmt.Sprintf("%q to %q", base+"0", base+strconv.Itoa(l.n-1))
}

// noCounter says of the counter that gives no token which key it is, and what to do.
func (l *lastSlot) noCounter() string {
	const mend = "holds something that is not a number, and no permit is given until it is one: set it to the largest token that storage has seen of this slot"
	if l.n == 1 {
		return fmt.Sprintf("the fencing counter %s %s", l.upTo(l.counters()), mend)
	}
	return fmt.Sprintf("the fencing counter of the lowest free slot, of %s, %s; fencelock show %q --permits %d says which", l.upTo(l.counters()), mend, l.of, l.n)
}

// slotBase is what the names of a semaphore's slots begin with, before the number.
func slotBase(name string) string {
	if !strings.Contains(name, "{") {
		name = "{" + name + "}"
	}
	return name + ":"
}

// IsPermits tells whether a lock of this name would be taken for the slots of a semaphore.
func IsPermits(name string) bool { return strings.HasSuffix(name, ":*") && strings.Contains(name, "{") }

// SemaphoreOf returns the semaphore whose slots the name stands for, as NewSemaphore takes its name; "" for another name.
func SemaphoreOf(name string) string {
	if !IsPermits(name) {
		return ""
	}
	return ofBase(strings.TrimSuffix(name, "*"))
}

// SlotOf returns the semaphore that has a slot whose lock has this name, and that slot; false for a name that no slot has.
func SlotOf(lock string) (semaphore string, slot int, is bool) {
	at := strings.LastIndexByte(lock, ':') + 1
	slot, err := strconv.Atoi(lock[at:])
	if err != nil || slot < 0 || slot >= MostPermits || strconv.Itoa(slot) != lock[at:] || !strings.Contains(lock[:at], "{") {
		return "", 0, false
	}
	return ofBase(lock[:at]), slot, true
}

// ofBase returns the semaphore that has this slotBase.
func ofBase(base string) string {
	name := strings.TrimSuffix(base, ":")
	if inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}"); inner != "" && "{"+inner+"}" == name && !strings.Contains(inner, "{") {
		return inner
	}
	return name
}

// Permits is how many permits the semaphore has; 0 for the keys of a lock.
func (k *Keys) Permits() int {
	if k.last == nil {
		return 0
	}
	return k.last.n
}

// SlotName returns the name of the lock of this slot of a semaphore.
func (k *Keys) SlotName(slot int) string { return k.last.base + strconv.Itoa(slot) }

// PermitIn returns the keys by which the permit of this slot is released: its lock's, with the semaphore's line and channel.
func (k *Keys) PermitIn(slot int) *Keys {
	of := KeysOf(k.SlotName(slot))
	of.Line = k.Line
	told := k.told()
	of.channel.Store(&told)
	return of
}

// isSentOnce tells whether no copy of the op is sent: it may take what one hold is not to have twice, or that nobody confirms (P43).
func (op *Op) isSentOnce() bool { return op.kind.family != locks && !op.isUnlock() && !op.isLeave() }

// parsePermit reads the list of an op that has taken a slot.
func parsePermit(list []any) (Answer, error) {
	if len(list) == 2 {
		token, err := integer(list[0])
		if slot, why := integer(list[1]); err == nil && why == nil && slot >= 0 && slot < MostPermits {
			return Answer{Held: true, Token: token, Slot: int(slot)}, nil
		}
	}
	return Answer{}, unexpected(list)
}
