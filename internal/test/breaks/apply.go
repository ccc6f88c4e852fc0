package breaks

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Files returns the whole text of each file that the break changes, by its path below root, the directory of the root module.
func (b Break) Files(root string) (map[string]string, error) { return Apply(root, b.Edits...) }

// Apply returns the whole text of each file that the edits change, by its path below root.
func Apply(root string, edits ...Edit) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range edits {
		if err := e.apply(root, texts); err != nil {
			return nil, fmt.Errorf("the break of %q: %w", e.In, err)
		}
	}
	return texts, nil
}

func (e Edit) apply(root string, texts map[string]string) error {
	if of := strings.TrimSpace(e.Of); of == "" || strings.HasPrefix(of, anything) || strings.HasSuffix(of, anything) {
		return fmt.Errorf("%q names no code: it begins and ends with words of the code", e.Of)
	}
	where, function, _ := strings.Cut(e.In, " ")
	var files []string
	if strings.HasSuffix(where, ".lua") {
		files = []string{where}
	} else {
		all, err := filepath.Glob(filepath.Join(root, where, "*.go"))
		if err != nil {
			return err
		}
		for _, file := range all {
			if !strings.HasSuffix(file, "_test.go") {
				files = append(files, path.Join(where, filepath.Base(file)))
			}
		}
	}
	found, there := 0, false
	for _, file := range files {
		text, read := texts[file]
		if !read {
			whole, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return err
			}
			text = string(whole)
		}
		spans, err := functions(file, text, function)
		if err != nil {
			return err
		}
		for _, s := range spans {
			there = true
			matches := match(file, text[s.from:s.to], e.Of)
			found += len(matches)
			if len(matches) == 1 && found == 1 {
				m := matches[0]
				texts[file] = text[:s.from+m.from] + e.To + text[s.from+m.to:]
			}
		}
	}
	switch {
	case !there:
		return errors.New("there is no such function, or script")
	case found != 1:
		return fmt.Errorf("%q is there %d times, and is to be there once: bring the break up to date", e.Of, found)
	}
	return nil
}

// A span is a part of a text.
type span struct{ from, to int }

// functions returns where the function with this name is in the file: "lockState.judge" is a method; "" is the whole script.
func functions(file, text, name string) (spans []span, err error) {
	if strings.HasSuffix(file, ".lua") {
		if name == "" {
			return []span{{0, len(text)}}, nil
		}
		at := regexp.MustCompile(`(?m)^local function ` + regexp.QuoteMeta(name) + `\((?:[^\n]* end$|(?s:.*?)^end$)`).FindStringIndex(text)
		if at == nil {
			return nil, nil
		}
		return []span{{at[0], at[1]}}, nil
	}
	if !strings.Contains(text, name[strings.LastIndex(name, ".")+1:]+"(") && !strings.Contains(text, name[strings.LastIndex(name, ".")+1:]+"[") {
		return nil, nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil && nameOf(f) == name {
			spans = append(spans, span{set.Position(f.Body.Lbrace).Offset + 1, set.Position(f.Body.Rbrace).Offset})
		}
	}
	return spans, nil
}

// nameOf is the function's name, behind the type of the receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
