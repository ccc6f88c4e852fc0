package rlockvet

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// Held finds acquires whose context is dropped.
var Held = newCheck("held", "find calls that take a lock and drop the context that they return\n\n"+
	"That context is what Unlock needs: without it the lock stays taken until the garbage collector finds the hold.", held)

func held(c *check) {
	for _, a := range c.acquires {
		if len(a.lhs) > 0 && (!dropped(a.lhs[0]) || dropped(a.lhs[len(a.lhs)-1])) || !c.freshContext(a.ctx, a.cur) {
			continue
		}
		if c.anyFor(a, c.forces) || c.expires(a) && !c.anyFor(a, c.unlocks) {
			continue // it is forced open, or left to its lease
		}
		if len(a.lhs) == 0 || c.goesOnHeld(a) {
			what := "context"
			if a.isHold() {
				what = "hold"
			}
			c.report(a.expr, nil, "the %s that %s returns is dropped: %s needs it", what, a.fn.Name(), a.release())
		}
	}
}

// goesOnHeld tells whether the code after an acquire whose context is dropped takes success for the ordinary case: its error leaves the
// function. Elsewhere the acquire may be a test of one that has to fail.
func (c *check) goesOnHeld(a *acquire) bool {
	err := c.result(a, -1)
	if err == nil {
		return false
	}
	for _, use := range c.vars[err].uses {
		def, ok := c.definition(use)
		if !ok || ast.Unparen(def.value) != a.expr {
			continue
		}
		switch parent := use.Parent().Node().(type) {
		case *ast.BinaryExpr:
			return parent.Op == token.NEQ && c.info.Types[parent.Y].IsNil() && c.isGuard(use.Parent())
		case *ast.ReturnStmt:
			return !strings.HasSuffix(c.pass.Fset.Position(use.Node().Pos()).Filename, "_test.go")
		}
		return false
	}
	return false
}

// isGuard tells whether the condition is that of an if whose body leaves, before code that does not fail at once.
func (c *check) isGuard(cond inspector.Cursor) bool {
	stmt, ok := cond.Parent().Node().(*ast.IfStmt)
	if !ok || stmt.Cond != cond.Node() || len(stmt.Body.List) == 0 || !c.leaves(stmt.Body.List[len(stmt.Body.List)-1]) {
		return false
	}
	next, ok := cond.Parent().NextSibling()
	if !ok {
		return true
	}
	after, ok := next.Node().(*ast.ExprStmt)
	return !ok || !c.leaves(after)
}
