package main

import (
	"os"
	"strings"
	"testing"
)

// Doctor names the engine, where INFO tells it, and does not take another engine's version for one of Redis.
func TestDoctorNamesTheEngine(t *testing.T) {
	for says, info := range map[string]map[string]string{
		"ok Redis 7.0.15":                                {"redis_version": "7.0.15"},
		"wrong Redis 5.0.4: ":                            {"redis_version": "5.0.4"},
		"ok Valkey 8.1.1":                                {"redis_version": "7.2.4", "valkey_version": "8.1.1"},
		"ok ElastiCache, Valkey 8.0.1":                   {"redis_version": "7.2.4", "valkey_version": "8.0.1", "os": "Amazon ElastiCache"},
		"wrong ElastiCache, Redis 5.0.4: locks need":     {"redis_version": "5.0.4", "os": "Amazon ElastiCache"},
		"warning Dragonfly df-v1.40.1: the tests":        {"redis_version": "7.4.0", "dragonfly_version": "df-v1.40.1"},
		"warning Garnet 1.0.80: the tests":               {"redis_version": "7.4.3", "garnet_version": "1.0.80"},
		"warning Kvrocks 2.9.0: the tests":               {"redis_version": "4.0.0", "kvrocks_version": "2.9.0"},
		"warning Upstash 1.10.5: the tests":              {"redis_version": "6.2.6", "upstash_version": "1.10.5"},
		"warning KeyDB 6.3.4: the tests of the locks do": {"redis_version": "6.3.4", "mvcc_depth": "0"},
	} {
		d := doctor{info: info}
		d.examineVersion()
		if f := d.findings[0]; len(d.findings) != 1 || !strings.HasPrefix(f.Result+" "+f.Text, says) {
			t.Errorf("%v: %+v, want %q", info, d.findings, says)
		}
	}
}

// Doctor names the row of docs/choosing.md on the engine, and each row is there.
func TestDoctorNamesTheRow(t *testing.T) {
	for row, info := range map[string]map[string]string{
		"; see docs/choosing.md, row KeyDB":       {"redis_version": "6.3.4", "mvcc_depth": "0"},
		"; see docs/choosing.md, row ElastiCache": {"redis_version": "7.1.0", "os": "Amazon ElastiCache"},
		"Redis 7.1.0": {"redis_version": "7.1.0"},
	} {
		d := doctor{info: info}
		d.examineVersion()
		if text := d.findings[0].Text; !strings.HasSuffix(text, row) {
			t.Errorf("%v: %q, want %q", info, text, row)
		}
	}
	page, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(page), "\n| "+row+" |") {
			t.Errorf("docs/choosing.md has no row %s", row)
		}
	}
}
