package quorums

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MembersKey is the key in which each server of a quorum has its members. Package quorum says what the clients make of it.
const MembersKey = "fencelock:quorum:members"

// Members says which servers are a quorum. Each change of a quorum's servers is a generation with other members.
type Members struct {
	Generation int
	Size       int      // a majority of so many servers has a lock, though fewer may have names while one is replaced
	Names      []string // of the servers, sorted
	Out        bool     // the server that has this record is none of them any more
}

// NewMembers returns the first generation: of servers with these names. It is an error where a name cannot be in a record, or is there twice.
func NewMembers(names []string) (Members, error) {
	m := Members{Generation: 1, Size: len(names), Names: slices.Sorted(slices.Values(names))}
	for i, n := range m.Names {
		switch {
		case n == "" || n == out || strings.ContainsAny(n, " \r\n"):
			return m, fmt.Errorf("%q cannot be the name of a server: give it an address", n)
		case i > 0 && n == m.Names[i-1]:
			return m, fmt.Errorf("two servers have the name %s: give each an address of its own", n)
		}
	}
	return m, nil
}

// out is in the record of a server that is no member any more, in front of the names.
const out = "out"

// String returns the record: the generation, the size and the names.
func (m Members) String() string {
	words := []string{strconv.Itoa(m.Generation), strconv.Itoa(m.Size)}
	if m.Out {
		words = append(words, out)
	}
	return strings.Join(append(words, m.Names...), " ")
}

// ParseMembers reads a record.
func ParseMembers(text string) (m Members, err error) {
	words := strings.Fields(text)
	if len(words) > 2 {
		m.Generation, err = strconv.Atoi(words[0])
		size, wrong := strconv.Atoi(words[1])
		m.Size, err = size, cmp.Or(err, wrong)
		m.Names = words[2:]
		if m.Out = m.Names[0] == out; m.Out {
			m.Names = m.Names[1:]
		}
	}
	if err != nil || m.Generation < 1 || m.Size < 1 || len(m.Names) < m.Majority() || len(m.Names) > m.Size || !slices.IsSorted(m.Names) {
		return Members{}, errors.New("the key " + MembersKey + " has no record of a quorum's members: " + strconv.Quote(text))
	}
	return m, nil
}

// Newest returns the newest of these records; generation 0 where there is none.
func Newest(records ...string) (newest Members) {
	for _, text := range records {
		if m, err := ParseMembers(text); err == nil && (newest.Generation == 0 || m.Compare(newest) > 0) {
			newest = m
		}
	}
	newest.Out = false
	return newest
}

// Majority is how many servers are a majority.
func (m Members) Majority() int { return m.Size/2 + 1 }

// Has tells whether a server of this name is a member.
func (m Members) Has(name string) bool { return slices.Contains(m.Names, name) }

// Compare orders records by age: it is positive where m is the newer one. Two first generations, which clients with different servers have written at the same
// moment, are ordered by what they say.
func (m Members) Compare(other Members) int {
	m.Out, other.Out = false, false
	return cmp.Or(cmp.Compare(m.Generation, other.Generation), cmp.Compare(m.String(), other.String()))
}

// common returns how many of these names are members.
func (m Members) common(names []string) (n int) {
	for _, name := range names {
		if m.Has(name) {
			n++
		}
	}
	return n
}

// overlaps tells whether each majority of m has a server in common with each majority of next.
func (m Members) overlaps(next Members) bool {
	all := len(m.Names) + len(next.Names) - m.common(next.Names)
	return m.Majority()+next.Majority() > all
}

// Way returns the generations that lead from m to the servers to, each of whose majorities overlaps with those of the one before. In each of them the servers
// from, those that clients have now, as far as they are up, are a majority, and the servers to are one: so clients that know the one or the other get locks
// all the while.
func (m Members) Way(from, to []string) ([]Members, error) {
	to = slices.Sorted(slices.Values(to))
	type state struct {
		Members
		before int // the place of the generation before it
	}
	serves := func(s Members) bool {
		return len(s.Names) <= s.Size && s.common(from) >= s.Majority() && s.common(to) >= s.Majority()
	}
	m.Out = false
	seen, queue := map[string]bool{}, []state{{m, -1}}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if s.Size == len(to) && slices.Equal(s.Names, to) {
			var way []Members
			for ; s.before >= 0; s = queue[s.before] {
				way = append(way, s.Members)
			}
			slices.Reverse(way)
			return way, nil
		}
		for _, next := range s.next(to) {
			key := strings.Join(append(next.Names, strconv.Itoa(next.Size)), " ")
			if !seen[key] && s.overlaps(next) && serves(next) {
				seen[key] = true
				queue = append(queue, state{next, i})
			}
		}
	}
	return nil, fmt.Errorf("no way leads from %s to %s on which programs that have the old servers, and those that have the new ones, both have a majority all the while: replace fewer at once",
		strings.Join(m.Names, ", "), strings.Join(to, ", "))
}

// next returns the generations that may follow on the way to these servers: one server less, one more, or both, with a size of one less or more. Those with
// the same size come first.
func (m Members) next(to []string) (all []Members) {
	leaving, coming := []string{""}, []string{""}
	for _, n := range m.Names {
		if !slices.Contains(to, n) {
			leaving = append(leaving, n)
		}
	}
	for _, n := range to {
		if !m.Has(n) {
			coming = append(coming, n)
		}
	}
	for _, size := range []int{m.Size, m.Size - 1, m.Size + 1} {
		for _, less := range leaving {
			for _, more := range coming {
				names := slices.DeleteFunc(slices.Clone(m.Names), func(n string) bool { return n == less })
				if more != "" {
					names = append(names, more)
				}
				slices.Sort(names)
				if size > 0 && (size != m.Size || !slices.Equal(names, m.Names)) {
					all = append(all, Members{Generation: m.Generation + 1, Size: size, Names: names})
				}
			}
		}
	}
	return all
}
