package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// Holder finds goroutines that re-enter the lock of the function that starts them.
var Holder = newCheck("holder", "find goroutines that take their parent's lock with their parent's context\n\n"+
	"The context carries the holder: such a goroutine re-enters the lock beside its parent instead of waiting for it.", holder)

func holder(c *check) {
	for _, inner := range c.acquires {
		start, ok := c.started(inner.cur)
		if !ok || inner.isHold() {
			continue
		}
		v := c.localVar(inner.ctx)
		if v == nil {
			continue
		}
		def, ok := c.definitionOf(inner.ctx, inner.cur)
		if !ok || def.value == nil || start.Contains(def.stmt) {
			continue
		}
		outer := c.acquireOf(def.value)
		if outer == nil || !c.sameLock(outer.lock, inner.lock) || c.joins(start) {
			continue
		}
		var fix []analysis.SuggestedFix
		if c.isPackage(inner.expr, "rlock", module+"/rlock") {
			fix = replace("Lock as another holder", inner.ctx, "rlock.NewHolder("+v.Name()+")")
		}
		c.report(inner.expr, fix, "the goroutine has the same holder as the function that starts it, and does not wait for its lock: %s carries it. To exclude each other, lock with rlock.NewHolder(%s)", v.Name(), v.Name())
	}
}

// started returns the statement that starts the innermost function around cur as a goroutine: go func, errgroup.Go, WaitGroup.Go.
func (c *check) started(cur inspector.Cursor) (inspector.Cursor, bool) {
	f, ok := function(cur)
	if !ok {
		return f, false
	}
	switch f.ParentEdgeKind() {
	case edge.CallExpr_Fun:
		if f.Parent().ParentEdgeKind() == edge.GoStmt_Call {
			return f.Parent().Parent(), true
		}
	case edge.CallExpr_Args:
		call := f.Parent().Node().(*ast.CallExpr)
		if fn := c.callee(call); fn != nil && fn.Name() == "Go" && fn.Signature().Recv() != nil && f.Parent().ParentEdgeKind() == edge.ExprStmt_X {
			return f.Parent().Parent(), true
		}
	}
	return f, false
}

// joins tells whether the function waits for something after the start of the goroutine,
// perhaps for the goroutine: by Wait, a channel, a select.
func (c *check) joins(start inspector.Cursor) bool {
	f, _ := function(start)
	found := false
	ast.Inspect(body(f.Node()), func(n ast.Node) bool {
		if n == nil || n.Pos() < start.Node().End() {
			return n != start.Node()
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectStmt:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.RangeStmt:
			_, ch := c.info.TypeOf(n.X).Underlying().(*types.Chan)
			found = found || ch
		case *ast.CallExpr:
			fn := c.callee(n)
			found = found || fn != nil && fn.Name() == "Wait"
		}
		return !found
	})
	return found
}
