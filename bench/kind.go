package main

import "math/rand/v2"

// Kinds of what is acquired, beside "", a lock.
const (
	semaphore = "semaphore"
	readWrite = "rwlock"
)

// permits is how many a semaphore has.
const permits = 5

// kindModes are for what is no plain lock. A client stands for a process, as in the modes of many clients.
func kindModes() []mode {
	var all []mode
	for _, m := range []mode{{kind: semaphore}, {kind: readWrite, reads: 10}, {kind: readWrite, reads: 9}} {
		for _, inside := range []string{"", "2ms"} {
			for _, n := range []int{4, 16, 64} {
				m.inside = inside
				all = append(all, m.with(n, 1))
			}
		}
	}
	for _, inside := range []string{"", "2ms"} {
		all = append(all, mode{kind: readWrite, lone: true, inside: inside}.with(65, 1))
	}
	return all
}

// kindGroup is the mode's group where it has a kind.
func (m mode) kindGroup() string {
	switch {
	case m.kind == semaphore:
		return m.kind
	case m.lone:
		return m.kind + "-lone"
	case m.reads < 10:
		return m.kind + "-mixed"
	}
	return m.kind + "-readers"
}

// reading tells whether the next use of a caller reads.
func (m mode) reading(caller int) bool {
	if m.lone {
		return caller > 0
	}
	return m.reads > 0 && rand.IntN(10) < m.reads
}

// room is how much there is inside, of which a use takes its weight.
func (m mode) room() int32 {
	switch m.kind {
	case semaphore:
		return permits
	case readWrite:
		return 1 << 20
	}
	return 1
}

func (m mode) weight(reading bool) int32 {
	if m.kind == readWrite && !reading {
		return m.room()
	}
	return 1
}

// timed tells whether the times of a use count.
func (m mode) timed(reading bool) bool { return !m.lone || !reading }

// has tells whether the contender has what is acquired in the mode.
func (c contender) has(m mode) bool {
	_, has := c.kinds[m.kind]
	return has || m.kind == ""
}
