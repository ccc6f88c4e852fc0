package locktest

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"
)

// Equal requires that got is want.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %s, want %s", what, text(got), text(want))
	}
}

// DeepEqual requires that got is want, as reflect.DeepEqual has it. It is for what cannot be compared with ==.
func DeepEqual(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %#v, want %#v", what, got, want)
	}
}

// text shows a value. A string has quotes: an empty one can be seen.
func text(v any) string {
	if s, isString := v.(string); isString {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%+v", v)
}

// Allocs is how often do allocates: the least of five means of so many runs. What else goes on in the process allocates too, as do a
// garbage collection and a sync.Pool that the race detector empties at random, but not each time.
func Allocs(runs int, do func()) float64 {
	least := testing.AllocsPerRun(runs, do)
	for range 4 {
		least = min(least, testing.AllocsPerRun(runs, do))
	}
	return least
}
