package scripts

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A script is a Lua text and its digest, under which the server remembers it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// newBatch is the script of several operations: what they have in common, the function of each, and what calls them.
func newBatch(calls string, operations ...string) script {
	text := tokenText + holderText + lineText
	for _, op := range operations {
		text += function(op)
	}
	return newScript(text + calls)
}

// function is the part of an operation's text that is not its call.
func function(op string) string { return op[:strings.LastIndex(op, "\nlocal verdict")+1] }

var (
	//go:embed token.lua
	tokenText string
	//go:embed holder.lua
	holderText string
	//go:embed acquire.lua
	acquireText string
	//go:embed level.lua
	levelText string
	//go:embed unlock.lua
	unlockText string
	//go:embed transfer.lua
	transferText string
	//go:embed line.lua
	lineText string
	//go:embed wait.lua
	waitText string
	//go:embed try.lua
	tryText string
	//go:embed release.lua
	releaseText string
	//go:embed leave.lua
	leaveText string
	//go:embed reserve.lua
	reserveText string
	//go:embed batch.lua
	batchText string
	//go:embed renew.lua
	renewText string
	//go:embed inspect.lua
	inspectText string

	acquire  = newScript(tokenText + holderText + acquireText)
	level    = newScript(tokenText + levelText)
	unlock   = newScript(unlockText)
	transfer = newScript(tokenText + transferText)
	wait     = newScript(tokenText + holderText + lineText + function(acquireText) + waitText)
	tryFree  = newScript(tokenText + holderText + lineText + function(acquireText) + function(waitText) + tryText)
	release  = newScript(lineText + function(unlockText) + releaseText)
	leave    = newScript(lineText + leaveText)
	reserve  = newScript(tokenText + reserveText)
	batched  = newBatch(batchText, acquireText, levelText, unlockText, transferText, reserveText, waitText, tryText, releaseText, leaveText)
	renew    = newScript(renewText)
	inspect  = newScript(holderText + inspectText)
)

// command is a command that go-redis sends once. A plain one is repeated silently after a broken connection, and then
// nobody can tell when the attempt that was answered had been sent.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

// args is the command that runs the script by its digest: room for more arguments is left behind the keys.
func (sc *script) args(keys, args int) []any {
	return append(make([]any, 0, 3+keys+args), "evalsha", sc.sha, keys)
}

// whole is the same command with the script's text, for a server that has not got it (a restart, SCRIPT FLUSH, the
// first time).
func (sc *script) whole(args []any) []any { return append([]any{"eval", sc.text}, args[2:]...) }

func unknown(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// run sends the script.
func (s *Scripts) run(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	all := sc.args(len(keys), len(args))
	for _, k := range keys {
		all = append(all, k)
	}
	return s.send(ctx, sc, append(all, args...))
}

func (s *Scripts) send(ctx context.Context, sc *script, args []any) (any, error) {
	reply, err := s.process(ctx, args)
	if unknown(err) {
		return s.process(ctx, sc.whole(args))
	}
	return reply, err
}

func (s *Scripts) process(ctx context.Context, args []any) (any, error) {
	cmd := command{redis.NewCmd(ctx, args...)}
	if err := s.rdb.Process(ctx, cmd); err != nil {
		return nil, s.astray(err)
	}
	return cmd.Result()
}

// astray makes a cluster client find out at once who has the slots, after an error that another node might not have
// given. One that is down tells nobody that another one has taken over, and by itself the client looks once a minute:
// longer than most leases. It returns the error, which of one server's client may be that the server is none.
func (s *Scripts) astray(err error) error {
	switch rdb := s.rdb.(type) {
	case *redis.ClusterClient:
		if Passing(err) {
			rdb.ReloadState(context.Background())
		}
	case *redis.Client:
		_, moved := redis.IsMovedError(err)
		if _, ask := redis.IsAskError(err); moved || ask {
			return &oneNode{err}
		}
	}
	return err
}
