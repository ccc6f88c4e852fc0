package lockmetrics

import (
	"slices"
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

	madeMu sync.Mutex
	made   []*T // all, with other
}

// NewGroups returns the groups into which of puts locks by their names, with what make returns for each when it is first needed. of
// returns the same group each time that it is given the same name; "" is Other. Where of is nil there is one group, "", made at once.
func NewGroups[T any](of func(lock string) string, make func(group string) *T) *Groups[T] {
	g := &Groups[T]{of: of, all: map[string]*T{}}
	g.make = func(group string) *T {
		t := make(group)
		g.madeMu.Lock()
		defer g.madeMu.Unlock()
		g.made = append(g.made, t)
		return t
	}
	if of == nil {
		one := g.make("")
		g.other = func() *T { return one }
	} else {
		g.other = sync.OnceValue(func() *T { return g.make(Other) })
	}
	return g
}

// All is what belongs to the groups that were made so far.
func (g *Groups[T]) All() []*T {
	g.madeMu.Lock()
	defer g.madeMu.Unlock()
	return slices.Clone(g.made)
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
