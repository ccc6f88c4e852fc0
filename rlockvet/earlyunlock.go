package rlockvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// EarlyUnlock finds an Unlock that runs whether its acquire has failed or not.
var EarlyUnlock = newCheck("earlyunlock", "find an Unlock before the error of its acquire is looked at\n\n"+
	"After a failed acquire there is nothing to unlock: the context says ErrNotHeld, and a Hold is nil.", earlyUnlock)

func earlyUnlock(c *check) {
	for _, a := range c.acquires {
		v, err := c.result(a, 0), c.result(a, -1)
		if v == nil || err == nil {
			continue
		}
		for _, u := range c.unlocks {
			if c.localVar(u.ctx) != v || !c.inStep(a, u) {
				continue
			}
			if def, ok := c.definitionOf(u.ctx, u.cur); !ok || ast.Unparen(def.value) != a.expr || c.looksAt(err, a, u) {
				continue
			}
			after := "the context has nothing to unlock"
			if a.isHold() {
				after = v.Name() + " is nil"
			}
			c.report(u.expr, nil, "%s comes before %s is looked at: after a failed %s %s", a.release(), err.Name(), a.fn.Name(), after)
		}
	}
}

// inStep tells whether the Unlock is in the acquire's function, or in a function literal that this calls, or defers, on the spot.
func (c *check) inStep(a *acquire, u call) bool {
	f, _ := function(a.cur)
	in, ok := function(u.cur)
	if ok && in != f && in.ParentEdgeKind() == edge.CallExpr_Fun {
		switch in.Parent().ParentEdgeKind() {
		case edge.DeferStmt_Call, edge.ExprStmt_X:
			in, ok = function(in.Parent())
		}
	}
	return ok && in == f
}

// looksAt tells whether the code looks at the acquire's error between the acquire and the Unlock. It does where it cannot be told.
func (c *check) looksAt(err *types.Var, a *acquire, u call) bool {
	stmt := a.stmt
	for {
		next, ok := stmt.NextSibling()
		if !ok || a.stmt.ParentEdgeKind() != next.ParentEdgeKind() {
			return true // the acquire is in the init of a statement, or the Unlock is not behind it in its block
		}
		stmt = next
		last := stmt.Contains(u.cur)
		for _, use := range c.vars[err].uses {
			if stmt.Contains(use) && use.ParentEdgeKind() != edge.AssignStmt_Lhs && (!last || decides(use, stmt)) {
				return true
			}
		}
		if last {
			return false
		}
	}
}

// decides tells whether the identifier is part of a condition within the statement.
func decides(use, stmt inspector.Cursor) bool {
	for ; use != stmt; use = use.Parent() {
		switch use.ParentEdgeKind() {
		case edge.IfStmt_Cond, edge.SwitchStmt_Tag, edge.CaseClause_List, edge.ForStmt_Cond:
			return true
		}
	}
	return false
}
