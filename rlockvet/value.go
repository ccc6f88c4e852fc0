package rlockvet

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/inspector"
)

// definition returns the assignment whose value the identifier has, if there is only one that it can be.
func (s *source) definition(use inspector.Cursor) (set, bool) {
	id, ok := use.Node().(*ast.Ident)
	if !ok {
		return set{}, false
	}
	v := s.localVar(id)
	if v == nil || s.vars[v].escapes {
		return set{}, false
	}
	in, ok := function(use)
	if !ok {
		return set{}, false
	}
	var last set
	found := false
	for _, a := range s.vars[v].sets {
		f, ok := function(a.stmt)
		if !ok || f != in && !f.Contains(in) {
			return set{}, false // by a function that may run at any time
		}
		switch {
		case !isParam(a) && a.stmt.Contains(use):
			if _, ranges := a.stmt.Node().(*ast.RangeStmt); ranges || f != in {
				return set{}, false
			}
			// use is on its right side, and has an earlier value
		case a.stmt.Node().End() <= use.Node().Pos():
			last, found = a, true
		case f != in:
			return set{}, false // after the function was made that uses it
		}
	}
	return last, found && scopeOf(last.stmt).Contains(use) && !s.setInLoop(v, use, last)
}

// setInLoop tells whether a loop around the use, but not around the definition, sets the variable again.
func (s *source) setInLoop(v *types.Var, use inspector.Cursor, def set) bool {
	for loop := range use.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		if loop.Contains(def.stmt) {
			return false
		}
		for _, a := range s.vars[v].sets {
			if a.stmt != def.stmt && loop.Contains(a.stmt) {
				return true
			}
		}
	}
	return false
}

func isParam(a set) bool {
	_, ok := a.stmt.Node().(*ast.Field)
	return ok
}

// scopeOf returns what an assignment stands in: a block, a clause, the statement whose Init it is, or a parameter's function.
func scopeOf(stmt inspector.Cursor) inspector.Cursor {
	switch stmt.Node().(type) {
	case *ast.ValueSpec:
		stmt = stmt.Parent().Parent() // GenDecl, DeclStmt
	case *ast.Field:
		f, _ := function(stmt)
		return f
	}
	return stmt.Parent()
}

// freshContext tells whether the context is one that carries no holder, or the one that the function was given: not one that came
// from a lock, from NewHolder, or from code that may have made it of such a one.
func (s *source) freshContext(e ast.Expr, at inspector.Cursor) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		cur, ok := at.FindNode(e)
		if !ok {
			return false
		}
		def, ok := s.definition(cur)
		if !ok {
			return false
		}
		return isParam(def) || def.value != nil && def.index == 0 && s.freshContext(def.value, def.stmt)
	case *ast.CallExpr:
		fn := s.callee(e)
		if fn == nil {
			return false
		}
		if fn.Name() == "Context" && fn.Signature().Recv() != nil && len(e.Args) == 0 {
			return !ofAPI(fn.Pkg()) // of a request, a test, a command
		}
		if fn.Pkg() == nil || fn.Pkg().Path() != "context" {
			return false
		}
		return len(e.Args) == 0 || s.freshContext(e.Args[0], at)
	}
	return false
}

// lockKey returns a text that is the same for two expressions only if they are the same lock: a variable, a field of a variable, or
// NewLock with a client and a constant name. It is empty where that cannot be known.
func (s *source) lockKey(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := s.info.ObjectOf(e).(*types.Var)
		if !ok {
			return ""
		}
		if of := s.vars[v]; of != nil && len(of.sets) == 1 && !of.escapes {
			if key := s.newLock(of.sets[0].value); key != "" {
				return key
			}
		}
		return "variable " + v.Name() + " " + strconv.Itoa(int(v.Pos()))
	case *ast.SelectorExpr:
		sel := s.info.Selections[e]
		if sel == nil {
			return s.lockKey(e.Sel) // of a package
		}
		if x := s.lockKey(e.X); x != "" && sel.Kind() == types.FieldVal {
			return x + "." + e.Sel.Name
		}
	case *ast.StarExpr:
		return s.lockKey(e.X)
	case *ast.UnaryExpr:
		return s.lockKey(e.X)
	case *ast.CallExpr:
		return s.newLock(e)
	}
	return ""
}

// newLock is lockKey for a call of rlock.NewLock or fenced.NewLock.
func (s *source) newLock(e ast.Expr) string {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	fn, name := s.callee(call), s.info.Types[call.Args[1]].Value
	if fn == nil || fn.Name() != "NewLock" || !ofAPI(fn.Pkg()) || name == nil {
		return ""
	}
	if key := s.lockKey(call.Args[0]); key != "" {
		return key + " " + name.ExactString()
	}
	return ""
}

// root returns the variable that an expression begins with: s of s.locks.a.
func (s *source) root(e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return s.info.ObjectOf(x)
		case *ast.SelectorExpr:
			if s.info.Selections[x] == nil {
				return s.info.ObjectOf(x.Sel)
			}
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// expires tells whether the lock is taken with a lease that nobody renews, so that it may be meant to run out.
func (s *source) expires(a *acquire) bool {
	if a.fn.Name() == "Acquire" {
		return slices.ContainsFunc(a.expr.Args[1:], func(opt ast.Expr) bool {
			call, _ := ast.Unparen(opt).(*ast.CallExpr)
			return call == nil || !slices.ContainsFunc([]string{"Wait", "Reenter", "Lasting"}, func(name string) bool {
				return isFunc(s.callee(call), module+"/rlock", name)
			})
		})
	}
	for i := range a.expr.Args {
		if a.fn.Signature().Params().At(i).Name() == "lease" {
			value := s.info.Types[a.expr.Args[i]].Value
			return value == nil || constant.Sign(value) != 0
		}
	}
	return false
}

// anyFor tells whether there is one of these calls for the acquire's lock in its function.
func (s *source) anyFor(a *acquire, calls []call) bool {
	return slices.ContainsFunc(calls, func(c call) bool { return s.sameFunction(a.cur, c.cur) && s.sameLock(a.lock, c.lock) })
}
