package rlockvet

import (
	"go/ast"

	"golang.org/x/tools/go/ast/inspector"
)

// WrongCtx finds Unlock with the context from before Lock.
var WrongCtx = newCheck("wrongctx", "find Unlock with the context that was given to Lock\n\n"+
	"Unlock needs the context that Lock returned; with the other one it returns ErrNotHeld, and the lock stays taken.", wrongCtx)

func wrongCtx(c *check) {
	for _, u := range c.unlocks {
		v := c.localVar(u.ctx)
		if v == nil {
			continue
		}
		for _, a := range c.acquires {
			to := c.result(a, 0)
			if to == nil || to == v || c.localVar(a.ctx) != v || !c.sameLock(a.lock, u.lock) || !c.sameFunction(a.cur, u.cur) ||
				a.stmt.Node().End() > u.expr.Pos() {
				continue
			}
			given, ok := c.definitionOf(a.ctx, a.cur)
			if !ok || !c.freshContext(a.ctx, a.cur) {
				continue
			}
			if unlocked, ok := c.definitionOf(u.ctx, u.cur); !ok || unlocked != given {
				continue
			}
			if use := c.usageOf(to, a.stmt, a.lock); use.escapes || len(use.unlocks) > 0 {
				continue // that hold is unlocked elsewhere, and this may be another one
			}
			fix, advice := replace("Unlock with "+to.Name(), u.ctx, to.Name()), "pass the context that it returned, "+to.Name()
			if a.isHold() {
				fix, advice = replace("Unlock "+to.Name(), u.lock, to.Name()), "call the Unlock of what it returned, "+to.Name()
			}
			if c.lookup(u.expr, to.Name()) != to {
				fix = nil
			}
			c.report(u.expr, fix, "Unlock with %s, which was given to %s: %s", v.Name(), a.fn.Name(), advice)
			break
		}
	}
}

func (s *source) sameLock(x, y ast.Expr) bool {
	key := s.lockKey(x)
	return key != "" && key == s.lockKey(y)
}

// sameFunction tells whether b is in the function that a is in, or in a literal inside it.
func (s *source) sameFunction(a, b inspector.Cursor) bool {
	f, ok := function(a)
	return ok && f.Contains(b)
}

// definitionOf is definition for an expression below the cursor.
func (s *source) definitionOf(e ast.Expr, in inspector.Cursor) (set, bool) {
	cur, ok := in.FindNode(ast.Unparen(e))
	if !ok {
		return set{}, false
	}
	return s.definition(cur)
}
