//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Of each kind doctor asks for the rights in the lists of docs/operations.md: it misses none with the lists, and each word that is taken from them,
// and leaves nothing behind.
func TestDoctorForEachKind(t *testing.T) {
	t.Setenv(passwordVariable, "secret")
	t.Setenv(urlVariable, "")
	servers := []*redistest.Server{redistest.Real(t)}
	commands := slices.DeleteFunc(rightsOf(t, "server"), func(word string) bool { return !strings.HasPrefix(word, "+") })
	guard := slices.DeleteFunc(rightsOf(t, "guard"), func(word string) bool { return word == "~balance:*" || word == "+incrby" }) // of the user's own write
	queue := "%R~redisson_lock_queue:{account:*"
	if redisserver.IsRedis6() {
		queue = queue[2:]
	}
	for _, c := range []struct {
		kind  string
		list  []string
		more  []string // that the user has all the time
		tried string   // the check of what was done once; "" for nothing
	}{
		{"lock", rightsOf(t, "server"), nil, "lock"},
		{"rw", rightsOf(t, "server", "rwlocks"), nil, "rw"},
		{"semaphore", append(rightsOf(t, "semaphores"), commands...), nil, "semaphore"},
		{"quorum", rightsOf(t, "quorum"), nil, ""},
		{"guard", guard, nil, "guard"},
		{"presence", rightsOf(t, "presence"), rightsOf(t, "server"), ""},
		{"inspect", append(rightsOf(t, "inspect"), "+time"), nil, ""},
		{"force-unlock", append(rightsOf(t, "inspect", "free"), queue, "+time"), nil, ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			more := c.more
			if !slices.Contains(c.list, "+info") {
				more = append(slices.Clone(more), "+info")
			}
			all := slices.Concat(c.list, more)
			found := examined(t, connection{}, servers, all, c.kind)
			if words, worst := lacking(found); len(words) > 0 || worst == wrong {
				t.Fatalf("with all rights doctor misses %q, at worst %s: %v", words, worst, found)
			}
			if c.tried != "" && !slices.ContainsFunc(found, func(f finding) bool { return f.Check == c.tried && f.Result == fine }) {
				t.Errorf("nothing was done with it: %v", found)
			}
			for i, word := range c.list {
				if strings.HasPrefix(word, "%R") && slices.Contains(c.list, word[2:]) || redisserver.IsRedis6() && slices.Contains(c.list[:i], word) {
					continue // the same keys are the user's to write to
				}
				found := examined(t, connection{}, servers, slices.Concat(c.list[:i], c.list[i+1:], more), c.kind)
				if words, _ := lacking(found); !slices.Equal(words, []string{doctorsWord(word)}) && !slices.Equal(words, []string{word}) {
					t.Errorf("without %s doctor misses %q", word, words)
				}
				redistest.Eventually(t, soon, func() bool { return servers[0].Client().DBSize(t.Context()).Val() == 0 }, "without %s keys are left", word)
			}
		})
	}
	all, err := kindsOf(kindNames())
	if err != nil || !slices.Equal(kindNames(), strings.Split("lock rw semaphore quorum guard presence inspect force-unlock", " ")) || len(all) != len(kinds) {
		t.Errorf("the kinds are %q: %v", kindNames(), err)
	}
}

// What a kind does not work without is wrong where it was asked for.
func TestDoctorForIsSerious(t *testing.T) {
	t.Setenv(passwordVariable, "secret")
	t.Setenv(urlVariable, "")
	servers := []*redistest.Server{redistest.Real(t)}
	rights := append(rightsOf(t, "server"), "+info")
	for asked, want := range map[string]string{"": warning, "presence": wrong, "inspect": wrong, "lock": fine} {
		found := examined(t, connection{}, servers, rights, strings.Fields(asked)...)
		worst := fine
		for _, f := range found {
			if f.Check == "rights" && f.Result != fine && worst != wrong {
				worst = f.Result
			}
		}
		if worst != want {
			t.Errorf("--for %q: the worst of the rights is %s, want %s: %v", asked, worst, want, found)
		}
	}
}
