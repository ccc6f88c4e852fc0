package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// source is one package, with what it does with locks.
type source struct {
	pkg     *types.Package
	info    *types.Info
	files   []*ast.File
	inspect *inspector.Inspector // nil in a package that imports nothing of fencelock

	acquires []*acquire
	unlocks  []call
	forces   []call                           // of ForceUnlock
	vars     map[*types.Var]*variable         // of functions; parameters too
	decls    map[*types.Func]inspector.Cursor // *ast.FuncDecl of this package
	stops    map[*types.Func]bool             // memo of stopsProgram
}

// acquire is a call that takes a lock.
type acquire struct {
	call
	fn   *types.Func
	stmt inspector.Cursor // the statement that has the call as all of its right side, or as itself
	lhs  []ast.Expr       // what the results are assigned to; none where they are dropped
}

// call is a call of a lock's method, whose first argument is a context; or of the Unlock of a Hold, which has the Hold as its ctx, and no lock.
type call struct {
	cur  inspector.Cursor
	expr *ast.CallExpr
	lock ast.Expr
	ctx  ast.Expr
}

// variable is a variable of a function, and where it is used and set.
type variable struct {
	uses    []inspector.Cursor // identifiers, in the order of the source
	sets    []set              // in the order of the source
	escapes bool               // its address is taken
	param   bool
}

// set is an assignment to a variable, or its declaration.
type set struct {
	stmt  inspector.Cursor
	value ast.Expr // nil where it is a parameter, of a range, or of no value
	index int      // of the result, where value is a call that has several
}

// newSource looks through the package.
func newSource(pass *analysis.Pass) *source {
	s := &source{pkg: pass.Pkg, info: pass.TypesInfo, files: pass.Files}
	if !slices.ContainsFunc(pass.Pkg.Imports(), ofAPI) {
		return s
	}
	s.inspect = inspector.New(pass.Files)
	s.vars = map[*types.Var]*variable{}
	s.decls = map[*types.Func]inspector.Cursor{}
	s.stops = map[*types.Func]bool{}
	for cur := range s.inspect.Root().Preorder((*ast.CallExpr)(nil), (*ast.Ident)(nil), (*ast.FuncDecl)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.FuncDecl:
			if fn, ok := s.info.Defs[n.Name].(*types.Func); ok && n.Body != nil {
				s.decls[fn] = cur
			}
		case *ast.Ident:
			s.addIdent(cur, n)
		case *ast.CallExpr:
			s.addCall(cur, n)
		}
	}
	return s
}

func (s *source) addCall(cur inspector.Cursor, n *ast.CallExpr) {
	if fn, hold := s.holdMethod(n); fn != nil && ends(fn) {
		s.unlocks = append(s.unlocks, call{cur: cur, expr: n, ctx: hold})
		return
	}
	fn, lock := s.lockMethod(n)
	if fn == nil || len(n.Args) == 0 {
		return
	}
	c := call{cur: cur, expr: n, lock: lock, ctx: n.Args[0]}
	switch {
	case fn.Name() == "Unlock":
		s.unlocks = append(s.unlocks, c)
	case fn.Name() == "ForceUnlock":
		s.forces = append(s.forces, c)
	case acquires(fn):
		a := &acquire{call: c, fn: fn}
		switch parent := cur.Parent(); stmt := parent.Node().(type) {
		case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
			a.stmt = parent
		case *ast.AssignStmt:
			a.stmt, a.lhs = parent, stmt.Lhs
		case *ast.ValueSpec:
			a.stmt = parent
			for _, name := range stmt.Names {
				a.lhs = append(a.lhs, name)
			}
		default:
			return // the function returns it, or it is an argument
		}
		s.acquires = append(s.acquires, a)
	}
}

func (s *source) addIdent(cur inspector.Cursor, id *ast.Ident) {
	v, ok := s.info.ObjectOf(id).(*types.Var)
	if !ok || v.IsField() || v.Pkg() != s.pkg || v.Parent() == s.pkg.Scope() {
		return
	}
	of := s.vars[v]
	if of == nil {
		of = &variable{}
		s.vars[v] = of
	}
	of.uses = append(of.uses, cur)
	parent := cur.Parent()
	switch kind, i := cur.ParentEdge(); kind {
	case edge.AssignStmt_Lhs:
		stmt := parent.Node().(*ast.AssignStmt)
		if stmt.Tok != token.ASSIGN && stmt.Tok != token.DEFINE {
			of.sets = append(of.sets, set{stmt: parent})
		} else {
			value, index := right(stmt.Rhs, len(stmt.Lhs), i)
			of.sets = append(of.sets, set{parent, value, index})
		}
	case edge.ValueSpec_Names:
		spec := parent.Node().(*ast.ValueSpec)
		value, index := right(spec.Values, len(spec.Names), i)
		of.sets = append(of.sets, set{parent, value, index})
	case edge.Field_Names:
		of.param = true
		of.sets = append(of.sets, set{stmt: parent})
	case edge.RangeStmt_Key, edge.RangeStmt_Value, edge.IncDecStmt_X:
		of.sets = append(of.sets, set{stmt: parent})
	case edge.UnaryExpr_X:
		of.escapes = of.escapes || parent.Node().(*ast.UnaryExpr).Op == token.AND
	}
}

// right returns the value of the i-th of n left sides, and which of the value's results it is.
func right(values []ast.Expr, n, i int) (ast.Expr, int) {
	switch {
	case len(values) == n:
		return values[i], 0
	case len(values) == 1:
		return values[0], i
	}
	return nil, 0
}

// result returns the variable that the i-th of the call's results is assigned to, counted from the end if i is negative; nil where
// it is dropped, or goes elsewhere.
func (s *source) result(a *acquire, i int) *types.Var {
	if i < 0 {
		i += len(a.lhs)
	}
	if i < 0 || i >= len(a.lhs) {
		return nil
	}
	return s.localVar(a.lhs[i])
}

// dropped tells whether the expression is the blank identifier.
func dropped(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// localVar returns the variable of a function that the expression names.
func (s *source) localVar(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := s.info.ObjectOf(id).(*types.Var)
	if !ok || s.vars[v] == nil || id.Name == "_" {
		return nil
	}
	return v
}

// acquireOf returns the acquire that an expression is a result of.
func (s *source) acquireOf(e ast.Expr) *acquire {
	for _, a := range s.acquires {
		if a.expr == ast.Unparen(e) {
			return a
		}
	}
	return nil
}

// function returns the innermost function around the node: a FuncLit or a FuncDecl.
func function(cur inspector.Cursor) (inspector.Cursor, bool) {
	for f := range cur.Enclosing((*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		if f != cur {
			return f, true
		}
	}
	return inspector.Cursor{}, false
}

// body returns the body of a FuncLit or a FuncDecl.
func body(f ast.Node) *ast.BlockStmt {
	switch f := f.(type) {
	case *ast.FuncLit:
		return f.Body
	case *ast.FuncDecl:
		return f.Body
	}
	return nil
}

func (s *source) file(at token.Pos) *ast.File {
	for _, f := range s.files {
		if f.FileStart <= at && at < f.FileEnd {
			return f
		}
	}
	return nil
}
