package locktest

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// scripts are the names of all scripts that are sent by themselves, and what each does: wait and try acquire, with regard to
// the line of clients, and release unlocks.
var scripts = []struct{ name, op string }{
	{"acquire", "acquire"}, {"wait", "acquire"}, {"try", "acquire"}, {"level", "level"},
	{"unlock", "unlock"}, {"release", "unlock"}, {"leave", "leave"},
	{"transfer", "transfer"}, {"renew", "renew"}, {"inspect", "inspect"},
	{"vote", "vote"}, {"extend", "extend"}, {"raise", "raise"}, {"withdraw", "withdraw"}, {"look", "look"}, {"recount", "recount"},
}

// batched are the operations that can be several in a command, by the names that stand there, and what each does.
var batched = map[string]string{
	"acquire": "acquire", "wait": "acquire", "try": "acquire", "level": "level",
	"unlock": "unlock", "release": "unlock", "quick": "unlock", "leave": "leave",
	"transfer": "transfer",
	"vote":     "vote", "extend": "extend", "raise": "raise", "withdraw": "withdraw", "look": "look", "recount": "recount",
}

// Ops returns the operations that a command is made of, none for a command that calls no script.
func Ops(args []any) (ops []string) {
	if len(args) < 2 {
		return nil
	}
	name, _ := args[0].(string)
	if !strings.HasPrefix(name, "eval") {
		return nil
	}
	text, _ := args[1].(string)
	if op := opsByText()[text]; op != "" {
		return []string{op}
	}
	for _, arg := range args[2:] {
		s, _ := arg.(string)
		if op := batched[strings.TrimRight(s, "+")]; op != "" {
			ops = append(ops, op)
		}
	}
	return ops
}

// CallsOf returns a match, for a fault of package redistest, of the commands that do this operation by itself.
func CallsOf(op string) func(args []string) bool {
	var matches []func([]string) bool
	for _, s := range scripts {
		if s.name == op || s.op == op {
			matches = append(matches, redistest.Script(sha(ScriptText(s.name))))
		}
	}
	return func(args []string) bool {
		return slices.ContainsFunc(matches, func(match func([]string) bool) bool { return match(args) })
	}
}

// functions are the files that stand before the one of a script.
var functions = map[string][]string{
	"acquire":  {"token", "holder"},
	"wait":     {"token", "holder", "line", "acquire"},
	"try":      {"token", "holder", "line", "acquire", "wait"},
	"level":    {"token"},
	"unlock":   {"holder"},
	"release":  {"holder", "line", "unlock"},
	"leave":    {"line", "unlock"},
	"transfer": {"token"},
	"inspect":  {"holder"},
	"vote":     {"holder", "report"},
	"extend":   {"holder", "report"},
	"recount":  {"level", "holder", "report"},
	"raise":    {"holder", "report"},
	"withdraw": {"holder", "report"},
	"look":     {"holder", "report"},
}

// ScriptText returns the text of a script as it is sent alone: the functions that it calls, its own, and its call.
func ScriptText(name string) string {
	var text string
	for _, function := range functions[name] {
		text += file(function)
	}
	text += file(name)
	switch name {
	case "renew", "inspect": // they are no operations
		return text
	case "wait", "try", "release", "leave":
		return text + "local operation = " + name + "\n" + file("alone_in_line")
	}
	return text + "local operation = " + name + "\n" + file("alone")
}

// opsByText has the operation of each script, by its text and by the SHA-1 of that.
var opsByText = sync.OnceValue(func() map[string]string {
	ops := map[string]string{}
	for _, s := range scripts {
		text := ScriptText(s.name)
		ops[text], ops[sha(text)] = s.op, s.op
	}
	return ops
})

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// file is a file of the directory scripts, which is beside a directory above that of the test.
func file(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "scripts", name+".lua"))
		if err == nil {
			return string(text)
		}
		up := filepath.Dir(dir)
		if up == dir {
			panic(err)
		}
		dir = up
	}
}
