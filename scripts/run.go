package scripts

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A script is a Lua text and its SHA-1 digest, by which the server remembers the text.
type script struct {
	text, sha  string
	function   string   // of a script for one operation: the name of the Lua function that does it,
	parameters []string // and that function's parameters
}

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// alone makes the script of one operation of this name, which the last of the functions in the text is.
func alone(name, functions string) script {
	_, rest, _ := strings.Cut(functions, "\nlocal function "+name+"(")
	list, _, _ := strings.Cut(rest, ")")
	parameters := strings.Split(list, ", ")
	call := aloneText
	if slices.Contains(parameters, "line") {
		call = aloneInLineText
	}
	sc := newScript(functions + "local operation = " + name + "\n" + call)
	sc.function, sc.parameters = name, parameters
	return sc
}

// newBatch makes the script of several operations, of their functions and branches.
func newBatch(functions, branches string) script {
	return newScript(functions + strings.Replace(batchText, "\n  BRANCHES\n", "\n  "+branches+"\n", 1))
}

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
	//go:embed import.lua
	importText string
	//go:embed line.lua
	lineText string
	//go:embed turn.lua
	turnText string
	//go:embed wait.lua
	waitText string
	//go:embed try.lua
	tryText string
	//go:embed release.lua
	releaseText string
	//go:embed leave.lua
	leaveText string
	//go:embed waiting.lua
	waitingText string
	//go:embed alone.lua
	aloneText string
	//go:embed alone_in_line.lua
	aloneInLineText string
	//go:embed batch.lua
	batchText string
	//go:embed renew.lua
	renewText string
	//go:embed renew_each.lua
	renewEachText string
	//go:embed renew_all.lua
	renewAllText string
	//go:embed inspect.lua
	inspectText string

	acquire  = alone("acquire", tokenText+holderText+acquireText)
	level    = alone("level", tokenText+levelText)
	unlock   = alone("unlock", holderText+unlockText)
	transfer = alone("transfer", tokenText+transferText)
	imported = alone("import", tokenText+holderText+unlockText+transferText+importText)
	wait     = alone("wait", tokenText+holderText+oneText+lineText+acquireText+turnText+waitText)
	tryFree  = alone("try", tokenText+holderText+oneText+lineText+acquireText+turnText+waitText+tryText)
	release  = alone("release", holderText+lineText+unlockText+releaseText)
	leave    = alone("leave", oneText+lineText+unlockText+leaveText)
	lineLen  = alone("waiting", lineText+waitingText)
	batched  = newBatch(tokenText+holderText+oneText+lineText+acquireText+levelText+unlockText+transferText+importText+turnText+waitText+tryText+releaseText+leaveText+waitingText, branchesText)

	branchesText = branches(&tries, &unlocksForNewcomers, &acquiresInTurn, &releases, &acquires, &unlocks, &levels, &transfers, &imports, &leaves, &waitings)
	renew        = newScript(renewText + renewEachText + renewAllText)
	inspect      = newScript(holderText + inspectText)
)

// A command is one that go-redis sends once. After a broken connection go-redis repeats a plain redis.Cmd silently, and then
// nobody can tell when the attempt that was answered was sent (P13).
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

// args returns the beginning of the command that runs the script by its digest, up to the number of keys. The slice has room
// for so many keys and arguments behind that.
func (sc *script) args(keys, args int) []any {
	return append(make([]any, 0, 3+keys+args), "evalsha", sc.sha, keys)
}

// whole returns the same command with the script's text in place of the digest, for a server that has not got the script
// (after a restart or SCRIPT FLUSH, and the first time).
func (sc *script) whole(args []any) []any { return append([]any{"eval", sc.text}, args[2:]...) }

func unknown(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// run sends the script with these keys and arguments, and returns the reply.
func (s *Scripts) run(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	return s.send(ctx, sc, func() []any {
		all := sc.args(len(keys), len(args))
		for _, k := range keys {
			all = append(all, k)
		}
		return append(all, args...)
	})
}

// send sends the script with these arguments, by its digest or, where the server has not got it, as a whole. The arguments are made anew for
// that: a hook of the user's may have changed those of the first command, as one does that puts a prefix before keys.
func (s *Scripts) send(ctx context.Context, sc *script, args func() []any) (any, error) {
	reply, err := s.process(ctx, args())
	if unknown(err) {
		return s.process(ctx, sc.whole(args()))
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

// astray looks at an error that another node might not have given, and returns the error. A cluster client then finds out at
// once which node has which slots: a node that is down tells nobody that another node has taken over, and by itself the
// client looks once a minute, which is longer than most leases. For a client of one server, MOVED and ASK become an error
// that tells the user that the server is a node of a cluster.
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
