package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// Semaphore is what is known of a semaphore.
type Semaphore struct {
	Name    string
	Slots   []Lock   // the lock of slot i at i. Their Line and Waiting are those who wait for this lock, and not for a permit
	Taken   int      // slots that nobody else can have: somebody has them, or Other says what stands there
	Waiting int      // clients in the line for a permit
	Line    []Waiter // the first MaxLine of them, the next one first
}

// slotsBatch is how many slots are asked about in one round trip: more than of locks, as the largest semaphore would take 21 of them. The server turns
// to others after each.
const slotsBatch = 128

// Slots returns the locks of the slots of a semaphore with so many permits, 1 to 1,024, and the line of those who wait for a permit, as
// fenced.NewSemaphore takes name and permits. It asks for 128 slots at a time. What a slot has that is no lock is Other of its lock. The number
// of permits is stored nowhere: where other programs have said more, what they have is not shown.
func (in *Inspector) Slots(ctx context.Context, semaphore string, permits int) (Semaphore, error) {
	s, err := within(ctx, in, func() (Semaphore, error) { return in.askSlots(ctx, semaphore, permits) })
	if err != nil {
		return Semaphore{}, fmt.Errorf("inspect: Slots: %w", err)
	}
	return s, nil
}

// askSlots is Slots, which may outlast ctx.
func (in *Inspector) askSlots(ctx context.Context, semaphore string, permits int) (s Semaphore, err error) {
	switch {
	case semaphore == "":
		return s, errors.New("the semaphore's name is empty: give it one")
	case permits < 1 || permits > scripts.MostPermits:
		return s, fmt.Errorf("%d permits: use 1 to %d", permits, scripts.MostPermits)
	}
	keys := scripts.PermitsOf(semaphore, permits)
	if _, is := in.rdb.(*redis.ClusterClient); is {
		if err := keys.CheckCluster(); err != nil {
			return s, err
		}
	}
	names := make([]string, 0, permits+1)
	for i := range permits {
		names = append(names, keys.SlotName(i))
	}
	locks, err := in.ask(ctx, append(names, keys.Lock), clientsByID{}, slotsBatch)
	if err != nil {
		return s, err
	}
	all := locks[permits]
	s = Semaphore{Name: semaphore, Slots: locks[:permits:permits], Waiting: all.Waiting, Line: all.Line}
	for i := range s.Slots {
		slot := &s.Slots[i]
		slot.Semaphore = semaphore
		if slot.Holder != nil || slot.Other != "" {
			s.Taken++
		}
	}
	return s, nil
}
