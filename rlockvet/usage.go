package rlockvet

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// usage is what the code does with a context that carries a hold.
type usage struct {
	names   map[*types.Var]bool // the variables that carry it: the result, and those of context.WithTimeout(held, ...) and hold.Context()
	unlocks []inspector.Cursor  // the identifiers that are given to Unlock, or are a Hold whose Unlock is called
	neutral []inspector.Cursor  // those that only use the context
	escapes bool                // where it goes nobody can tell: returned, stored, given to code that may unlock it
}

// usageOf tells what becomes of the context in v, from a place in the source on. lock is the lock that it holds, nil where it is not
// known.
func (s *source) usageOf(v *types.Var, from inspector.Cursor, lock ast.Expr) *usage {
	return s.follow(v, from, lock, map[*types.Var]bool{})
}

func (s *source) follow(v *types.Var, from inspector.Cursor, lock ast.Expr, seen map[*types.Var]bool) *usage {
	u := &usage{names: map[*types.Var]bool{v: true}}
	todo := []*types.Var{v}
	for len(todo) > 0 && !u.escapes {
		v, todo = todo[0], todo[1:]
		seen[v] = true
		u.escapes = u.escapes || s.vars[v].escapes
		for _, use := range s.vars[v].uses {
			if s.before(use, from) {
				continue
			}
			more, kind := s.classify(use, lock, seen)
			switch kind {
			case unlocks:
				u.unlocks = append(u.unlocks, use)
			case neutral:
				u.neutral = append(u.neutral, use)
			case derives:
				u.neutral = append(u.neutral, use)
				if !u.names[more] {
					u.names[more] = true
					todo = append(todo, more)
				}
			case escapes:
				u.escapes = true
			}
		}
	}
	return u
}

// before tells whether the use comes before the statement, and is not in a loop with it.
func (s *source) before(use, stmt inspector.Cursor) bool {
	if !stmt.Valid() || use.Node().Pos() >= stmt.Node().Pos() {
		return false
	}
	for loop := range stmt.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		if loop.Contains(use) {
			return false
		}
	}
	return true
}

type kind int

const (
	sets kind = iota
	unlocks
	neutral
	derives // another variable carries the hold too
	escapes
)

func (s *source) classify(use inspector.Cursor, lock ast.Expr, seen map[*types.Var]bool) (*types.Var, kind) {
	for use.ParentEdgeKind() == edge.ParenExpr_X {
		use = use.Parent()
	}
	parent := use.Parent()
	switch edgeKind, i := use.ParentEdge(); edgeKind {
	case edge.ValueSpec_Names, edge.Field_Names, edge.AssignStmt_Lhs:
		return nil, sets
	case edge.AssignStmt_Rhs:
		if stmt := parent.Node().(*ast.AssignStmt); len(stmt.Lhs) == len(stmt.Rhs) && dropped(stmt.Lhs[i]) {
			return nil, neutral
		}
	case edge.SelectorExpr_X: // a method of context.Context, or of a Hold
		if parent.ParentEdgeKind() == edge.CallExpr_Fun {
			return s.classifyMethod(parent.Parent(), lock, seen)
		}
	case edge.CallExpr_Args:
		return s.classifyArg(parent, i, lock, seen)
	}
	return nil, escapes
}

func (s *source) classifyMethod(at inspector.Cursor, lock ast.Expr, seen map[*types.Var]bool) (*types.Var, kind) {
	method, _ := s.holdMethod(at.Node().(*ast.CallExpr))
	switch {
	case method == nil:
		return nil, neutral
	case ends(method):
		return nil, unlocks
	case method.Name() == "Context":
		if to := s.assignedContext(at); to != nil {
			return to, derives
		}
		return s.classify(at, lock, seen)
	}
	return nil, neutral
}

func (s *source) classifyArg(at inspector.Cursor, i int, lock ast.Expr, seen map[*types.Var]bool) (*types.Var, kind) {
	call := at.Node().(*ast.CallExpr)
	fn := s.callee(call)
	if method, _ := s.lockMethod(call); method != nil && i == 0 {
		switch {
		case method.Name() == "Unlock":
			return nil, unlocks
		case method.Name() == "ForceUnlock":
			return nil, escapes
		}
		return nil, neutral
	}
	if fn != nil && fn.Pkg() != nil && i == 0 {
		switch {
		case isFunc(fn, "context", "Cause"), isFunc(fn, module+"/fenced", "TokenFrom"):
			return nil, neutral
		case fn.Pkg().Path() == "context", strings.HasSuffix(fn.Pkg().Path(), "/errgroup"):
			if to := s.assignedContext(at); to != nil {
				return to, derives
			}
			return nil, escapes
		}
	}
	if s.usesOnly(call, fn, i, lock, seen) {
		return nil, neutral
	}
	return nil, escapes
}

