package rlockvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// module is fencelock's path; the checks know its API by names and types alone.
const module = "github.com/fencelock/fencelock"

// ofAPI tells whether the package is one of fencelock's that say something of locks or tokens.
func ofAPI(pkg *types.Package) bool {
	if pkg == nil {
		return false
	}
	path, ok := strings.CutPrefix(pkg.Path(), module+"/")
	return ok && (path == "rlock" || path == "fenced" || path == "quorum" || path == "guard" || strings.HasPrefix(path, "guard/"))
}

// isFunc tells whether fn, which may be nil, is the function pkg.name; pkg is a path.
func isFunc(fn *types.Func, pkg, name string) bool {
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == pkg && fn.Name() == name && fn.Signature().Recv() == nil
}

// callee returns the function or method that the call names, nil for a function value or a conversion.
func (s *source) callee(call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(s.info, call).(*types.Func)
	return fn
}

// lockMethod returns the method of rlock.Lock or fenced.Lock that the call names, and the lock; nil for other calls.
func (s *source) lockMethod(call *ast.CallExpr) (*types.Func, ast.Expr) {
	fn := s.callee(call)
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || fn == nil || !ofAPI(fn.Pkg()) || fn.Signature().Recv() == nil || s.info.Selections[sel] == nil ||
		s.info.Selections[sel].Kind() != types.MethodVal {
		return nil, nil
	}
	recv := fn.Signature().Recv().Type()
	if p, ok := recv.(*types.Pointer); ok {
		recv = p.Elem()
	}
	named, ok := recv.(*types.Named)
	if !ok || named.Obj().Name() != "Lock" || fn.Pkg().Path() != module+"/rlock" && fn.Pkg().Path() != module+"/fenced" {
		return nil, nil
	}
	return fn, sel.X
}

// acquires tells whether a lock's method takes the lock: it returns a context first, and an error last.
func acquires(fn *types.Func) bool {
	res := fn.Signature().Results()
	return res.Len() >= 2 && isContext(res.At(0).Type()) && isError(res.At(res.Len()-1).Type())
}

// sentinel returns one of fencelock's error variables (rlock.ErrLost), nil for another expression.
func (s *source) sentinel(e ast.Expr) *types.Var {
	var id *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		id = e
	case *ast.SelectorExpr:
		id = e.Sel
	default:
		return nil
	}
	v, ok := s.info.Uses[id].(*types.Var)
	if !ok || !ofAPI(v.Pkg()) || v.Parent() != v.Pkg().Scope() || !strings.HasPrefix(v.Name(), "Err") || !isError(v.Type()) {
		return nil
	}
	return v
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

func isDuration(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Duration"
}
