package main

import (
	"fmt"
	"strconv"
)

// fsync says what a crash costs a server with appendonly, by its settings of appendfsync, or the error of who asked for them.
func fsync(set map[string]string, err error) (result, text string) {
	const lost = "if the machine fails %s lost: a lock taken then is free while its holder works, and tokens may come twice. Set appendfsync always, or use fenced.WithClockFloor"
	switch how := "appendonly, appendfsync " + set["appendfsync"]; {
	case err != nil:
		return warning, fmt.Sprintf("appendonly. Whether a crash loses locks and tokens depends on appendfsync, which the server does not tell: give the user +config|get (%v)", err)
	case set["appendfsync"] == "everysec":
		return warning, how + ": " + fmt.Sprintf(lost, "the last second or two are")
	case set["appendfsync"] != "always":
		return warning, how + ": " + fmt.Sprintf(lost, "half a minute or more is")
	case set["no-appendfsync-on-rewrite"] == "yes":
		return warning, how + ", but no-appendfsync-on-rewrite yes: " + fmt.Sprintf(lost, "all since the rewrite of the file began is")
	default:
		return fine, how
	}
}

// nearly is the part of maxmemory from which on there is little room left.
const nearly = 0.9

// examineRoom looks whether the server is at its maxmemory, where it refuses acquires. What a server does not count for that it says itself.
func (d *doctor) examineRoom() {
	number := func(name string) float64 { n, _ := strconv.ParseFloat(d.info[name], 64); return n }
	bound, used := number("maxmemory"), number("used_memory")-number("mem_not_counted_for_evict")
	const most = "maxmemory-policy noeviction, %s used of maxmemory %s: "
	switch mega := func(n float64) string { return fmt.Sprintf("%.1f MB", n/(1<<20)) }; {
	case bound > 0 && used >= bound:
		d.note(wrong, "memory", most+"acquires return OOM, and only releases work. Set maxmemory higher, or delete other keys", mega(used), mega(bound))
	case bound > 0 && used >= nearly*bound:
		d.note(warning, "memory", most+"at maxmemory acquires return OOM. Set maxmemory higher, or delete other keys", mega(used), mega(bound))
	default:
		d.note(fine, "memory", "maxmemory-policy noeviction")
	}
}
