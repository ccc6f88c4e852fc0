package rlockvet

import (
	"go/ast"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// graph returns the control flow of a function.
func (s *source) graph(f inspector.Cursor) *cfg.CFG { return cfg.New(body(f.Node()), s.returns) }

// noReturn matches the names of functions of other packages after which the caller does not go on.
var noReturn = regexp.MustCompile(`^((Fatal|Panic|Exit)(f|ln)?|FailNow|Skip(f|Now)|Skip|Goexit)$`)

// returns tells whether the code after a call may run.
func (s *source) returns(call *ast.CallExpr) bool {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := s.info.Uses[id].(*types.Builtin); ok {
			return b.Name() != "panic"
		}
	}
	fn := s.callee(call)
	if fn == nil {
		return true
	}
	decl, ok := s.decls[fn.Origin()]
	if !ok {
		return !noReturn.MatchString(fn.Name())
	}
	stops, known := s.stops[fn.Origin()]
	if !known {
		s.stops[fn.Origin()] = false // while it is looked at
		stops = s.graph(decl).NoReturn()
		s.stops[fn.Origin()] = stops
	}
	return !stops
}
