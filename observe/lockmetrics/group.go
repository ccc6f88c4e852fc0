package lockmetrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// MaxGroups is how many groups of locks there are at most, beside [Other], and MaxLasting how many words of rlock.Lasting.
const MaxGroups, MaxLasting = 100, 10

// Other is the group of the locks that have none, or one of those beyond MaxGroups, and the word of the holds beyond MaxLasting.
const Other = "other"

// Groups keeps a T for each group of locks, and for each word with which holds of the group are meant to last (rlock.Lasting). Its methods may be
// called at the same time.
type Groups[T any] struct {
	of   func(lock string) string
	make func(group, lasting string) *T
	one  *T // of all holds that are not meant to last, where of is nil

	mu    sync.RWMutex
	all   map[part]*T
	names map[string]bool // of groups, without Other
	words map[string]bool // without Other
}

// part is the part of a group's holds that have this word; "" for those without one.
type part struct{ group, lasting string }

// NewGroups returns the groups into which of puts locks by their names, with what make returns for each when it is first needed. of
// returns the same group each time that it is given the same name; "" is Other. Where of is nil there is one group, "", made at once.
func NewGroups[T any](of func(lock string) string, make func(group, lasting string) *T) *Groups[T] {
	g := &Groups[T]{of: of, make: make, all: map[part]*T{}, names: map[string]bool{}, words: map[string]bool{}}
	if of == nil {
		g.one = g.add(part{})
	}
	return g
}

// All is what belongs to the groups that were made so far.
func (g *Groups[T]) All() []*T {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.Collect(maps.Values(g.all))
}

// Of is what belongs to the group of this lock, of the holds with this word of rlock.Lasting; "" for those without one.
func (g *Groups[T]) Of(lock, lasting string) *T {
	if g.one != nil && lasting == "" {
		return g.one
	}
	p := part{lasting: lasting}
	if g.of != nil {
		p.group = cmp.Or(strings.ToValidUTF8(g.of(lock), "\uFFFD"), Other)
	}
	g.mu.RLock()
	t := g.all[p]
	g.mu.RUnlock()
	if t == nil {
		t = g.add(p)
	}
	return t
}

// add returns what belongs to a part that was not there, or to Other where there are too many.
func (g *Groups[T]) add(p part) *T {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.group, p.lasting = bounded(g.names, p.group, MaxGroups), bounded(g.words, p.lasting, MaxLasting)
	t := g.all[p]
	if t == nil {
		t = g.make(p.group, p.lasting)
		g.all[p] = t
	}
	return t
}

// bounded is the name, or Other where there are so many without it.
func bounded(known map[string]bool, name string, most int) string {
	switch {
	case name == "" || name == Other || known[name]:
		return name
	case len(known) >= most:
		return Other
	}
	known[name] = true
	return name
}
