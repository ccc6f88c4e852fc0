package rlockvet

import (
	"go/ast"
	"go/types"
	"slices"
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
	return ok && (path == "rlock" || path == "fenced" || path == "quorum" || path == "leader" || path == "guard" || strings.HasPrefix(path, "guard/"))
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

// lockMethod returns the method of rlock.Lock, fenced.Lock or fenced.Semaphore that the call names, or leader.Election's Campaign, and the lock; or
// AcquireAll, and its locks; nil for other calls.
func (s *source) lockMethod(call *ast.CallExpr) (*types.Func, ast.Expr) {
	if fn := s.callee(call); (isFunc(fn, module+"/rlock", "AcquireAll") || isFunc(fn, module+"/fenced", "AcquireAll")) && len(call.Args) >= 2 {
		return fn, call.Args[1]
	}
	if fn, lock := s.method(call, "Lock", "Semaphore"); fn != nil {
		return fn, lock
	}
	if fn, election := s.method(call, "Election"); fn != nil && acquires(fn) {
		return fn, election
	}
	return nil, nil
}

// holdMethod is lockMethod for rlock.Hold, fenced.Hold and leader.Term.
func (s *source) holdMethod(call *ast.CallExpr) (*types.Func, ast.Expr) {
	return s.method(call, "Hold", "Term")
}

// method returns the method of one of these types of rlock, fenced or leader that the call names, and its receiver; nil for other calls.
func (s *source) method(call *ast.CallExpr, of ...string) (*types.Func, ast.Expr) {
	fn := s.callee(call)
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || fn == nil || !ofAPI(fn.Pkg()) || fn.Signature().Recv() == nil || s.info.Selections[sel] == nil ||
		s.info.Selections[sel].Kind() != types.MethodVal {
		return nil, nil
	}
	if !isNamed(fn.Signature().Recv().Type(), of...) {
		return nil, nil
	}
	return fn, sel.X
}

// isNamed tells whether the type is one of rlock, fenced or leader with one of these names, or a pointer to it.
func isNamed(t types.Type, names ...string) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := t.(*types.Named)
	if !ok || !slices.Contains(names, named.Obj().Name()) || named.Obj().Pkg() == nil {
		return false
	}
	path := named.Obj().Pkg().Path()
	return path == module+"/rlock" || path == module+"/fenced" || path == module+"/leader"
}

// acquires tells whether a lock's method takes the lock: it returns a context, a Hold or a Term first, and an error last.
func acquires(fn *types.Func) bool {
	res := fn.Signature().Results()
	return res.Len() >= 2 && (isContext(res.At(0).Type()) || holds(res.At(0).Type())) && isError(res.At(res.Len()-1).Type())
}

// isHold tells whether the acquire returns a Hold or a Term: it is Acquire, or Campaign.
func (a *acquire) isHold() bool { return holds(a.fn.Signature().Results().At(0).Type()) }

// release is the name of the method that ends what the acquire returns.
func (a *acquire) release() string {
	if isNamed(a.fn.Signature().Results().At(0).Type(), "Term") {
		return "StepDown"
	}
	return "Unlock"
}

// ends tells whether the method of a Hold or a Term ends it.
func ends(method *types.Func) bool {
	return method.Name() == "Unlock" || method.Name() == "StepDown"
}

// holds tells whether the type is Hold, or Term, which has a Hold's methods.
func holds(t types.Type) bool {
	return isNamed(t, "Hold", "Term")
}

// isSentinel tells whether the expression is one of fencelock's error variables, as rlock.ErrLost.
func (s *source) isSentinel(e ast.Expr) bool {
	v, ok := s.object(e).(*types.Var)
	return ok && ofAPI(v.Pkg()) && v.Parent() == v.Pkg().Scope() && strings.HasPrefix(v.Name(), "Err") && isError(v.Type())
}

// isCanceled tells whether the expression is context.Canceled.
func (s *source) isCanceled(e ast.Expr) bool {
	obj := s.object(e)
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "context" && obj.Name() == "Canceled"
}

// object returns what a name stands for, nil for another expression.
func (s *source) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return s.info.Uses[e]
	case *ast.SelectorExpr:
		return s.info.Uses[e.Sel]
	}
	return nil
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
