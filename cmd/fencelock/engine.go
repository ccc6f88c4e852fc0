package main

import "strings"

// engines are those that name themselves in INFO server by a version of their own.
var engines = []struct{ field, name string }{
	{"valkey_version", "Valkey"}, {"dragonfly_version", "Dragonfly"}, {"garnet_version", "Garnet"}, {"kvrocks_version", "Kvrocks"}, {"upstash_version", "Upstash"},
}

// engineOf returns the server's program and its version, by its INFO. tried: the tests of the locks run on it.
func engineOf(info map[string]string) (name, version string, tried bool) {
	name, version, tried = "Redis", info["redis_version"], true
	if info["mvcc_depth"] != "" {
		name, tried = "KeyDB", false
	}
	for _, e := range engines {
		if v := info[e.field]; v != "" {
			name, version, tried = e.name, v, e.name == "Valkey"
		}
	}
	if info["os"] == "Amazon ElastiCache" {
		name = "ElastiCache, " + name
	}
	return name, version, tried
}

// rows are those of docs/choosing.md on engines that INFO tells.
var rows = []string{"Dragonfly", "ElastiCache", "Garnet", "KeyDB", "Upstash"}

// seeRow names the row on the engine, where there is one.
func seeRow(name string) string {
	for _, row := range rows {
		if strings.HasPrefix(name, row) {
			return "; see docs/choosing.md, row " + row
		}
	}
	return ""
}
