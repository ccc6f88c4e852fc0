package rlockvet

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/ast/edge"
)

// Held finds acquires whose context is dropped.
var Held = newCheck("held", "find calls that take a lock and drop the context that they return\n\n"+
	"That context is what Unlock needs: without it the lock stays taken until the garbage collector finds the hold.", held)

func held(c *check) {
	for _, a := range c.acquires {
		if len(a.lhs) > 0 && (!dropped(a.lhs[0]) || !c.goesOn(a)) || !c.freshContext(a.ctx, a.cur) {
			continue
		}
		if c.anyFor(a, c.forces) || c.expires(a) && !c.anyFor(a, c.unlocks) {
			continue // it is forced open, or left to its lease
		}
		what := "context"
		if a.isHold() {
			what = "hold"
		}
		c.report(a.expr, nil, "the %s that %s returns is dropped: %s needs it", what, a.fn.Name(), a.release())
	}
}

// goesOn tells whether the code after an acquire takes success for the ordinary case: it returns the
// error, or asks first whether there is one. Elsewhere the acquire may be a test of one that has to fail.
func (c *check) goesOn(a *acquire) bool {
	err := c.result(a, -1)
	if err == nil {
		return false
	}
	for _, use := range c.vars[err].uses {
		if def, ok := c.definition(use); ok && ast.Unparen(def.value) == a.expr {
			compares, ok := use.Parent().Node().(*ast.BinaryExpr)
			return ok && compares.Op == token.NEQ || use.ParentEdgeKind() == edge.ReturnStmt_Results
		}
	}
	return false
}
