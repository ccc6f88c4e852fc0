package redistest_test

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

func TestMatch(t *testing.T) {
	const text = "return 1"
	sha := redis.NewScript(text).Hash()
	eval, evalsha := []string{"eval", text, "0"}, []string{"evalsha", sha, "0"}
	get := []string{"GET", "n"}
	name, script := redistest.Command("get"), redistest.Script(sha)
	for i, c := range []struct {
		match func([]string) bool
		args  []string
		want  bool
	}{
		{name, get, true},
		{name, eval, false},
		{script, eval, true},
		{script, evalsha, true},
		{script, get, false},
		{script, []string{"EVAL", "return 2", "0"}, false},
		{script, []string{"EVALSHA"}, false},
		{redistest.And(script, redistest.Command("EVAL")), eval, true},
		{redistest.And(script, redistest.Command("EVAL")), evalsha, false},
		{redistest.And(), get, true},
	} {
		if got := c.match(c.args); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
	second := redistest.Nth(2, name)
	for i, want := range []bool{false, true, false} {
		if second(eval) || second(get) != want {
			t.Errorf("call %d of Nth", i)
		}
	}
}