// assignedContext returns the variable that the context which a call returns is assigned to.
func (s *source) assignedContext(at inspector.Cursor) *types.Var {
	stmt, ok := at.Parent().Node().(*ast.AssignStmt)
	if !ok || len(stmt.Rhs) != 1 {
		return nil
	}
	for _, e := range stmt.Lhs {
		if v := s.localVar(e); v != nil && isContext(v.Type()) {
			return v
		}
	}
	return nil
}

// usesOnly tells whether a call that gets the context as its i-th argument uses it as one, and does not unlock.
func (s *source) usesOnly(call *ast.CallExpr, fn *types.Func, i int, lock ast.Expr, seen map[*types.Var]bool) bool {
	sig, ok := types.Unalias(s.info.TypeOf(call.Fun)).Underlying().(*types.Signature)
	if !ok || i >= sig.Params().Len() || sig.Variadic() && i == sig.Params().Len()-1 || !isContext(sig.Params().At(i).Type()) {
		return false
	}
	if fn != nil {
		params := fn.Origin().Signature().Params()
		if params.Len() != sig.Params().Len() || !isContext(params.At(i).Type()) {
			return false // a method's expression; or a generic function, to which it is a value like any other
		}
	}
	for _, arg := range call.Args {
		if f, ok := ast.Unparen(arg).(*ast.FuncLit); ok && s.hasUnlock(f) {
			return false
		}
	}
	if fn != nil {
		if decl, ok := s.decls[fn.Origin()]; ok {
			return s.paramUsedOnly(decl, fn.Origin().Signature().Params().At(i), seen)
		}
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); soundsLikeRelease(fn.Name()) || ok && s.reaches(sel.X, lock) {
			return false
		}
	} else if !s.valueUsesOnly(call.Fun, lock) {
		return false
	}
	return s.givesNothingBack(sig) && !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return s.reaches(arg, lock) })
}

// valueUsesOnly is usesOnly for a function that is a value: a parameter, or a field of what does not reach the lock.
func (s *source) valueUsesOnly(fun ast.Expr, lock ast.Expr) bool {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		v := s.localVar(fun)
		return v != nil && !s.vars[v].escapes && !slices.ContainsFunc(s.vars[v].sets, func(a set) bool { return !isParam(a) }) && !soundsLikeRelease(fun.Name)
	case *ast.SelectorExpr:
		return !soundsLikeRelease(fun.Sel.Name) && !s.reaches(fun.X, lock)
	}
	return false
}

// paramUsedOnly tells whether a function of this package only uses the context that it gets.
func (s *source) paramUsedOnly(f inspector.Cursor, param *types.Var, seen map[*types.Var]bool) bool {
	if s.vars[param] == nil || seen[param] {
		return true // without a name, or asked already
	}
	u := s.follow(param, inspector.Cursor{}, nil, seen)
	return !u.escapes && len(u.unlocks) == 0
}

// givesNothingBack tells whether a function returns nothing by which its caller could reach a context that it was given.
func (s *source) givesNothingBack(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		t := types.Unalias(v.Type())
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		if named, ok := t.(*types.Named); ok && (named.Obj().Pkg() == s.pkg || isContext(t) || named.Obj().Name() == "Request") {
			return false
		}
		if _, ok := t.Underlying().(*types.Signature); ok {
			return false
		}
	}
	return true
}

// reaches tells whether code that has x has the lock: x is the lock, or what it is a field of.
func (s *source) reaches(x, lock ast.Expr) bool {
	if lock == nil {
		return false
	}
	key, of := s.lockKey(x), s.lockKey(lock)
	if of == "" {
		return s.root(x) != nil && s.root(x) == s.root(lock)
	}
	return key != "" && (key == of || strings.HasPrefix(of, key+".")) || s.root(x) != nil && s.root(x) == s.root(lock) && key == ""
}

// hasUnlock tells whether there is an Unlock in the node.
func (s *source) hasUnlock(n ast.Node) bool {
	return slices.ContainsFunc(s.unlocks, func(u call) bool { return n.Pos() <= u.expr.Pos() && u.expr.Pos() < n.End() })
}

var word = regexp.MustCompile(`[A-Z]?[a-z0-9]+`)

// soundsLikeRelease tells whether a function that cannot be looked into may be one that unlocks, by the words of its name.
func soundsLikeRelease(name string) bool {
	return slices.ContainsFunc(word.FindAllString(name, -1), func(w string) bool {
		switch strings.ToLower(w) {
		case "unlock", "release", "free", "close", "done", "end", "finish", "stop", "cleanup", "leave", "exit", "shutdown":
			return true
		}
		return false
	})
}
