//go:build unix

package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Doctor says of each server of a quorum what it is worth to a majority, and of all what only all show.
func TestDoctorOfAQuorum(t *testing.T) {
	t.Parallel()
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	var servers []*redistest.Server
	for i := range 5 {
		servers = append(servers, redistest.Real(t, always[:map[bool]int{true: 0, false: 4}[i == 1]]...))
	}
	doctor := func(code int, more []string, urls ...string) string {
		t.Helper()
		p := start(t, servers[0].Addr(), append([]string{"doctor", "--url", strings.Join(urls, ",")}, more...)...)
		text, err := io.ReadAll(p.lines)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "exit code", p.ends(), code)
		return string(text)
	}
	says := func(text string, all ...string) {
		t.Helper()
		for _, part := range all {
			if !strings.Contains(text, part) {
				t.Errorf("doctor says\n%s\nand not %q", text, part)
			}
		}
	}
	url := func(i int) string { return "redis://" + servers[i].Addr() }
	all := []string{url(0), url(1), url(2), url(3), url(4)}

	says(doctor(exitFailed, []string{"--max-lease", "1h"}, all...), "it counts in ", "0 of 5 servers count, and 3 are a majority (not "+strings.Join(all, ", ")+"): nobody gets a lock",
		"After a restart it does not count for the longest lease, for want of appendonly yes, appendfsync always")

	for _, s := range servers[:3] { // as clients leave it, in a run before
		s.Do("set", proof, "another run")
	}
	says(doctor(0, []string{"--max-lease", "1h"}, url(0), url(2), url(3)), "A restart loses nothing\n", "that is proved only when a client has left the key", "2 of 3 servers count", "and 0 more may be away")
	says(doctor(exitFailed, nil, url(1)+"/0", url(1)+"/1", url(0)), url(1)+"/0 and "+url(1)+"/1 are one server", "no client works with one server twice")
	says(doctor(0, nil, url(1), url(0), url(2)), "the key fencelock:quorum is of other settings: DEL it")
	says(doctor(exitFailed, nil, "redis://127.0.0.1:1", "redis://127.0.0.1:2", url(0)), "away: connection refused", "nobody gets a lock")
	says(doctor(exitUsage, []string{"--max-lease", "25h"}, all...))

	for user, rights := range map[string][]string{
		"poor":  {"-hincrby"},
		"blind": {"-info"},
		"mute":  {"-config"},
	} {
		args := []any{"acl", "setuser", user, "on", "nopass", "~*", "&*", "+@all"}
		for _, word := range rights {
			args = append(args, word)
		}
		servers[0].Do(args...)
	}
	as := func(user string) string { return strings.Replace(url(0), "//", "//"+user+":x@", 1) }
	t.Run("rights", func(t *testing.T) {
		for user, parts := range map[string][]string{
			"poor":  {"the user lacks +hincrby, for a quorum"},
			"blind": {"does not tell its run id and uptime, which are of INFO: it never counts", "give the user +info"},
			"mute":  {"What a restart loses is not known: give the user +config|get"},
		} {
			file := t.TempDir() + "/urls"
			if err := os.WriteFile(file, []byte(as(user)+"\n"+url(2)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, servers[0].Addr(), "doctor", "--urls-file", file, "--max-lease", "1h")
			text, _ := io.ReadAll(p.lines)
			equal(t, "exit code as "+user, p.ends(), exitFailed)
			says(string(text), append(parts, "1 of 2 servers count")...)
		}
	})
	for i, s := range servers {
		if keys := s.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 && !slices.Equal(keys, []string{proof}) {
			t.Errorf("server %d: %q are left", i, keys)
		}
	}
}

// What only all servers show.
func TestDoctorOfServersTogether(t *testing.T) {
	server := func(run, version string, trip time.Duration, counts bool) *quorumServer {
		return &quorumServer{shown: "redis://" + run, run: run, version: version, trip: trip, counts: counts}
	}
	const near = time.Millisecond
	for _, c := range []struct {
		what string
		all  []*quorumServer
		want []finding
	}{
		{"in health", []*quorumServer{server("a", "Redis 8.0.2", near, true), server("b", "Redis 8.0.2", 2*near, true), server("c", "Redis 8.0.2", 3*near, true)},
			[]finding{{"", "quorum", fine, "3 of 3 servers count, and 2 are a majority: locks work, and 1 may be away"}}},
		{"versions, and one that is far", []*quorumServer{server("a", "Redis 8.0.2", near, true), server("b", "Redis 7.0.15", near, true), server("c", "Redis 8.0.2", 10*near, true)},
			[]finding{{"", "versions", warning, "they differ: Redis 7.0.15, Redis 8.0.2"}, {"", "distance", warning, "redis://c is 10ms away, a majority at most 1ms"}, {"", "quorum", fine, "3 of 3"}}},
		{"two that do not count", []*quorumServer{server("a", "", near, true), server("b", "", near, false), server("c", "", near, true), server("d", "", near, true), server("e", "", near, true)},
			[]finding{{"", "quorum", warning, "4 of 5 servers count, and 3 are a majority (not redis://b): locks work, and 1 more may be away"}}},
		{"an even number", []*quorumServer{server("a", "", near, true), server("b", "", near, false)},
			[]finding{{"", "quorum", wrong, "1 of 2 servers count, and 2 are a majority"}}},
	} {
		found := together(c.all)
		same := len(found) == len(c.want)
		for i := 0; same && i < len(found); i++ {
			same = found[i].Check == c.want[i].Check && found[i].Result == c.want[i].Result && strings.HasPrefix(found[i].Text, c.want[i].Text)
		}
		if !same {
			t.Errorf("%s: doctor finds %q", c.what, found)
		}
	}
}
