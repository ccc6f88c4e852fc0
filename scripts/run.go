package scripts

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// A script is the text of a .lua file and its digest, under which the server remembers it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed level.lua
	levelText string
	//go:embed unlock.lua
	unlockText string
	//go:embed renew.lua
	renewText string
	//go:embed inspect.lua
	inspectText string

	acquire = newScript(acquireText)
	level   = newScript(levelText)
	unlock  = newScript(unlockText)
	renew   = newScript(renewText)
	inspect = newScript(inspectText)
)

// command is a command that go-redis sends once. A plain one is repeated silently after a broken connection, and then
// nobody can tell when the attempt that was answered had been sent.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

// run sends the script by its digest, and by its text where the server has not got it (a restart, SCRIPT FLUSH, the
// first time).
func (s *Scripts) run(ctx context.Context, sc script, keys []string, args ...any) (any, error) {
	line := make([]any, 0, 3+len(keys)+len(args))
	line = append(line, "evalsha", sc.sha, len(keys))
	for _, k := range keys {
		line = append(line, k)
	}
	line = append(line, args...)
	reply, err := s.process(ctx, line)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		again := append([]any{"eval", sc.text}, line[2:]...)
		return s.process(ctx, again)
	}
	return reply, err
}

func (s *Scripts) process(ctx context.Context, line []any) (any, error) {
	cmd := command{redis.NewCmd(ctx, line...)}
	if err := s.rdb.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}
