package rlockvet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// AfterUnlock finds uses of a context that has ended with its hold.
var AfterUnlock = newCheck("afterunlock", "find uses of a context after the Unlock that ended it\n\n"+
	"Where the context of Lock takes the name of the one from before it, code after Unlock has none that is alive: locks return\n"+
	"ErrUnlocked, and other calls find it canceled.", afterUnlock)

func afterUnlock(c *check) {
	for _, a := range c.acquires {
		v := c.result(a, 0)
		given, ok := ast.Unparen(a.ctx).(*ast.Ident)
		if v == nil || !ok || given.Name != v.Name() {
			continue
		}
		for _, u := range c.unlocks {
			if c.localVar(u.ctx) != v || !c.sameLock(a.lock, u.lock) {
				continue
			}
			if def, ok := c.definitionOf(u.ctx, u.cur); ok && ast.Unparen(def.value) == a.expr {
				c.afterUnlock(a, v, u)
			}
		}
	}
}

// afterUnlock looks at the statements that follow an Unlock in its list.
func (c *check) afterUnlock(a *acquire, v *types.Var, u call) {
	stmt := u.cur
	for listed := false; !listed; {
		switch stmt = stmt.Parent(); stmt.Node().(type) {
		case *ast.FuncLit, *ast.FuncDecl, *ast.DeferStmt, *ast.GoStmt, *ast.CaseClause, *ast.CommClause:
			return // it runs at another time, or perhaps
		}
		switch stmt.ParentEdgeKind() {
		case edge.BlockStmt_List, edge.CaseClause_Body, edge.CommClause_Body:
			listed = true
		}
	}
	for {
		next, ok := stmt.NextSibling()
		if !ok {
			return
		}
		stmt = next
		for _, use := range c.vars[v].uses {
			if !stmt.Contains(use) {
				continue
			}
			if def, ok := c.definition(use); !ok || ast.Unparen(def.value) != a.expr {
				return // it has another value from here on
			}
			if c.fails(use) && !c.worksForOther(use, a) {
				c.report(use.Node(), nil, "%s has ended with the Unlock before: keep the context from before %s under another name, and use that", v.Name(), a.fn.Name())
				return
			}
		}
	}
}

// worksForOther tells whether the identifier is given to a method of another lock that works: the context has the level of that one too, and
// these methods do not mind that the context has ended.
func (c *check) worksForOther(use inspector.Cursor, a *acquire) bool {
	call, ok := use.Parent().Node().(*ast.CallExpr)
	if !ok {
		return false
	}
	method, lock := c.lockMethod(call)
	return method != nil && slices.Contains([]string{"Unlock", "Check", "Token", "Remaining"}, method.Name()) && !c.sameLock(a.lock, lock)
}

// fails tells whether the identifier is given to a call that fails with a context that has ended: one that returns an error, or a context
// made of it. Calls that log, count or trace do not mind.
func (c *check) fails(use inspector.Cursor) bool {
	if kind, i := use.ParentEdge(); kind != edge.CallExpr_Args || i != 0 {
		return false
	}
	call := use.Parent().Node().(*ast.CallExpr)
	fn := c.callee(call)
	if isFunc(fn, "context", "WithoutCancel") || isFunc(fn, "context", "Cause") {
		return false
	}
	sig, ok := c.info.TypeOf(call.Fun).Underlying().(*types.Signature)
	if !ok || sig.Results().Len() == 0 || fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "log/slog" {
		return false
	}
	return isError(sig.Results().At(sig.Results().Len()-1).Type()) || fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "context"
}
