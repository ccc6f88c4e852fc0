//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// rightsOf returns these lists of docs/operations.md, as the words that ACL SETUSER takes, for locks called account:...
func rightsOf(t *testing.T, lists ...string) (words []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatalf("the lists of rights are not here: %v", err)
	}
	for _, list := range lists {
		block := regexp.MustCompile("(?s)```acl " + list + "\n(.*?)```").FindSubmatch(text)
		if block == nil {
			t.Fatalf("no list %q", list)
		}
		for _, word := range strings.Fields(string(block[1])) {
			if redisserver.IsRedis6() {
				word = strings.TrimPrefix(word, "%R")
			}
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// examined is what doctor finds on servers, as a user with these rights, of what was asked for.
func examined(t *testing.T, at connection, servers []*redistest.Server, rights []string, names ...string) []finding {
	t.Helper()
	kinds, err := kindsOf(names)
	if err != nil {
		t.Fatal(err)
	}
	args := []any{"acl", "setuser", "limited", "reset", "on", ">secret", "resetchannels", "-@all"}
	for _, word := range rights {
		args = append(args, word)
	}
	for _, server := range servers {
		for _, command := range [][]any{{"acl", "deluser", "limited"}, args} {
			if err := server.Client().Do(t.Context(), command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	at.urls = []string{"redis://limited@" + servers[0].Addr() + strings.Join(at.urls, "")}
	v, err := at.view()
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	d := &doctor{viewer: v}
	d.examine(context.Background(), &at, kinds, []string{"account:42"})
	return d.findings
}

// lacking are the words that doctor says are missing, and the worst that it says.
func lacking(found []finding) (words []string, worst string) {
	worst = fine
	for _, f := range found {
		if f.Check == "rights" && f.Result != fine {
			said, _, _ := strings.Cut(strings.TrimPrefix(f.Text, "the user lacks "), ", for ")
			words = append(words, strings.Fields(said)...)
		}
		if f.Result == wrong || worst == fine {
			worst = f.Result
		}
	}
	slices.Sort(words)
	return slices.Compact(words), worst
}

// doctorsWord is what doctor calls a word of the page: the lock's own keys by the name that was tried, all others by their prefix.
func doctorsWord(word string) string {
	reads := ""
	if strings.HasPrefix(word, "%R") {
		reads, word = "%R", word[2:]
	}
	if own := map[string]string{
		"~account:*": "~account:42*", "~{account:*}:*": "~{account:42}:*", "~{account:*}:*:rwlock_timeout:1": "~*:rwlock_timeout:*", "~fencelock:quorum": "~fencelock:quorum",
		"~fencelock_line_of:{account:*}:*": ofLine, "&fencelock_line_of:{account:*}:*": ofCalls,
	}[word]; own != "" {
		return reads + own
	}
	word, _, _ = strings.Cut(word, ":")
	word = reads + word
	return strings.TrimSuffix(word, "*") + map[bool]string{true: "*"}[!strings.HasPrefix(word, "+")]
}

// Doctor names each right that is missing, and no other, says wrong where locks do not work without it, and leaves nothing behind.
func TestDoctorNamesEachRight(t *testing.T) {
	t.Setenv(passwordVariable, "secret")
	t.Setenv(urlVariable, "")
	each := func(t *testing.T, at connection, servers []*redistest.Server, lists ...string) {
		list := append(rightsOf(t, lists...), "+info", "+config|get")
		if words, worst := lacking(examined(t, at, servers, list)); len(words) > 0 || worst == wrong {
			t.Fatalf("with all rights doctor misses %q, at worst %s: %v", words, worst, examined(t, at, servers, list))
		}
		warns := []string{"+set", "+time", "+publish", "+subscribe", "+unsubscribe", "+spublish", "+ssubscribe", "+sunsubscribe", "+ping",
			"+pubsub|shardnumsub", "+asking", "+command", "~fencelock_line:{account:*", "~fencelock_client*"}
		for i, word := range list {
			if strings.HasPrefix(word, "%") || slices.Contains([]string{"+info", "+config|get"}, word) ||
				redisserver.IsRedis6() && strings.HasPrefix(word, "~fencelock_line") {
				continue // the same keys are the user's to write to
			}
			found := examined(t, at, servers, slices.Concat(list[:i], list[i+1:]))
			words, worst := lacking(found)
			if word == "+cluster|slots" {
				if worst != wrong || !strings.Contains(found[0].Text, word) {
					t.Errorf("without %s: %v", word, found)
				}
				continue
			}
			if !slices.Equal(words, []string{doctorsWord(word)}) && !slices.Equal(words, []string{word}) {
				t.Errorf("without %s doctor misses %q", word, words)
			}
			onlyWarns := slices.Contains(warns, word) || strings.HasPrefix(word, "&") || strings.HasPrefix(word, "+z") ||
				slices.Contains(rightsOf(t, "presence", "inspect", "inspect-cluster"), word) && !slices.Contains(rightsOf(t, "server"), word)
			if (worst == wrong) == onlyWarns {
				t.Errorf("without %s: %v", word, found)
			}
			for _, server := range servers {
				if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
					t.Errorf("without %s: %q are left", word, keys)
					server.Client().FlushAll(t.Context())
				}
			}
		}
	}
	t.Run("server", func(t *testing.T) {
		each(t, connection{}, []*redistest.Server{redistest.Real(t)}, "server", "presence", "inspect")
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.Clustered(t, 2, 0)
		if !c.Sharded() {
			each(t, connection{cluster: true}, c.Nodes, "server", "cluster-6.2", "presence", "inspect")
			return
		}
		each(t, connection{cluster: true}, c.Nodes, "cluster", "presence", "inspect-cluster")
	})
}

// A user who may not do what a connection begins with is told the right for it.
func TestDoctorOfAConnection(t *testing.T) {
	t.Setenv(passwordVariable, "secret")
	t.Setenv(urlVariable, "")
	servers := []*redistest.Server{redistest.Real(t)}
	for at, word := range map[string]string{"/1": "+select", "?client_name=me": "+client|setname"} {
		list := rightsOf(t, "server", "presence", "inspect")
		found := examined(t, connection{urls: []string{at}}, servers, list)
		if len(found) != 1 || found[0].Result != wrong || !strings.Contains(found[0].Text, word) {
			t.Errorf("%s: %v", at, found)
		}
		if words, worst := lacking(examined(t, connection{urls: []string{at}}, servers, append(list, word))); len(words) > 0 || worst == wrong {
			t.Errorf("%s with %s: misses %q, at worst %s", at, word, words, worst)
		}
	}
}

// Doctor says of a Sentinel and of a replica what they are, also to a user without INFO, and exits as somebody who found something wrong.
func TestDoctorOfWhatKeepsNoLocks(t *testing.T) {
	t.Setenv(urlVariable, "")
	says := func(addr, text string) {
		t.Helper()
		p := start(t, addr, "doctor")
		out, err := io.ReadAll(p.lines)
		if err != nil || !strings.Contains(string(out), text) || strings.Contains(string(out), "rights") {
			t.Errorf("doctor says\n%s\nwant %q: %v", out, text, err)
		}
		equal(t, "exit code", p.ends(), exitFailed)
	}
	watched := redistest.Watched(t, 1)
	says(watched.Sentinels[0].Addr(), "this is a Sentinel")
	r := redistest.Replicated(t, 1)
	replica := r.Replicas[0]
	says(replica.Addr(), "this server is a replica, which cannot keep locks")
	if err := replica.Client().ConfigSet(t.Context(), "replica-read-only", "no").Err(); err != nil {
		t.Fatal(err)
	}
	says(replica.Addr(), "gives out locks that its master knows nothing of")
	t.Setenv(passwordVariable, "secret")
	for _, server := range []*redistest.Server{replica, watched.Sentinels[0]} {
		found := examined(t, connection{}, []*redistest.Server{server}, []string{"+ping", "+role"})
		if i := slices.IndexFunc(found, func(f finding) bool { return f.Check == "role" }); i < 0 || found[i].Result != wrong {
			t.Errorf("without INFO doctor finds %v", found)
		}
	}
}

// A right is named where Redis refuses a command, and not where no answer comes.
func TestDoctorTellsARefusalFromSilence(t *testing.T) {
	for says, why := range map[string]error{
		"no answer, so that":                   os.ErrDeadlineExceeded,
		"the server does not know the command": locktest.Reply("ERR unknown command 'INFO', with args beginning with: "),
		"the user may not ask for it, so that": locktest.Reply("NOPERM User x has no permissions to run the 'info' command"),
	} {
		rdb := redistest.New(t)
		rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
			if cmd.Name() == "info" {
				return why
			}
			return send()
		}))
		d := &doctor{viewer: &viewer{rdb: rdb}}
		kinds, _ := kindsOf(nil)
		d.examine(t.Context(), &connection{}, kinds, nil)
		if i := slices.IndexFunc(d.findings, func(f finding) bool { return f.Check == "INFO" }); i < 0 || !strings.HasPrefix(d.findings[i].Text, says) {
			t.Errorf("%v: doctor finds %v", why, d.findings)
		}
	}
}
