package rlockvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// index finds once for all checks what a package does with fencelock.
var index = &analysis.Analyzer{
	Name:       "rlockindex",
	Doc:        "find the uses of fencelock that the checks of rlockvet look at",
	Run:        func(pass *analysis.Pass) (any, error) { return newSource(pass), nil },
	ResultType: reflect.TypeFor[*source](),
}

// newCheck returns the analyzer of a check.
func newCheck(name, doc string, run func(*check)) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     name,
		Doc:      doc,
		URL:      "https://github.com/fencelock/fencelock/blob/main/docs/vet.md#" + name,
		Requires: []*analysis.Analyzer{index},
		Run: func(pass *analysis.Pass) (any, error) {
			if src := pass.ResultOf[index].(*source); src.inspect != nil {
				run(&check{source: src, pass: pass})
			}
			return nil, nil
		},
	}
}

// check is one check at work on one package.
type check struct {
	*source
	pass *analysis.Pass
}

// report reports a finding, unless it is in a generated file, or a comment says to ignore it.
func (c *check) report(at ast.Node, fixes []analysis.SuggestedFix, format string, args ...any) {
	file := c.file(at.Pos())
	if file == nil || ast.IsGenerated(file) {
		return
	}
	message := fmt.Sprintf(format, args...)
	switch c.ignored(file, at.Pos()) {
	case ignored:
		return
	case withoutReason:
		message += " (rlockvet:ignore needs a reason)"
	}
	c.pass.Report(analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: c.pass.Analyzer.Name, Message: message, SuggestedFixes: fixes})
}

type ignoring int

const (
	notIgnored ignoring = iota
	withoutReason
	ignored
)

// ignored tells whether a comment on this line, or on the one above, silences the check.
func (c *check) ignored(file *ast.File, at token.Pos) ignoring {
	line := c.pass.Fset.Position(at).Line
	found := notIgnored
	for _, group := range file.Comments {
		for _, comment := range group.List {
			text, ok := strings.CutPrefix(comment.Text, "//rlockvet:ignore ")
			if on := c.pass.Fset.Position(comment.Pos()).Line; !ok || on != line && on != line-1 {
				continue
			}
			if words := strings.Fields(text); len(words) > 0 && words[0] == c.pass.Analyzer.Name {
				if len(words) > 1 {
					return ignored
				}
				found = withoutReason
			}
		}
	}
	return found
}

// replace is the fix that puts text in the place of a node.
func replace(message string, at ast.Node, text string) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{Message: message, TextEdits: []analysis.TextEdit{{Pos: at.Pos(), End: at.End(), NewText: []byte(text)}}}}
}

// lookup returns what a name stands for at a place, nil where there is nothing of that name.
func (c *check) lookup(at ast.Node, name string) types.Object {
	_, obj := c.pkg.Scope().Innermost(at.Pos()).LookupParent(name, at.Pos())
	return obj
}

// isPackage tells whether a name stands for the package with this path.
func (c *check) isPackage(at ast.Node, name, path string) bool {
	pkg, ok := c.lookup(at, name).(*types.PkgName)
	return ok && pkg.Imported().Path() == path
}
