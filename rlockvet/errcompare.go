package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// ErrCompare finds errors of fencelock that are compared by ==, != or switch.
var ErrCompare = newCheck("errcompare", "find errors of fencelock that are compared with ==, != or switch\n\n"+
	"All of them are wrapped, with the method and the lock's name, so that such a comparison never holds.", errCompare)

func errCompare(c *check) {
	for cur := range c.inspect.Root().Preorder((*ast.BinaryExpr)(nil), (*ast.SwitchStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				continue
			}
			for _, err := range []ast.Expr{n.X, n.Y} {
				target := n.X
				if err == n.X {
					target = n.Y
				}
				if c.neverEqual(err, target, cur) {
					c.report(n, c.useIs(n, err, target), "%s is wrapped and never equal to %s: use errors.Is", types.ExprString(err), types.ExprString(target))
				} else if c.missesLoss(err, target, cur) {
					c.report(n, nil, "%s equals context.Canceled when the caller has canceled, and not when the lock was lost: use errors.Is", types.ExprString(err))
				}
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				continue
			}
			tag := types.ExprString(n.Tag)
			for _, clause := range n.Body.List {
				for _, target := range clause.(*ast.CaseClause).List {
					if c.neverEqual(n.Tag, target, cur) {
						c.report(target, nil, "%s is wrapped and never equal to %s: use errors.Is, in a switch without %s", tag, types.ExprString(target), tag)
					}
				}
			}
		}
	}
}

// neverEqual tells whether err comes from fencelock, which wraps it, and target is what it may wrap.
func (c *check) neverEqual(err, target ast.Expr, in inspector.Cursor) bool {
	if c.isContextError(target, "Canceled") || c.isContextError(target, "DeadlineExceeded") {
		call := c.source.call(err, in)
		if call == nil {
			return false
		}
		method, _ := c.lockMethod(call)
		return method != nil
	}
	if c.sentinel(target) == nil {
		return false
	}
	if call, ok := ast.Unparen(err).(*ast.CallExpr); ok && len(call.Args) == 1 && isFunc(c.callee(call), "context", "Cause") {
		return c.isHold(call.Args[0], in)
	}
	return c.errOfHold(err, in) || c.wrapped(err, in, 0)
}

// missesLoss tells whether the comparison is of held.Err() with context.Canceled.
func (c *check) missesLoss(err, target ast.Expr, in inspector.Cursor) bool {
	return c.isContextError(target, "Canceled") && c.errOfHold(err, in)
}

// errOfHold tells whether the expression is held.Err().
func (c *check) errOfHold(e ast.Expr, in inspector.Cursor) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Err" && c.isHold(sel.X, in)
}

func (c *check) isContextError(e ast.Expr, name string) bool {
	obj := c.object(e)
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "context" && obj.Name() == name
}

// call returns the call that an expression is, or is the variable of the result of.
func (s *source) call(e ast.Expr, in inspector.Cursor) *ast.CallExpr {
	e = ast.Unparen(e)
	if _, ok := e.(*ast.Ident); ok {
		def, ok := s.definitionOf(e, in)
		if !ok || def.value == nil {
			return nil
		}
		e = ast.Unparen(def.value)
	}
	call, _ := e.(*ast.CallExpr)
	return call
}

// object returns what a name stands for.
func (c *check) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return c.info.Uses[e]
	case *ast.SelectorExpr:
		return c.info.Uses[e.Sel]
	}
	return nil
}

// isHold tells whether the expression is the context of a hold: what an acquire returned, or what Do gives to its function.
func (c *check) isHold(e ast.Expr, in inspector.Cursor) bool {
	def, ok := c.definitionOf(e, in)
	if !ok {
		return false
	}
	if !isParam(def) {
		a := c.acquireOf(def.value)
		return def.index == 0 && a != nil && !a.isHold()
	}
	f, _ := function(def.stmt)
	if f.ParentEdgeKind() != edge.CallExpr_Args {
		return false
	}
	method, _ := c.lockMethod(f.Parent().Node().(*ast.CallExpr))
	return method != nil
}

