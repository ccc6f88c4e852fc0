package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// ErrCompare finds errors of fencelock that are compared by ==, != or switch.
var ErrCompare = newCheck("errcompare", "find errors of fencelock that are compared with ==, != or switch\n\n"+
	"All of them are wrapped, with the method and the lock's name, so that such a comparison does not hold.", errCompare)

func errCompare(c *check) {
	for cur := range c.inspect.Root().Preorder((*ast.BinaryExpr)(nil), (*ast.SwitchStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				continue
			}
			err, target := n.X, n.Y
			if c.isSentinel(err) || c.isCanceled(err) {
				err, target = target, err
			}
			if c.isWrapped(err, target, cur) {
				c.report(n, c.useIs(n, err, target), "%s does not equal %s, which is wrapped: use errors.Is", types.ExprString(err), types.ExprString(target))
			} else if c.isCanceled(target) && c.errOfHold(err, cur) {
				c.report(n, nil, "%s equals context.Canceled when the caller has canceled, and not when the lock was lost: use errors.Is", types.ExprString(err))
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				continue
			}
			tag := types.ExprString(n.Tag)
			for _, clause := range n.Body.List {
				for _, target := range clause.(*ast.CaseClause).List {
					if c.isWrapped(n.Tag, target, cur) {
						c.report(target, nil, "%s does not equal %s, which is wrapped: use errors.Is, in a switch without %s", tag, types.ExprString(target), tag)
					}
				}
			}
		}
	}
}

// isWrapped tells whether target is an error of fencelock, which comes wrapped, or is
// context.Canceled and err what a lock's method returned. It is false in a method Is, which
// is there for errors.Is.
func (c *check) isWrapped(err, target ast.Expr, in inspector.Cursor) bool {
	if f, ok := function(in); ok {
		if decl, ok := f.Node().(*ast.FuncDecl); ok && decl.Recv != nil && decl.Name.Name == "Is" {
			return false
		}
	}
	if !c.isCanceled(target) {
		return c.isSentinel(target)
	}
	if def, ok := c.definitionOf(err, in); ok && def.value != nil {
		err = def.value
	}
	call, ok := ast.Unparen(err).(*ast.CallExpr)
	if !ok {
		return false
	}
	method, _ := c.lockMethod(call)
	return method != nil
}

// errOfHold tells whether the expression is held.Err().
func (c *check) errOfHold(e ast.Expr, in inspector.Cursor) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Err" && c.isHeld(sel.X, in)
}

// isHeld tells whether the expression is the context of a hold: what an acquire returned, or what Do gives to its function.
func (c *check) isHeld(e ast.Expr, in inspector.Cursor) bool {
	def, ok := c.definitionOf(e, in)
	if !ok {
		return false
	}
	if !isParam(def) {
		a := c.acquireOf(def.value)
		return def.index == 0 && a != nil && !a.isHold()
	}
	f, _ := function(def.stmt)
	if f.ParentEdgeKind() != edge.CallExpr_Args {
		return false
	}
	method, _ := c.lockMethod(f.Parent().Node().(*ast.CallExpr))
	return method != nil
}

// useIs is the fix that puts errors.Is in the place of the comparison.
func (c *check) useIs(n *ast.BinaryExpr, err, target ast.Expr) []analysis.SuggestedFix {
	call := "errors.Is(" + types.ExprString(err) + ", " + types.ExprString(target) + ")"
	if n.Op == token.NEQ {
		call = "!" + call
	}
	fix := replace("Use errors.Is", n, call)
	if c.lookup(n, "errors") == nil {
		at := c.file(n.Pos()).Name.End()
		fix[0].TextEdits = append(fix[0].TextEdits, analysis.TextEdit{Pos: at, End: at, NewText: []byte("\n\nimport \"errors\"")})
	} else if !c.isPackage(n, "errors", "errors") {
		return nil
	}
	return fix
}
