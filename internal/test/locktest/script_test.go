package locktest

import (
	"strings"
	"testing"
)

// A command is known by the text of its script, by the SHA-1 of that, or by the names of the operations in it.
func TestOps(t *testing.T) {
	for _, c := range []struct {
		args []any
		want string
	}{
		{[]any{"evalsha", sha(ScriptText("wait")), 1, "l"}, "acquire"},
		{[]any{"eval", ScriptText("recount"), 1, "l"}, "recount"},
		{[]any{"evalsha", "another", 2, "a", "b", "release", 5, "level"}, "unlock level"},
		{[]any{"get", "unlock"}, ""},
		{[]any{"ping"}, ""},
	} {
		Equal(t, "operations", strings.Join(Ops(c.args), " "), c.want)
	}
}
