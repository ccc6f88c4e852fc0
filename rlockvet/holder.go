package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
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
		if outer == nil || !c.sameLock(outer.lock, inner.lock) || c.unlockedBefore(outer, start) || c.joins(start) {
			continue
		}
		var fix []analysis.SuggestedFix
		if name := c.importName(start, module+"/rlock"); name != "" && !c.joinsLater(start) {
			fix = replace("Lock as another holder", inner.ctx, name+".NewHolder("+v.Name()+")")
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

// unlockedBefore tells whether the hold may be over when the goroutine is started.
func (c *check) unlockedBefore(outer *acquire, start inspector.Cursor) bool {
	return slices.ContainsFunc(c.usageOf(c.result(outer, 0), outer.stmt, outer.lock).unlocks, func(use inspector.Cursor) bool {
		_, late := deferred(use.Parent())
		return !late && use.Node().Pos() < start.Node().Pos()
	})
}

// joins tells whether the function does nothing between the start of the goroutine and waiting for it, so that it need not be excluded.
func (c *check) joins(start inspector.Cursor) bool {
	for cur := start; ; {
		next, ok := cur.NextSibling()
		if !ok {
			// the end of a loop or a block: go on after it
			cur = cur.Parent()
			switch cur.Node().(type) {
			case *ast.FuncLit, *ast.FuncDecl, *ast.File:
				return false
			}
			continue
		}
		cur = next
		stmt, isStmt := cur.Node().(ast.Stmt)
		switch {
		case c.waits(cur.Node()):
			return true
		case isStmt && c.works(stmt):
			return false
		}
	}
}

// joinsLater tells whether the function waits for something after the start of the goroutine: perhaps for the goroutine.
func (c *check) joinsLater(start inspector.Cursor) bool {
	f, ok := function(start)
	if !ok {
		return true
	}
	found := false
	ast.Inspect(body(f.Node()), func(n ast.Node) bool {
		found = found || n != nil && n.Pos() >= start.Node().End() && c.waits(n)
		return !found
	})
	return found
}

// waits tells whether there is something in the node that waits for goroutines: a call of Wait, a channel, a select.
func (c *check) waits(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
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

// works tells whether the statement may be work that the lock is for: not the start of another goroutine, nor what belongs to it.
func (c *check) works(stmt ast.Stmt) bool {
	switch n := stmt.(type) {
	case *ast.GoStmt, *ast.DeferStmt, *ast.DeclStmt, *ast.SendStmt:
		return false
	case *ast.AssignStmt:
		return n.Tok != token.DEFINE || slices.ContainsFunc(n.Rhs, hasCall)
	case *ast.ForStmt:
		return slices.ContainsFunc(n.Body.List, c.works)
	case *ast.RangeStmt:
		return slices.ContainsFunc(n.Body.List, c.works)
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch obj := typeutil.Callee(c.info, call).(type) {
		case *types.Builtin:
			return obj.Name() != "close"
		case *types.Func:
			return obj.Name() != "Go" && obj.Name() != "Add"
		}
	}
	return true
}

// importName returns the name of an imported package at a place, "" where it has none.
func (c *check) importName(at inspector.Cursor, path string) string {
	scope := c.pkg.Scope().Innermost(at.Node().Pos())
	for _, spec := range c.file(at.Node().Pos()).Imports {
		if pkg := c.info.PkgNameOf(spec); pkg != nil && pkg.Imported().Path() == path {
			if _, obj := scope.LookupParent(pkg.Name(), at.Node().Pos()); obj == types.Object(pkg) {
				return pkg.Name()
			}
		}
	}
	return ""
}
