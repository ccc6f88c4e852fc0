package docs

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// imported are the packages that users import; pubsub has a type of rlock's options.
var imported = []string{
	"rlock", "fenced", "quorum", "leader", "guard", "guard/httpguard", "guard/redisguard", "guard/sqlguard", "guard/pgxguard", "guard/s3guard", "pubsub",
	"observe/inspect", "observe/locktrace", "observe/lockmetrics", "observe/lockui", "observe/lockprom", "observe/lockotel",
	"adapters/lockgocron", "adapters/locktusd", "adapters/lockcertmagic",
}

// Each exported name of the packages that users import says itself what it is.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, path := range imported {
		paths, err := filepath.Glob(filepath.Join(root, path, "*.go"))
		locktest.NoError(t, err)
		set, files := token.NewFileSet(), []*ast.File(nil)
		for _, file := range paths {
			if !strings.HasSuffix(file, "_test.go") {
				parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
				locktest.NoError(t, err)
				files = append(files, parsed)
			}
		}
		names, wrong := undocumented(t, set, files...)
		for _, what := range wrong {
			t.Errorf("%s: %s", path, what)
		}
		if names < 3 {
			t.Errorf("%s: only %d names were looked at", path, names)
		}
	}
}

// Each package that users import has an example that runs: one with its output.
func TestPackagesHaveAnExample(t *testing.T) {
	for _, path := range imported {
		paths, err := filepath.Glob(filepath.Join(root, path, "example*_test.go"))
		locktest.NoError(t, err)
		runs := 0
		for _, file := range paths {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			locktest.NoError(t, err)
			for _, example := range doc.Examples(parsed) {
				if example.Output != "" {
					runs++
				}
			}
		}
		if runs == 0 && path != "pubsub" { // which users know by one type alone
			t.Errorf("%s has no example that runs", path)
		}
	}
}

// The check sees what it is there to see.
func TestUndocumentedNamesAreSeen(t *testing.T) {
	const bad = `// Package p is a test.
package p

func F() {}

// G
func G() {}

// H is rlock.H.
func H() {}

// returns what it has, and no error, at once.
func I() {}

// J does what its name says without an end
func J() {}

type T struct{}

// T has no reason to be here, and says so.
type U struct{}

func (U) M() {}

const C = 1

var (
	V = 1
)
`
	const good = `// Package p is a package whose names are documented.
package p

// F does what its name says, at once.
func F() {}

// A T is a thing that has a method.
type T struct{}

// M does what a method does, for this T.
func (T) M() {}

func (T) m() {}

type u struct{}

// E implements error for a type that nobody sees.
func (u) E() {}

// The numbers, by their names.
const (
	C = iota // the first one
	D
)
`
	for text, want := range map[string]int{bad: 11, good: 0} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "p.go", text, parser.ParseComments)
		locktest.NoError(t, err)
		_, wrong := undocumented(t, set, file)
		if len(wrong) != want {
			t.Errorf("%d names are missed, want %d: %q", len(wrong), want, wrong)
		}
	}
}

// undocumented says what is wrong with the comments of a package's exported names, and how many names there are.
func undocumented(t *testing.T, set *token.FileSet, files ...*ast.File) (names int, wrong []string) {
	t.Helper()
	p, err := doc.NewFromFiles(set, files, "p")
	locktest.NoError(t, err)
	judge := func(receiver, name, text string) {
		names++
		if strings.HasPrefix(text, name+" implements ") { // a method that is there for an interface, whose comment says the rest
			return
		}
		if why := notOwn(name, text); why != "" {
			wrong = append(wrong, receiver+name+": "+why)
		}
	}
	functions := func(receiver string, all []*doc.Func) {
		for _, f := range all {
			judge(receiver, f.Name, f.Doc)
		}
	}
	values := func(all []*doc.Value) {
		for _, group := range all {
			for _, spec := range group.Decl.Specs {
				spec := spec.(*ast.ValueSpec)
				for _, name := range spec.Names {
					if !name.IsExported() {
						continue
					}
					names++
					if group.Doc == "" && spec.Doc.Text() == "" && spec.Comment.Text() == "" {
						wrong = append(wrong, name.Name+": no comment")
					}
				}
			}
		}
	}
	if len(strings.Fields(p.Doc)) < 8 {
		wrong = append(wrong, "the package has no comment of a sentence")
	}
	functions("", p.Funcs)
	values(p.Consts)
	values(p.Vars)
	for _, typ := range p.Types {
		judge("", typ.Name, typ.Doc)
		functions("", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
		values(typ.Consts)
		values(typ.Vars)
	}
	return names, wrong
}

// elsewhere is a sentence that only sends the reader to another name.
var elsewhere = regexp.MustCompile(`^\w+ (?:is|does what|see) \[?[\w.]+\]?(?: does)?\.$`)

// notOwn says why the text is no full sentence of the name's own; "" if it is one.
func notOwn(name, text string) string {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " ")+" ", ". ")
	words := strings.Fields(first)
	switch {
	case text == "":
		return "no comment"
	case words[0] != name && (len(words) < 2 || words[1] != name || !regexp.MustCompile("^(A|An|The)$").MatchString(words[0])):
		return "its comment does not begin with it"
	case len(strings.Fields(text)) < 5 || elsewhere.MatchString(text):
		return "its comment is no sentence of its own: " + first
	case !strings.ContainsAny(text[len(text)-1:], ".:)") && !strings.Contains(text, "\n\n"):
		return "its comment has no end"
	}
	return ""
}
