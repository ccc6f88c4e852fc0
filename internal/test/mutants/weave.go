package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A loom has all breaks in one copy of the code, each switched on by its number in the environment: the tests of a package
// are compiled once, and not once for each break. A function with a break has its body in it twice,
//
//	if onPurpose.On(17) { the broken one } else { the right one }
//
// and the text of a script is exchanged as it is read. What is broken outside of a function is compiled by itself.
type loom struct {
	dir     string
	overlay map[string]string // what the compiler reads in place of a file
	numbers map[string]int    // of the breaks that are in it, by name
}

const (
	modulePath = "github.com/fencelock/fencelock"
	switchFor  = "FENCELOCK_BROKEN" // the environment variable with the number of the break
)

// weave puts the breaks into one copy of the code, in this folder.
func weave(dir string, chosen []mutant) (*loom, error) {
	l := &loom{dir: dir, overlay: map[string]string{}, numbers: map[string]int{}}
	byFile := map[string][]mutant{}
	for _, m := range chosen {
		byFile[m.file] = append(byFile[m.file], m)
	}
	lua := map[int]mutant{}
	for file, ms := range byFile {
		whole, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			if _, err := m.edit(string(whole)); err != nil {
				return nil, err
			}
		}
		if filepath.Ext(file) == ".lua" {
			for _, m := range ms {
				lua[l.number(m)] = m
			}
			continue
		}
		woven, err := l.weaveGo(file, string(whole), ms)
		if err != nil {
			return nil, err
		}
		if err := l.replace(file, woven); err != nil {
			return nil, err
		}
	}
	if err := l.weaveEmbedded(lua); err != nil {
		return nil, err
	}
	return l, l.replace("internal/broken/broken.go", switches(lua))
}

// number gives the break one.
func (l *loom) number(m mutant) int {
	l.numbers[m.name] = len(l.numbers) + 1
	return len(l.numbers)
}

// replace has the compiler read this text in place of the file, or of none.
func (l *loom) replace(file, text string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	copied := filepath.Join(l.dir, fmt.Sprintf("%d-%s", len(l.overlay), filepath.Base(file)))
	l.overlay[path] = copied
	return os.WriteFile(copied, []byte(text), 0o600)
}

// weaveGo is the file with those of the breaks that are in the body of a function.
func (l *loom) weaveGo(file, text string, ms []mutant) (string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	type body struct{ begin, end int } // what is between its braces
	broken := map[body]string{}
	for _, m := range ms {
		begin := strings.Index(text, m.old)
		end := begin + len(m.old)
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Body == nil || hasLabel(f.Body) {
				continue
			}
			b := body{at(f.Body.Lbrace) + 1, at(f.Body.Rbrace)}
			if begin < b.begin || end > b.end {
				continue
			}
			broken[b] += fmt.Sprintf("if onPurpose.On(%d) {%s%s%s\n} else ", l.number(m), text[b.begin:begin], m.new, text[end:b.end])
		}
	}
	bodies := make([]body, 0, len(broken))
	for b := range broken {
		bodies = append(bodies, b)
	}
	slices.SortFunc(bodies, func(a, b body) int { return b.begin - a.begin })
	for _, b := range bodies { // from the end of the file, so that what is before stays where it is
		text = text[:b.begin] + broken[b] + "{" + text[b.begin:b.end] + "\n}\n" + text[b.end:]
	}
	if len(bodies) == 0 {
		return text, nil
	}
	return withImport(text, at(parsed.Name.End())), nil
}

// withImport is the file's text with the import of the switches behind its package clause.
func withImport(text string, end int) string {
	return text[:end] + "; import onPurpose \"" + modulePath + "/internal/broken\"" + text[end:]
}

func hasLabel(body *ast.BlockStmt) (has bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		_, label := n.(*ast.LabeledStmt)
		has = has || label
		return !has
	})
	return has
}

var embedded = regexp.MustCompile(`(//go:embed (\w+\.lua)\n\s*)(\w+) string\n`)

// weaveEmbedded makes the files that embed a broken script exchange its text.
func (l *loom) weaveEmbedded(lua map[int]mutant) error {
	folders := map[string]bool{}
	for _, m := range lua {
		folders[filepath.Dir(m.file)] = true
	}
	for folder := range folders {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			whole, err := l.text(path)
			if err != nil {
				return err
			}
			if !embedded.MatchString(whole) || strings.HasSuffix(path, "_test.go") {
				continue
			}
			woven := embedded.ReplaceAllString(whole, "${1}${3}AsItIs string\n\t${3} = onPurpose.Script(\""+filepath.ToSlash(folder)+"/${2}\", ${3}AsItIs)\n")
			if !strings.Contains(woven, "; import onPurpose ") {
				parsed, err := parser.ParseFile(token.NewFileSet(), path, woven, parser.PackageClauseOnly)
				if err != nil {
					return err
				}
				woven = withImport(woven, int(parsed.Name.End())-1)
			}
			if err := l.replace(path, woven); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is what the compiler would read of the file.
func (l *loom) text(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if copied, is := l.overlay[path]; is {
		path = copied
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// switches is the package that says which break is on.
func switches(lua map[int]mutant) string {
	var table strings.Builder
	for n, m := range lua {
		fmt.Fprintf(&table, "\t%d: {%q, %q, %q},\n", n, m.file, m.old, m.new)
	}
	return `package broken

import (
	"os"
	"strconv"
	"strings"
)

var on, _ = strconv.Atoi(os.Getenv("` + switchFor + `"))

func On(n int) bool { return on == n }

var scripts = map[int][3]string{
` + table.String() + `}

func Script(file, text string) string {
	if s, is := scripts[on]; is && s[0] == file {
		return strings.Replace(text, s[1], s[2], 1)
	}
	return text
}
`
}

// compile makes the tests of the package, with what the overlay says, and returns their path.
func (l *loom) compile(pkg string) (string, error) {
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": l.overlay})
	if err != nil {
		return "", err
	}
	list := filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	tests := filepath.Join(l.dir, strings.NewReplacer("/", "-", ".", "").Replace(pkg)+".test")
	// Without inlining, and without vet, it takes half of the time.
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-overlay="+list, "-o="+tests, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not compile: %w\n%s", pkg, err, out)
	}
	return tests, nil
}
