package lockmetrics

import (
	"strings"
	"sync"
)

// MaxGroups is how many groups of locks there are at most, beside [Other].
const MaxGroups = 100

// Other is the group of the locks that have none, or one of those beyond MaxGroups.
const Other = "other"

// Groups keeps a T for each group of locks. Its methods may be called at the same time.
type Groups[T any] struct {
	of    func(lock string) string
	make  func(group string) *T
	other func() *T

	mu  sync.RWMutex
	all map[string]*T // without other
}

// NewGroups returns the groups into which of puts locks by their names, with what make returns for each when it is first needed. of
// returns the same group each time that it is given the same name; "" is Other. Where of is nil there is one group, "", made at once.
func NewGroups[T any](of func(lock string) string, make func(group string) *T) *Groups[T] {
	if of == nil {
		one := make("")
		return &Groups[T]{other: func() *T { return one }}
	}
	return &Groups[T]{of: of, make: make, other: sync.OnceValue(func() *T { return make(Other) }), all: map[string]*T{}}
}

// Of is what belongs to the group of this lock.
func (g *Groups[T]) Of(lock string) *T {
	if g.of == nil {
		return g.other()
	}
	name := strings.ToValidUTF8(g.of(lock), "\uFFFD")
	if name == "" || name == Other {
		return g.other()
	}
	g.mu.RLock()
	t := g.all[name]
	g.mu.RUnlock()
	if t == nil {
		t = g.add(name)
	}
	return t
}

// add returns what belongs to a group that was not there, or to Other where there are too many.
func (g *Groups[T]) add(name string) *T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.all[name]; t != nil {
		return t
	}
	if len(g.all) >= MaxGroups {
		return g.other()
	}
	t := g.make(name)
	g.all[name] = t
	return t
}
