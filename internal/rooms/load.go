package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// manyFields is how many fields a struct may have that is not named in the table.
const manyFields = 15

// An arrow leads from a file to one whose names it uses.
type arrow struct{ from, to string }

// A room is what was counted of one package.
type room struct {
	path   string
	files  []string
	lines  int
	wide   []string           // structs with more than manyFields fields, each with their number
	arrows map[arrow][]string // with the names that are used
}

// load counts the packages that the patterns name. The go command builds what they import: their types are read from there.
func load(patterns []string) (rooms []*room, err error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly"}, patterns...)...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for packages := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return rooms, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export // a package comes after those that it imports
		if p.DepOnly || len(p.GoFiles) == 0 {
			continue
		}
		r := &room{path: p.ImportPath, files: p.GoFiles, arrows: map[arrow][]string{}}
		if err := r.count(p.Dir, exports); err != nil {
			return nil, err
		}
		rooms = append(rooms, r)
	}
}

func (r *room) count(dir string, exports map[string]string) error {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range r.files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		r.lines += linesOfCode(text)
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", lookup)}
	pkg, err := config.Check(r.path, set, parsed, info)
	if err != nil {
		return err
	}
	for name, used := range info.Uses {
		if from, to := set.File(name.Pos()), set.File(used.Pos()); used.Pkg() == pkg && from != to {
			a := arrow{from.Name(), to.Name()}
			if !slices.Contains(r.arrows[a], used.Name()) {
				r.arrows[a] = append(r.arrows[a], used.Name())
			}
		}
	}
	for _, names := range r.arrows {
		slices.Sort(names)
	}
	for name, declared := range declaredStructs(parsed) {
		if n := info.TypeOf(declared).(*types.Struct).NumFields(); n > manyFields {
			r.wide = append(r.wide, fmt.Sprintf("%s %d", name, n))
		}
	}
	slices.SortFunc(r.wide, strings.Compare)
	return nil
}

// declaredStructs returns the struct types that the files declare, by their names. A struct that is embedded counts as one field.
func declaredStructs(files []*ast.File) map[string]ast.Expr {
	structs := map[string]ast.Expr{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.TypeSpec); is {
				if s, is := spec.Type.(*ast.StructType); is {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return structs
}

// linesOfCode counts the lines on which there is more than comments and blanks.
func linesOfCode(text []byte) (n int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // comments are left out
	last := 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return n
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n") // of a string in backquotes
		if tok == token.SEMICOLON && literal == "\n" {
			end = first
		}
		if end > last {
			n += end - max(first-1, last)
			last = end
		}
	}
}
