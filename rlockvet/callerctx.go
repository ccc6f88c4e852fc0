package rlockvet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// CallerCtx finds holds that are kept by a Lock, TryLock or Acquire of the user's own, and end with the context of its caller.
var CallerCtx = newCheck("callerctx", "find a method Lock, TryLock or Acquire that keeps a hold which ends with its caller's context\n\n"+
	"Behind an interface of somebody else the caller may end that context as soon as the method has returned, as tusd does, and the hold\n"+
	"with it. The context of Acquire bounds the wait alone.", callerCtx)

func callerCtx(c *check) {
	for _, a := range c.acquires {
		f, _ := function(a.cur)
		decl, ok := f.Node().(*ast.FuncDecl)
		if !ok || !slices.Contains([]string{"Lock", "TryLock", "Acquire"}, decl.Name.Name) || a.isHold() || len(a.lhs) == 0 {
			continue
		}
		if given, ok := c.definitionOf(a.ctx, a.cur); !ok || !isParam(given) || c.anyFor(a, c.unlocks) {
			continue
		}
		kept := c.isPart(a.lhs[0])
		if v := c.result(a, 0); v != nil {
			kept = slices.ContainsFunc(c.vars[v].uses, c.keeps)
		}
		if kept {
			c.report(a.expr, nil, "the hold is kept after %s returns, and ends with the context of its caller. Use Acquire, whose context bounds only the wait", decl.Name.Name)
		}
	}
}

// keeps tells whether the identifier is put into a struct, a map or a sync.Map.
func (c *check) keeps(use inspector.Cursor) bool {
	switch kind, i := use.ParentEdge(); kind {
	case edge.KeyValueExpr_Value, edge.CompositeLit_Elts:
		return true
	case edge.AssignStmt_Rhs:
		return c.isPart(use.Parent().Node().(*ast.AssignStmt).Lhs[i])
	case edge.CallExpr_Args:
		fn := c.callee(use.Parent().Node().(*ast.CallExpr))
		return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "sync"
	}
	return false
}

// isPart tells whether the expression is a part of what the function was given: a field of its
// receiver, an element of a map there.
func (c *check) isPart(e ast.Expr) bool {
	v, _ := c.root(e).(*types.Var)
	return v != nil && c.localVar(e) == nil && c.vars[v] != nil && c.vars[v].param
}