// wrapped tells whether the expression is an error that fencelock has wrapped.
func (c *check) wrapped(e ast.Expr, in inspector.Cursor, depth int) bool {
	call := c.source.call(e, in)
	if call == nil || !isError(c.info.TypeOf(e)) {
		return false
	}
	fn := c.callee(call)
	switch {
	case fn == nil:
		return false
	case fn.Pkg() != c.pkg && ofAPI(fn.Pkg()):
		if method, _ := c.lockMethod(call); method != nil {
			return true
		}
		// a function that it is given may return the bare error, which some pass on
		for p := range fn.Signature().Params().Variables() {
			if _, ok := p.Type().Underlying().(*types.Signature); ok {
				return false
			}
		}
		return true
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok { // w.Do(...).Err()
		if of, ok := ast.Unparen(sel.X).(*ast.CallExpr); ok && c.callee(of) != nil && ofAPI(c.callee(of).Pkg()) {
			return true
		}
	}
	decl, ok := c.decls[fn.Origin()]
	return ok && depth < 5 && c.returnsWrapped(decl, depth+1)
}

// returnsWrapped tells whether each error that the function returns is nil or wrapped.
func (c *check) returnsWrapped(decl inspector.Cursor, depth int) bool {
	found := false
	for cur := range decl.Preorder((*ast.ReturnStmt)(nil)) {
		if f, ok := function(cur); !ok || f != decl {
			continue
		}
		ret := cur.Node().(*ast.ReturnStmt)
		if len(ret.Results) == 0 {
			return false
		}
		last := ast.Unparen(ret.Results[len(ret.Results)-1])
		if c.info.Types[last].IsNil() {
			continue
		}
		call, _ := last.(*ast.CallExpr)
		if call != nil && (isFunc(c.callee(call), "fmt", "Errorf") || isFunc(c.callee(call), "errors", "Join") || isFunc(c.callee(call), "errors", "New")) {
			continue
		}
		if !c.wrapped(last, cur, depth) {
			return false
		}
		found = true
	}
	return found
}

// useIs is the fix that puts errors.Is in the place of the comparison.
func (c *check) useIs(n *ast.BinaryExpr, err, target ast.Expr) []analysis.SuggestedFix {
	file := c.file(n.Pos())
	edits, name := importEdits(file, "errors")
	if scope := c.pkg.Scope().Innermost(n.Pos()); scope != nil {
		if _, obj := scope.LookupParent(name, n.Pos()); obj != nil {
			if pkg, ok := obj.(*types.PkgName); !ok || pkg.Imported().Path() != "errors" {
				return nil
			}
		}
	}
	call := name + ".Is(" + types.ExprString(err) + ", " + types.ExprString(target) + ")"
	if n.Op == token.NEQ {
		call = "!" + call
	}
	edits = append(edits, analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(call)})
	return []analysis.SuggestedFix{{Message: "Use errors.Is", TextEdits: edits}}
}

// importEdits returns the name of a package of the standard library in a file, with the edit that imports it where that is not so.
func importEdits(file *ast.File, path string) ([]analysis.TextEdit, string) {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"`+path+`"` {
			if spec.Name != nil && spec.Name.Name != "_" && spec.Name.Name != "." {
				return nil, spec.Name.Name
			}
			return nil, path
		}
	}
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.IMPORT && gen.Lparen.IsValid() {
			at := gen.Lparen + 1
			for _, spec := range gen.Specs { // behind what sorts before it, among those of the standard library
				if value := spec.(*ast.ImportSpec).Path.Value; !strings.Contains(value, ".") && value < `"`+path+`"` {
					at = spec.End()
				}
			}
			return []analysis.TextEdit{{Pos: at, End: at, NewText: []byte("\n\t\"" + path + `"`)}}, path
		}
	}
	return []analysis.TextEdit{{Pos: file.Name.End(), End: file.Name.End(), NewText: []byte("\n\nimport \"" + path + `"`)}}, path
}
