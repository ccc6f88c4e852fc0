package main

import (
	"slices"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

func init() {
	after := slices.IndexFunc(contenders, func(c contender) bool { return c.name == "fencelock-unfenced" }) + 1
	contenders = slices.Insert(contenders, after, contender{
		name: blocks, note: "fenced.Lock with WithTokenBlocks: handoffs within a client without a round trip",
		can: sharedKeys, usual: "one,processes", dial: dialFencedBlocks,
	})
}

func dialFencedBlocks(addr string) (*client, error) {
	return dialRlock(addr, func(c *rlock.Client, key string) lockFunc {
		return lockOf(fenced.NewLock(c, key, fenced.WithTokenBlocks()))
	})
}
