package sqltest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencelock/fencelock/guard"
)

const (
	writers = 6
	tries   = 20 // of each writer: a token, a read, a write
)

// written is a write that was committed.
type written struct{ token, v int64 }

// Many writers read under a token and write under it, and are held back before each of the two for as long as a seeded
// dice says. Not one stale write is accepted, and no accepted one is lost.
func TestWriters(t *testing.T) {
	for _, w := range []way{byMarker, byColumn} {
		t.Run(w.name, func(t *testing.T) {
			forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
				a := newAccount(t, db)
				accepted, refused := write(t, a, w, level)
				for _, violation := range violations(accepted) {
					t.Error(violation)
				}
				if v, err := a.get(t.Context(), a); v != int64(len(accepted)) || err != nil {
					t.Errorf("%d writes were accepted, and the account has %d, %v", len(accepted), v, err)
				}
				if len(accepted) < writers || refused < writers {
					t.Errorf("%d accepted and %d refused are too few to tell anything", len(accepted), refused)
				}
			})
		})
	}
}

// The same writers without a guard: the checks of TestWriters catch it.
func TestWritersUnguarded(t *testing.T) {
	forEachLevel(t, func(t *testing.T, db database, level sql.IsolationLevel) {
		accepted, _ := write(t, newAccount(t, db), unguarded, level)
		var stale, lost int
		for _, violation := range violations(accepted) {
			if violation.stale {
				stale++
			} else {
				lost++
			}
		}
		if stale == 0 || lost == 0 {
			t.Errorf("%d stale and %d lost writes were caught of %d; want some of both", stale, lost, len(accepted))
		}
	})
}

// violation is what must not happen.
type violation struct {
	stale bool
	text  string
}

func (v violation) String() string { return v.text }

// violations finds what is wrong with the writes of an account: each has read the one before it, and the order of what
// was written is that of the tokens.
func violations(accepted []written) (found []violation) {
	// By value, and by time among the equal ones.
	byValue := slices.Clone(accepted)
	slices.SortStableFunc(byValue, func(x, y written) int { return cmp.Compare(x.v, y.v) })
	for i, w := range byValue {
		if i > 0 && w.token <= byValue[i-1].token {
			found = append(found, violation{true, fmt.Sprintf("token %d wrote %d after token %d wrote %d", w.token, w.v, byValue[i-1].token, byValue[i-1].v)})
		}
		if w.v != int64(i+1) {
			found = append(found, violation{false, fmt.Sprintf("write %d of the account made it %d: another was lost", i+1, w.v)})
		}
	}
	return found
}

// write lets the writers write, and returns what was accepted and how often a token was refused.
func write(t *testing.T, a account, w way, level sql.IsolationLevel) (accepted []written, refused int) {
	var (
		mu     sync.Mutex
		tokens atomic.Int64
		parked = make(chan chan struct{})
		ended  = make(chan error)
	)
	pause := func() {
		mine := make(chan struct{})
		parked <- mine
		<-mine
	}
	// one is one try: it reports whether the token was refused.
	one := func() (bool, error) {
		token := tokens.Add(1)
		pause()
		var v int64
		err := a.inTx(t.Context(), level, func(tx *sql.Tx) (err error) {
			if err = w.check(t.Context(), a, tx, token); err == nil {
				v, err = a.get(t.Context(), tx)
			}
			return err
		})
		if err == nil {
			pause()
			err = a.inTx(t.Context(), level, func(tx *sql.Tx) error { return w.write(t.Context(), a, tx, token, v+1) })
		}
		var stale *guard.StaleError
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, written{token, v + 1})
			return false, nil
		case errors.As(err, &stale) && stale.Token == token && stale.Seen > token && stale.Seen <= tokens.Load():
			return true, nil
		}
		return false, fmt.Errorf("token %d: %w", token, err)
	}
	for range writers {
		go func() {
			for range tries {
				stale, err := one()
				if err != nil {
					ended <- err
					return
				}
				if stale {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
			ended <- nil
		}()
	}
	// When all that are left are held back, the dice lets one to three go on, all at once.
	dice := rand.New(rand.NewPCG(uint64(level), 7))
	var held []chan struct{}
	for left := writers; left > 0; {
		for len(held) < left {
			select {
			case one := <-parked:
				held = append(held, one)
			case err := <-ended:
				left--
				if err != nil {
					t.Error(err)
				}
			}
		}
		dice.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		for range min(1+dice.IntN(3), len(held)) {
			close(held[len(held)-1])
			held = held[:len(held)-1]
		}
	}
	return accepted, refused
}
