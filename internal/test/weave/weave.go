// Package weave makes one copy of the code that has many breaks in it, for the compiler: the code is compiled once, and not once for each break.
// The environment of the program says which break is switched on.
//
// A function that some break changes has its body in it more than once,
//
//	if onPurpose.On(17) { the broken one } else { the right one }
//
// and the text of a script is exchanged as it is read. What a break changes outside of functions and scripts cannot be woven.
package weave

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Switch is the environment variable with the number of the break.
const Switch = "FENCELOCK_BROKEN"

const (
	modulePath = "github.com/fencelock/fencelock"
	switches   = "internal/broken/broken.go"
)

// A Break is code that is broken on purpose: the whole text of each file that it changes, by its path below the root of the module.
type Break struct {
	Name  string
	Files map[string]string
}

// Woven is code with breaks in it.
type Woven struct {
	Files   map[string]string // what the compiler is to read, by the file's path below the root
	Numbers map[string]int    // of the breaks, from 1, by name. Those that are not there could not be woven
}

// Weave makes the copy. root is the directory of the root module.
func Weave(root string, breaks []Break) (*Woven, error) {
	w := &Woven{Files: map[string]string{}, Numbers: map[string]int{}}
	bodies := map[string]map[int]string{} // of each Go file, what stands before the right body of each function
	scripts := map[string]map[int]string{}
	for _, b := range breaks {
		changed, err := bodiesOf(root, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		if changed == nil {
			continue
		}
		n := len(w.Numbers) + 1
		w.Numbers[b.Name] = n
		for _, file := range slices.Sorted(maps.Keys(b.Files)) {
			if filepath.Ext(file) == ".lua" {
				at(scripts, file)[n] = b.Files[file]
				continue
			}
			for i, body := range changed[file] {
				at(bodies, file)[i] += fmt.Sprintf("if onPurpose.On(%d) {%s\n} else ", n, body)
			}
		}
	}
	for file, broken := range bodies {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		if w.Files[file], err = withBodies(file, string(text), broken); err != nil {
			return nil, err
		}
	}
	w.Files[switches] = switchesOf(scripts)
	return w, w.exchange(root, scripts)
}

func at(all map[string]map[int]string, file string) map[int]string {
	if all[file] == nil {
		all[file] = map[int]string{}
	}
	return all[file]
}

// bodiesOf returns the functions' bodies that the break changes, of each Go file by the number of the function; nil where it cannot be woven.
func bodiesOf(root string, b Break) (map[string]map[int]string, error) {
	changed := map[string]map[int]string{}
	for file, broken := range b.Files {
		if filepath.Ext(file) == ".lua" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		before, err := parse(file, string(text))
		if err != nil {
			return nil, err
		}
		after, err := parse(file, broken)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(before.outside, after.outside) {
			return nil, nil
		}
		for i, body := range after.bodies {
			if body == before.bodies[i] {
				continue
			}
			if before.labels[i] || after.labels[i] { // a label would be there twice
				return nil, nil
			}
			at(changed, file)[i] = body
		}
	}
	return changed, nil
}

// source is a Go file: what is between the braces of its functions, whether there are labels, and what is before, between and behind them.
type source struct {
	bodies, outside []string
	labels          []bool
	name            int // the offset behind the package's name
}

func parse(file, text string) (*source, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	s, last := &source{name: offset(parsed.Name.End())}, 0
	for _, d := range parsed.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		begin, end := offset(f.Body.Lbrace)+1, offset(f.Body.Rbrace)
		s.outside = append(s.outside, text[last:begin])
		s.bodies = append(s.bodies, text[begin:end])
		s.labels = append(s.labels, hasLabel(f.Body))
		last = end
	}
	s.outside = append(s.outside, text[last:])
	return s, nil
}

func hasLabel(body *ast.BlockStmt) (has bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		_, label := n.(*ast.LabeledStmt)
		has = has || label
		return !has
	})
	return has
}

// withBodies is the file's text with these broken bodies before the right ones.
func withBodies(file, text string, broken map[int]string) (string, error) {
	s, err := parse(file, text)
	if err != nil {
		return "", err
	}
	var woven strings.Builder
	for i, body := range s.bodies {
		woven.WriteString(s.outside[i])
		if before := broken[i]; before != "" {
			body = before + "{" + body + "\n}\n"
		}
		woven.WriteString(body)
	}
	woven.WriteString(s.outside[len(s.bodies)])
	return withImport(woven.String(), s.name), nil
}

// withImport is the file's text with the import of the switches behind its package clause.
func withImport(text string, end int) string {
	return text[:end] + "; import onPurpose \"" + modulePath + "/internal/broken\"" + text[end:]
}

var embedded = regexp.MustCompile(`(//go:embed (\w+\.lua)\n\s*)(\w+) string\n`)

// exchange makes the files that embed a broken script exchange its text.
func (w *Woven) exchange(root string, scripts map[string]map[int]string) error {
	folders, exchanged := map[string]bool{}, map[string]bool{}
	for script := range scripts {
		folders[filepath.Dir(script)] = true
	}
	for folder := range folders {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			file := filepath.Join(folder, filepath.Base(path))
			text, woven := w.Files[file]
			if !woven {
				whole, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				text = string(whole)
			}
			if !embedded.MatchString(text) || strings.HasSuffix(path, "_test.go") {
				continue
			}
			if !woven {
				s, err := parse(file, text)
				if err != nil {
					return err
				}
				text = withImport(text, s.name)
			}
			for _, found := range embedded.FindAllStringSubmatch(text, -1) {
				exchanged[filepath.Join(folder, found[2])] = true
			}
			w.Files[file] = embedded.ReplaceAllString(text, "${1}${3}AsItIs string\n\t${3} = onPurpose.Script(\""+filepath.ToSlash(folder)+"/${2}\", ${3}AsItIs)\n")
		}
	}
	for script := range scripts {
		if !exchanged[script] {
			return fmt.Errorf("no file embeds %s into a string in a group of variables", script)
		}
	}
	return nil
}

// switchesOf is the package that says which break is on.
func switchesOf(scripts map[string]map[int]string) string {
	var table strings.Builder
	for _, file := range slices.Sorted(maps.Keys(scripts)) {
		fmt.Fprintf(&table, "\t%q: {\n", file)
		for _, n := range slices.Sorted(maps.Keys(scripts[file])) {
			fmt.Fprintf(&table, "\t\t%d: %q,\n", n, scripts[file][n])
		}
		table.WriteString("\t},\n")
	}
	return `package broken

import (
	"os"
	"strconv"
)

var on, _ = strconv.Atoi(os.Getenv("` + Switch + `"))

func On(n int) bool { return on == n }

var scripts = map[string]map[int]string{
` + table.String() + `}

func Script(file, text string) string {
	if broken, is := scripts[file][on]; is {
		return broken
	}
	return text
}
`
}
