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
	{"unlock", "unlock"}, {"release", "unlock"}, {"leave", "leave"}, {"waiting", "waiting"},
	{"transfer", "transfer"}, {"import", "import"}, {"renew", "renew"}, {"inspect", "inspect"},
	{"vote", "vote"}, {"vote_in_turn", "vote"}, {"vote_outside", "vote"}, {"extend", "extend"}, {"raise", "raise"},
	{"withdraw", "withdraw"}, {"withdraw_in_line", "withdraw"}, {"look", "look"}, {"recount", "recount"}, {"renew_node", "extend"},
	{"permit", "acquire"}, {"permit_outside", "acquire"}, {"permit_acquire", "acquire"},
	{"vacate", "unlock"}, {"vacate_outside", "unlock"}, {"permit_leave", "leave"},
	{"readwrite", "acquire"}, {"readwrite_wait", "acquire"}, {"readwrite_try", "acquire"}, {"readwrite_unlock", "unlock"},
	{"readwrite_release", "unlock"}, {"readwrite_leave", "leave"}, {"readwrite_renew", "renew"}, {"readwrite_inspect", "inspect"},
}

// batched are the operations that can be several in a command, by the names that stand there, and what each does.
var batched = map[string]string{
	"acquire": "acquire", "wait": "acquire", "try": "acquire", "level": "level",
	"unlock": "unlock", "release": "unlock", "quick": "unlock", "leave": "leave", "waiting": "waiting",
	"transfer": "transfer", "import": "import",
	"vote": "vote", "turn": "vote", "outside": "vote", "extend": "extend", "raise": "raise",
	"withdraw": "withdraw", "calling": "withdraw", "newcomers": "withdraw", "look": "look", "recount": "recount",
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
	"wait":     {"token", "holder", "one", "line", "acquire", "turn"},
	"try":      {"token", "holder", "one", "line", "acquire", "turn", "wait"},
	"level":    {"token"},
	"unlock":   {"holder"},
	"release":  {"holder", "line", "unlock"},
	"leave":    {"one", "line", "unlock"},
	"waiting":  {"line"},
	"transfer": {"token"},
	"import":   {"token", "holder", "unlock", "transfer"},
	"inspect":  {"holder"},
	"vote":     {"holder", "report", "proposal"},
	"extend":   {"holder", "report"},
	"recount":  {"level", "holder", "report"},
	"raise":    {"holder", "report", "proposal"},
	"withdraw": {"holder", "report", "unlock"},
	"look":     {"holder", "report"},

	"renew_node": {"holder", "report", "renew", "renew_each"},

	"vote_in_turn":     {"holder", "report", "proposal", "vote", "token", "line", "acquire", "turn"},
	"vote_outside":     {"holder", "report", "proposal", "vote", "token", "line", "acquire", "turn", "vote_in_turn"},
	"withdraw_in_line": {"holder", "report", "line", "unlock", "release", "withdraw"},

	"permit":         {"barrier", "token", "holder", "line", "acquire", "slots", "turn", "wait"},
	"permit_outside": {"barrier", "token", "holder", "line", "acquire", "slots", "turn", "wait", "permit"},
	"permit_acquire": {"barrier", "token", "holder", "line", "acquire"},
	"permit_leave":   {"barrier", "token", "holder", "line", "acquire", "slots", "unlock"},
	"vacate":         {"barrier", "token", "holder", "line", "acquire", "slots", "unlock"},
	"vacate_outside": {"barrier", "token", "holder", "line", "acquire", "slots", "unlock", "vacate"},

	"readwrite":         {"barrier", "token", "line"},
	"readwrite_wait":    {"barrier", "token", "line", "readwrite", "turn"},
	"readwrite_try":     {"barrier", "token", "line", "readwrite", "turn", "readwrite_wait"},
	"readwrite_unlock":  {"barrier", "token", "line", "readwrite"},
	"readwrite_release": {"barrier", "token", "line", "readwrite", "readwrite_unlock"},
	"readwrite_leave":   {"barrier", "token", "line", "readwrite", "readwrite_unlock"},
	"readwrite_renew":   {"token", "line", "readwrite"},
	"readwrite_inspect": {"barrier", "token", "line", "readwrite", "readwrite_unlock"},
}

// files are those of scripts of other names.
var files = map[string]string{"permit_acquire": "slots", "permit_leave": "leave"}

// ScriptText returns the text of a script as it is sent alone: the functions that it calls, its own, and its call.
func ScriptText(name string) string {
	var text string
	for _, function := range functions[name] {
		text += file(function)
	}
	if other := files[name]; other != "" {
		text += file(other)
	} else {
		text += file(name)
	}
	switch name {
	case "renew", "readwrite_renew": // no operation, as inspect
		return text + file("renew_each") + file("renew_all")
	case "renew_node":
		return text
	case "inspect", "readwrite_inspect":
		return text
	case "readwrite":
		return text + "local operation = acquire\n" + file("alone")
	case "readwrite_unlock":
		return text + "local operation = unlock\n" + file("alone")
	case "readwrite_wait", "readwrite_try", "readwrite_release", "readwrite_leave":
		_, function, _ := strings.Cut(name, "_")
		return text + "local operation = " + function + "\n" + file("alone_in_line")
	case "permit_acquire":
		return text + "local operation = acquire\n" + file("alone")
	case "permit_leave":
		return text + "local operation = leave\n" + file("alone_in_line")
	case "wait", "try", "release", "leave", "waiting":
		return text + "local operation = " + name + "\n" + file("alone_in_line")
	case "vote_in_turn", "vote_outside", "withdraw_in_line", "permit", "permit_outside", "vacate":
		return text + "local operation = " + camel(name) + "\n" + file("alone_in_line")
	case "vacate_outside":
		return text + "local operation = vacateOutside\n" + file("alone")
	}
	return text + "local operation = " + name + "\n" + file("alone")
}

// camel is the name of the function in the file with this name.
func camel(file string) string {
	words := strings.Split(file, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
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
