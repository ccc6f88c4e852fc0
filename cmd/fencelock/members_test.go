//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The members of a quorum are shown, and changed: one that is away is replaced, and two more come.
func TestQuorumChange(t *testing.T) {
	t.Parallel()
	var servers []*redistest.Server
	for range 8 {
		servers = append(servers, redistest.Real(t))
	}
	list := func(these ...int) (file string, names []string) {
		var urls strings.Builder
		for _, i := range these {
			urls.WriteString("redis://" + servers[i].Addr() + "\n")
			names = append(names, servers[i].Addr())
		}
		file = filepath.Join(t.TempDir(), "urls")
		if err := os.WriteFile(file, []byte(urls.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return file, names
	}
	now, names := list(0, 1, 2)
	_, said, code := fencelock(t, "quorum", "--urls-file", now)
	equal(t, "exit code without a record", code, exitFailed)
	has(t, "a quorum without a record", said, "no server has a record of the members")

	first, err := quorums.NewMembers(names)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers[:2] { // the third one has not got it yet
		s.Do("set", quorums.MembersKey, first.String())
	}
	out, _, _ := fencelock(t, "quorum", "--urls-file", now)
	has(t, "the members", out, names[2]+"  yes     none\n", "generation 1: 2 of ")

	five, _ := list(0, 1, 3, 4, 5)
	_, said, code = fencelock(t, "quorum", "--urls-file", now, "--to", five, "--max-lease", "1h")
	equal(t, "exit code where no way leads there", code, exitFailed)
	has(t, "no way", said, "replace fewer at once")

	servers[2].Kill()
	other, _ := list(0, 1, 3)
	out, said, code = fencelock(t, "quorum", "--urls-file", now, "--to", other, "--max-lease", "1s")
	equal(t, "exit code of a change: "+said, code, 0)
	has(t, "a change", said, ": a majority of 3, of ", servers[2].Addr()+" is away", "waiting 2s", servers[3].Addr())
	has(t, "a change", out, "changed: give all programs ", servers[3].Addr()+", then stop the others")
	all, names := list(0, 1, 3, 4, 5)
	_, said, code = fencelock(t, "quorum", "--urls-file", other, "--to", all, "--max-lease", "1s")
	equal(t, "exit code of a change: "+said, code, 0)
	out, _, _ = fencelock(t, "quorum", "--urls-file", all)
	for _, name := range names {
		has(t, "the members", out, name+"  yes     the newest\n")
	}
	has(t, "the members", out, ": 3 of ")

	servers[5].Kill() // one that came dies, and is replaced by one that does not answer, and then by one that does
	servers[6].Kill()
	dead, _ := list(0, 1, 3, 4, 6)
	_, said, code = fencelock(t, "quorum", "--urls-file", all, "--to", dead, "--max-lease", "1s")
	equal(t, "exit code where a new one is away", code, exitFailed)
	if has(t, "a new one that is away", said, servers[6].Addr()+": ", "have to be up"); strings.Contains(said, "generation") {
		t.Errorf("a generation was written: %s", said)
	}
	again, _ := list(0, 1, 3, 4, 7)
	_, said, code = fencelock(t, "quorum", "--urls-file", all, "--to", again, "--max-lease", "1s")
	equal(t, "exit code of a second change: "+said, code, 0)
	all = again

	two, _ := list(0, 1, 3, 4)
	servers[3].Kill()
	_, said, code = fencelock(t, "quorum", "--urls-file", all, "--to", two, "--max-lease", "1s")
	equal(t, "exit code where one that stays is away", code, exitFailed)
	has(t, "one that stays", said, servers[3].Addr()+": ", "have to be up")
}
