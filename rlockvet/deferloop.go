package rlockvet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// DeferLoop finds a deferred Unlock in a loop.
var DeferLoop = newCheck("deferloop", "find a deferred Unlock in a loop\n\n"+
	"It runs when the function ends, not with each round: the locks pile up, and a lock that is taken again waits for itself.", deferLoop)

func deferLoop(c *check) {
	for _, u := range c.unlocks {
		stmt, ok := deferred(u.cur)
		if !ok {
			continue
		}
		loop, ok := loopAround(stmt)
		if !ok {
			continue
		}
		def, ok := c.definitionOf(u.ctx, u.cur)
		if !ok || def.value == nil {
			continue
		}
		a := c.acquireOf(def.value)
		if a == nil || !loop.Contains(a.cur) || !c.comesRound(stmt, a) {
			continue
		}
		v := c.localVar(u.ctx)
		if !loop.Contains(c.vars[v].sets[0].stmt) {
			continue // each round locks with the context of the round before, to hold all of them
		}
		use := c.usageOf(v, a.stmt, a.lock)
		if use.escapes {
			continue
		}
		switch {
		case c.outside(a.lock, loop):
			c.report(stmt.Node(), nil, "Unlock is deferred in a loop, to the end of the function: the next round waits for this hold. Unlock in the loop, or move its body into a function")
		case len(use.neutral) > 0 && c.endsWith(loop):
			c.report(stmt.Node(), nil, "Unlock is deferred in a loop, to the end of the function: the locks of all rounds stay taken until then. Unlock in the loop, or move its body into a function")
		}
	}
}

// deferred returns the defer statement that an Unlock is the call of, or is in the literal of.
func deferred(cur inspector.Cursor) (inspector.Cursor, bool) {
	if cur.ParentEdgeKind() == edge.DeferStmt_Call {
		return cur.Parent(), true
	}
	f, ok := function(cur)
	if !ok || f.ParentEdgeKind() != edge.CallExpr_Fun || f.Parent().ParentEdgeKind() != edge.DeferStmt_Call {
		return inspector.Cursor{}, false
	}
	return f.Parent().Parent(), true
}

// loopAround returns the innermost loop around a statement, in its function.
func loopAround(stmt inspector.Cursor) (inspector.Cursor, bool) {
	for ; stmt.Valid(); stmt = stmt.Parent() {
		switch stmt.Node().(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return stmt, true
		case *ast.FuncLit, *ast.FuncDecl:
			return inspector.Cursor{}, false
		}
	}
	return inspector.Cursor{}, false
}

// comesRound tells whether the acquire can run again after the statement.
func (c *check) comesRound(stmt inspector.Cursor, a *acquire) bool {
	f, ok := function(stmt)
	if !ok {
		return false
	}
	seen := map[*cfg.Block]bool{}
	var todo []*cfg.Block
	for _, b := range c.graph(f).Blocks {
		if i := slices.IndexFunc(b.Nodes, func(n ast.Node) bool { return n == stmt.Node() }); i >= 0 {
			todo = append(todo, b.Succs...)
		}
	}
	for len(todo) > 0 {
		b := todo[0]
		todo = todo[1:]
		if seen[b] {
			continue
		}
		seen[b] = true
		if slices.ContainsFunc(b.Nodes, func(n ast.Node) bool { return covers(n, a.expr) }) {
			return true
		}
		todo = append(todo, b.Succs...)
	}
	return false
}

// outside tells whether the lock is the same in each round of the loop.
func (c *check) outside(lock ast.Expr, loop inspector.Cursor) bool {
	obj := c.root(lock)
	if c.lockKey(lock) == "" || obj == nil {
		return false
	}
	v, _ := obj.(*types.Var)
	return v != nil && (c.vars[v] == nil || !slices.ContainsFunc(c.vars[v].sets, func(a set) bool { return loop.Contains(a.stmt) }))
}

// endsWith tells whether the function has nothing to do after the loop that the locks could be for.
func (c *check) endsWith(loop inspector.Cursor) bool {
	f, ok := function(loop)
	if !ok || loop.Parent().Node() != body(f.Node()) {
		return false
	}
	for cur := loop; ; {
		next, ok := cur.NextSibling()
		if !ok {
			return true
		}
		ret, ok := next.Node().(*ast.ReturnStmt)
		if !ok || slices.ContainsFunc(ret.Results, hasCall) {
			return false
		}
		cur = next
	}
}

func hasCall(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		found = found || call
		return !found
	})
	return found
}
