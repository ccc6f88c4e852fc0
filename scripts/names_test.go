package scripts

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P16: which names keep a lock and its counter in one slot of a cluster.
var namesOfP16 = []struct {
	name  string
	token string // the counter's key, in Redisson's form
	fits  bool
}{
	{"account:42", "redisson_lock_token:{account:42}", true},
	{"a", "redisson_lock_token:{a}", true},
	{"with space\x00\xff", "redisson_lock_token:{with space\x00\xff}", true},
	{"{a}b", "redisson_lock_token:{a}b", true},
	{"a{b}c", "redisson_lock_token:a{b}c", true},
	{"{a}{b}", "redisson_lock_token:{a}{b}", true},
	{"a{b}c}", "redisson_lock_token:a{b}c}", true},
	{"{{a}}", "redisson_lock_token:{{a}}", true},

	{"a{b", "redisson_lock_token:a{b", false},
	{"a{}b", "redisson_lock_token:a{}b", false},
	{"{}", "redisson_lock_token:{}", false},
	{"{}{a}", "redisson_lock_token:{}{a}", false},
	{"{", "redisson_lock_token:{", false},
	{"a}b", "redisson_lock_token:{a}b}", false},
	{"}x", "redisson_lock_token:{}x}", false},
	{"}", "redisson_lock_token:{}}", false},
	{"a}b{c}", "redisson_lock_token:a}b{c}", true},
	{"", "redisson_lock_token:{}", false},
}

func TestP16_WhichNamesFitACluster(t *testing.T) {
	for _, n := range namesOfP16 {
		k := KeysOf(n.name)
		if channel := strings.Replace(n.token, "_token", "__channel", 1); k.Lock != n.name || k.Token != n.token || k.Channel() != channel {
			t.Errorf("the keys of %q are %q, %q, %q, want %q, %q", n.name, k.Lock, k.Token, k.Channel(), n.token, channel)
		}
		err := k.CheckCluster()
		if (err == nil) != n.fits {
			t.Errorf("CheckCluster of %q says %v", n.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", n.name)) {
			t.Errorf("the error does not name %q: %v", n.name, err)
		}
	}
}

// randomName has braces more often than other things.
func randomName(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(9) {
		b.WriteString([]string{"{", "}", "{}", "a", "b", ":", "\x00", "ä", "{x}"}[rng.IntN(9)])
	}
	return b.String()
}

func TestP16_TheSlotsAreThoseOfRedis(t *testing.T) {
	rdb := redistest.Real(t, "--cluster-enabled", "yes").Client()
	seed, _ := firstSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var all []string
	for _, n := range namesOfP16 {
		all = append(all, n.name)
	}
	for range 2000 {
		all = append(all, randomName(rng))
	}
	pipe := rdb.Pipeline()
	slots := make([][3]*redis.IntCmd, len(all))
	for i, name := range all {
		k := KeysOf(name)
		slots[i] = [3]*redis.IntCmd{
			pipe.ClusterKeySlot(t.Context(), k.Lock), pipe.ClusterKeySlot(t.Context(), k.Token), pipe.ClusterKeySlot(t.Context(), k.Channel()),
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	both := map[bool]int{}
	for i, name := range all {
		lock, token, channel := slots[i][0].Val(), slots[i][1].Val(), slots[i][2].Val()
		fits := KeysOf(name).CheckCluster() == nil
		both[fits]++
		if same := lock == token && token == channel; fits != same {
			// Two parts that differ have one slot by chance, 1 of 16384: refused all the same.
			if fits || tagOf(name) == tagOf(KeysOf(name).Token) {
				t.Errorf("seed %d: name %q is in slots %d, %d, %d, and CheckCluster says that this fits: %v", seed, name, lock, token, channel, fits)
			}
		}
		if got := int64(KeysOf(name).Slot); got != lock {
			t.Errorf("seed %d: name %q is in slot %d, Redis says %d", seed, name, got, lock)
		}
	}
	if both[true] < 100 || both[false] < 100 {
		t.Errorf("of %d names %d fit: the random names try nothing", len(all), both[true])
	}
}

// tagOf is keyHashSlot of Redis's cluster.c, loop by loop.
func tagOf(key string) string {
	s, e := 0, 0
	for s = 0; s < len(key); s++ {
		if key[s] == '{' {
			break
		}
	}
	if s == len(key) {
		return key // no '{'
	}
	for e = s + 1; e < len(key); e++ {
		if key[e] == '}' {
			break
		}
	}
	if e == len(key) || e == s+1 {
		return key // no '}', or nothing between the two
	}
	return key[s+1 : e]
}

func FuzzKeysOf(f *testing.F) {
	for _, n := range namesOfP16 {
		f.Add(n.name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		k := KeysOf(name)
		if k.Lock != name {
			t.Errorf("the lock of %q is %q", name, k.Lock)
		}
		if a, b := strings.TrimPrefix(k.Token, "redisson_lock_token:"), strings.TrimPrefix(k.Channel(), "redisson_lock__channel:"); a != b ||
			a != name && a != "{"+name+"}" || (a == name) != strings.Contains(name, "{") {
			t.Errorf("the keys of %q are %+v", name, k)
		}
		for _, key := range []string{k.Lock, k.Token, k.Channel()} {
			if hashTag(key) != tagOf(key) {
				t.Errorf("%q hashes by %q, want %q", key, hashTag(key), tagOf(key))
			}
		}
		if k.Slot >= 16384 || k.Slot != slot(tagOf(name)) && tagOf(tagOf(name)) == tagOf(name) {
			t.Errorf("%q is in slot %d, its tag in %d", name, k.Slot, slot(tagOf(name)))
		}
		fits := tagOf(k.Lock) == tagOf(k.Token) && tagOf(k.Lock) == tagOf(k.Channel())
		if err := k.CheckCluster(); (err == nil) != fits {
			t.Errorf("CheckCluster of %+v says %v", k, err)
		}
	})
}
