package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// Keys are the names that belong to one lock, with PermitsOf to one semaphore, or with ReadWriteOf to one side of a read-write lock.
type Keys struct {
	Lock  string // the hash, whose key is the lock's own name
	Token string // the fencing counter
	Line  string // the line of the clients that wait
	Slot  uint16 // the lock's hash slot in a cluster

	last *lastSlot // of a semaphore; nil of a lock
	side Side      // of a read-write lock; NoSide of another

	channel atomic.Pointer[any] // what Channel returns, as an argument of a command; nil until the first call
}

// Channel returns the name of the lock's channel, on which a release is published.
func (k *Keys) Channel() string { return k.told().(string) }

// told returns what Channel does, as an argument of a command.
func (k *Keys) told() any {
	c := k.channel.Load()
	if c == nil {
		c = new(any)
		*c = prefixed("redisson_lock__channel", k.Lock)
		k.channel.Store(c)
	}
	return *c
}

// KeysOf returns the keys of the lock with this name, in Redisson's form: prefix + ":{" + name + "}", and without added
// braces for a name that has an opening brace of its own.
func KeysOf(name string) *Keys {
	return &Keys{Lock: name, Token: prefixed("redisson_lock_token", name), Line: lineOf(name), Slot: slot(name)}
}

// lineOf returns the key of the lock's line. Locks called "a" and "{a}" share one counter and one channel, by Redisson's
// rule for names. They must not share one line (P34).
func lineOf(name string) string {
	if strings.Contains(name, "{") {
		return "fencelock_line_of:" + name
	}
	return "fencelock_line:{" + name + "}"
}

// barrier returns the name of a key that nobody ever writes, for a semaphore and a read-write lock, and "" for a lock. Their scripts use keys whose names
// they make themselves. While a cluster moves a hash slot, a node refuses a script with two keys of which one is not there, before the script runs: so
// none runs with a part of its keys on the other node (P54). That of a read-write lock says how long the lock's name is, by which the script knows what a
// hook or a proxy has put before that name.
func (k *Keys) barrier() string {
	switch {
	case k.last != nil:
		return k.Lock
	case k.side != NoSide:
		return k.LeaseOf(strconv.Itoa(len(k.Lock)), 1)
	}
	return ""
}

// LeaseOf returns the key that a hold of this field which reads has for its lease (P46). A hold of Redisson's has one for each of its levels, from 1 on.
func (k *Keys) LeaseOf(field string, level int) string {
	name := k.Lock
	if !strings.Contains(name, "{") {
		name = "{" + name + "}"
	}
	return name + ":" + field + ":rwlock_timeout:" + strconv.Itoa(level)
}

// Calls returns the name of the channel on which the client with this id is told about its place in the lock's line.
func (k *Keys) Calls(client string) string { return k.Line + ":" + k.InLine(client) }

// Waited returns the name of the channel on which the lock's holder is told that a client waits in the line.
func (k *Keys) Waited() string { return k.Line + ":waited" }

// Term returns the name of the channel on which a leader tells that its term has begun, or is over.
func (k *Keys) Term() string { return k.Line + ":term" }

func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// CheckCluster returns an error where the keys of the lock are not all in one hash slot, as a script in a Redis Cluster
// needs (P16). It asks no server. Names such as "a}b" or "a{b" fail: Redisson's form of the counter's name puts the counter
// into another slot.
func (k *Keys) CheckCluster() error {
	if hashTag(k.Lock) != hashTag(k.Token) {
		if k.last != nil {
			return fmt.Errorf("the locks of the slots of %q and their counters are in different hash slots of a cluster: use a name without braces, or with one pair around a part that is not empty", k.last.of)
		}
		return fmt.Errorf("name %q and its counter %q are in different slots of a cluster: use a name without braces, or with one pair around a part that is not empty", k.Lock, k.Token)
	}
	return nil
}

// hashTag is the part of a key that decides its slot (Redis Cluster specification, "Hash tags").
func hashTag(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}

// slots is how many hash slots a cluster has.
const slots = 16384

// slot is the hash slot of a key (Redis Cluster specification, "Key distribution model"): CRC16/XMODEM of the hash tag,
// modulo 16384.
func slot(key string) uint16 {
	var crc uint16
	for _, b := range []byte(hashTag(key)) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slots
}
