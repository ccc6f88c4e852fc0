package scripts

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Keys are the names that belong to one lock.
type Keys struct {
	Lock  string // the hash, whose key is the lock's own name
	Token string // the fencing counter
	Line  string // the line of the clients that wait
	Slot  uint16 // the lock's hash slot in a cluster

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

// Calls returns the name of the channel on which the client with this id is told about its place in the lock's line.
func (k *Keys) Calls(client string) string { return k.Line + ":" + client }

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
