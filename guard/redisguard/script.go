package redisguard

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed guard.lua
	guardText string
	//go:embed do.lua
	doText string
	//go:embed eval.lua
	evalText string

	do = newScript(guardText, doText)
)

// unknownScript begins the reply of a server that has not got a script. Its code alone could come from a script that ran.
const unknownScript = "NOSCRIPT No matching script"

// A script is a Lua text, in parts, and its digest, under which the server remembers it.
type script struct {
	parts []string
	sha   string
}

func newScript(parts ...string) script {
	sum := sha1.New()
	for _, part := range parts {
		_, _ = io.WriteString(sum, part)
	}
	return script{parts, hex.EncodeToString(sum.Sum(nil))}
}

// newEval is the script that runs this one. The function begins in the line of its first, so that the lines in Lua's
// errors are those of the text.
func newEval(text string) script {
	return newScript("local function script(KEYS, ARGV) ", text, "\nend\n", guardText, evalText)
}

// command is a command that go-redis sends once. A plain one is repeated silently after a broken connection.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

// run sends the script by its digest, and whole to a server that has not got it: that one has done nothing.
func (g *Guard) run(ctx context.Context, sc script, keys []string, args []any) (any, error) {
	reply, err := g.send(ctx, "evalsha", sc.sha, keys, args)
	if err != nil && redis.HasErrorPrefix(err, unknownScript) {
		return g.send(ctx, "eval", strings.Join(sc.parts, ""), keys, args)
	}
	return reply, err
}

// send makes the command anew: a hook of the user's may have changed the keys of the one before.
func (g *Guard) send(ctx context.Context, name, script string, keys []string, args []any) (any, error) {
	line := make([]any, 0, 3+len(keys)+len(args))
	line = append(line, name, script, len(keys))
	for _, k := range keys {
		line = append(line, k)
	}
	line = append(line, args...)
	cmd := command{redis.NewCmd(ctx, line...)}
	if err := g.rdb.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}
