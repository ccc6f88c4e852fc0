package rlockvet

import (
	"go/ast"
	"slices"
)

// CallerCtx finds holds that are kept by a Lock, TryLock or Acquire of the user's own, and end with the context of its caller.
var CallerCtx = newCheck("callerctx", "find a method Lock, TryLock or Acquire that keeps a hold which ends with its caller's context\n\n"+
	"Behind an interface of somebody else the caller may end that context as soon as the method has returned, and the hold with it. The\n"+
	"context of Acquire bounds the wait alone.", callerCtx)

func callerCtx(c *check) {
	for _, a := range c.acquires {
		b, ok := c.boundOf(a)
		if !ok || b.cancel != "" {
			continue
		}
		f, _ := function(a.cur)
		decl, ok := f.Node().(*ast.FuncDecl)
		if !ok || !slices.Contains([]string{"Lock", "TryLock", "Acquire"}, decl.Name.Name) || c.goesTo(a, b.param) < inside {
			continue
		}
		c.report(a.expr, nil, "the hold is kept after %s returns, and ends with the context of its caller. Use Acquire, whose context bounds only the wait", decl.Name.Name)
	}
}
