package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// hashSlots is how many hash slots a cluster has.
const hashSlots = 16384

// examineSlots looks whether each hash slot of a cluster has a node. Where one has none the cluster may refuse all, and go-redis asks again and
// again.
func (d *doctor) examineSlots(ctx context.Context) (complete bool) {
	cluster, is := d.rdb.(*redis.ClusterClient)
	if !is {
		return true
	}
	ranges, err := cluster.Do(ctx, "CLUSTER", "SLOTS").Slice()
	if err != nil {
		return true // onEach says so
	}
	served := 0
	for _, r := range ranges {
		if r, is := r.([]any); is && len(r) > 1 { // the first slot, the last one, and their nodes
			first, _ := r[0].(int64)
			last, _ := r[1].(int64)
			served += int(last - first + 1)
		}
	}
	if served < hashSlots {
		d.note(wrong, "cluster", "%d of %d hash slots have no node: locks in these are refused with CLUSTERDOWN. Give them to one: redis-cli --cluster fix", hashSlots-served, hashSlots)
	}
	return served >= hashSlots
}
