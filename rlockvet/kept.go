package rlockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// bound is what ends the context of an acquire.
type bound struct {
	cancel string     // the function that the same function defers; "" for none
	param  *types.Var // otherwise: the parameter that the context comes from
}

// boundOf returns what ends the acquire's context, in the function of the acquire; false where nothing there does, or where it is not known.
func (c *check) boundOf(a *acquire) (bound, bool) {
	f, ok := function(a.cur)
	if !ok || a.isHold() {
		return bound{}, false
	}
	e, at := a.ctx, a.cur
	for {
		switch n := ast.Unparen(e).(type) {
		case *ast.Ident:
			def, ok := c.definitionOf(n, at)
			if !ok {
				return bound{}, false
			}
			if in, _ := function(def.stmt); in != f {
				return bound{}, false
			}
			if isParam(def) {
				return bound{param: c.localVar(n)}, true
			}
			if def.value == nil || def.index != 0 {
				return bound{}, false
			}
			if cancel := c.deferredCancel(def, f); cancel != "" {
				return bound{cancel: cancel}, true
			}
			e, at = def.value, def.stmt
		case *ast.CallExpr:
			fn := c.callee(n)
			method, _ := c.lockMethod(n)
			derived := fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "context" && fn.Name() != "WithoutCancel" ||
				isFunc(fn, "os/signal", "NotifyContext") || isFunc(fn, module+"/rlock", "NewHolder") ||
				isFunc(fn, module+"/fenced", "ContextWithToken") || method != nil && acquires(method)
			if !derived || len(n.Args) == 0 {
				return bound{}, false
			}
			e = n.Args[0]
		default:
			return bound{}, false
		}
	}
}

// deferredCancel returns the name of the cancel function that comes with a context, if the function defers it unconditionally.
func (c *check) deferredCancel(def set, f inspector.Cursor) string {
	stmt, ok := def.stmt.Node().(*ast.AssignStmt)
	if !ok || len(stmt.Lhs) != 2 || len(stmt.Rhs) != 1 {
		return ""
	}
	cancel := c.localVar(stmt.Lhs[1])
	if _, isFunc := c.info.TypeOf(stmt.Lhs[1]).Underlying().(*types.Signature); cancel == nil || !isFunc {
		return ""
	}
	for _, use := range c.vars[cancel].uses {
		if use.ParentEdgeKind() != edge.CallExpr_Fun || use.Node().Pos() < stmt.End() {
			continue
		}
		late, ok := deferred(use.Parent())
		if !ok {
			continue
		}
		in, _ := function(use)
		always := in == f || use.Parent().Parent().Parent().Node() == body(in.Node())
		if outer, _ := function(late); always && outer == f {
			return cancel.Name()
		}
	}
	return ""
}

// place is where a value goes, the farther the larger.
type place int

const (
	stays    place = iota
	returned       // as it is
	inside         // returned in another value: a struct, a closure
	stored         // in a field, a map, a channel, a goroutine that the function does not wait for
)

// goesTo tells where what an acquire returned goes, where the function may return without an Unlock of it. also is another variable that
// counts as the hold when it is stored; nil for none.
func (c *check) goesTo(a *acquire, also *types.Var) place {
	if len(a.lhs) == 0 || dropped(a.lhs[0]) {
		if slices.Contains(c.returned, a) {
			return returned
		}
		return stays
	}
	f, _ := function(a.cur)
	t := &trail{source: c.source, check: c, f: f, lock: a.lock, seen: map[*types.Var]bool{}}
	far := t.assign(a.lhs[0], a.stmt, false)
	if len(a.lhs) == 3 && !c.expires(a) { // with a lease of its own the token may be meant to outlive the context
		far = max(far, t.assign(a.lhs[1], a.stmt, false))
	}
	if also != nil && far < inside {
		ctx := &trail{source: c.source, check: c, f: f, lock: a.lock, seen: map[*types.Var]bool{}, bare: true}
		if ctx.of(also, inspector.Cursor{}, false) >= inside {
			far = stored
		}
	}
	if far == stays || !t.unreleased(a) {
		return stays
	}
	return far
}

// trail follows a value through a function.
type trail struct {
	*source
	check *check
	f     inspector.Cursor
	lock  ast.Expr
	bare  bool // only the value itself counts, and contexts that end with it: no closures
	seen  map[*types.Var]bool
	given []inspector.Cursor // calls that may unlock it
}

// of tells where the value of a variable goes, from a statement on. in: it is inside another value.
func (t *trail) of(v *types.Var, from inspector.Cursor, in bool) place {
	if t.seen[v] {
		return stays
	}
	t.seen[v] = true
	far := stays
	for _, use := range t.vars[v].uses {
		if !t.before(use, from) {
			far = max(far, t.climb(use, in))
		}
	}
	return far
}

// climb tells where an expression goes by what is around it.
func (t *trail) climb(cur inspector.Cursor, in bool) place {
	if lit, ok := t.literal(cur); ok {
		if cur.ParentEdgeKind() == edge.AssignStmt_Lhs || t.bare {
			return stays
		}
		cur, in = lit, true
	}
	for {
		parent := cur.Parent()
		switch kind, i := cur.ParentEdge(); kind {
		case edge.ParenExpr_X:
		case edge.UnaryExpr_X:
			if parent.Node().(*ast.UnaryExpr).Op != token.AND {
				return stays
			}
		case edge.KeyValueExpr_Value, edge.CompositeLit_Elts:
			in = true
		case edge.CallExpr_Fun:
			return t.started(parent)
		case edge.CallExpr_Args:
			far, goesOn := t.argument(parent, i)
			if !goesOn {
				return far
			}
			in = in || far == inside
		case edge.ReturnStmt_Results:
			if in {
				return inside
			}
			return returned
		case edge.SendStmt_Value:
			return stored
		case edge.AssignStmt_Rhs:
			stmt := parent.Node().(*ast.AssignStmt)
			if stmt.Tok != token.ASSIGN && stmt.Tok != token.DEFINE {
				return stays
			}
			if len(stmt.Lhs) != len(stmt.Rhs) {
				i = 0
			}
			return t.assign(stmt.Lhs[i], parent, in)
		case edge.ValueSpec_Values:
			return t.assign(parent.Node().(*ast.ValueSpec).Names[i], parent, in)
		default:
			return stays
		}
		cur = parent
	}
}

// literal returns the outermost function literal around the node, in the function.
func (t *trail) literal(cur inspector.Cursor) (lit inspector.Cursor, ok bool) {
	for f := range cur.Enclosing((*ast.FuncLit)(nil)) {
		if f == t.f || f == cur || !t.f.Contains(f) {
			break
		}
		lit, ok = f, true
	}
	return lit, ok
}

// started tells where a value goes that a call has: nowhere, other than by a goroutine for which the function does not wait.
func (t *trail) started(call inspector.Cursor) place {
	if call.ParentEdgeKind() == edge.GoStmt_Call && !t.check.joinsLater(call.Parent()) {
		return stored
	}
	return stays
}

// argument tells where the i-th argument of a call goes. goesOn: it is, or is inside, what the call returns.
func (t *trail) argument(at inspector.Cursor, i int) (far place, goesOn bool) {
	call := at.Node().(*ast.CallExpr)
	if t.info.Types[call.Fun].IsType() {
		return stays, true
	}
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := t.info.Uses[id].(*types.Builtin); ok {
			return inside, b.Name() == "append"
		}
	}
	if far := t.started(at); far != stays {
		return far, false
	}
	fn := t.callee(call)
	if fn != nil && fn.Pkg() != nil {
		switch path, name := fn.Pkg().Path(), fn.Name(); {
		case path == "context" && strings.HasPrefix(name, "With"):
			return stays, !t.bare || name != "WithoutCancel"
		case path == module+"/fenced" && name == "ContextWithToken", path == "sync" && strings.HasPrefix(name, "Once"):
			return stays, true
		case path == "sync" || path == "sync/atomic":
			if slices.Contains([]string{"Store", "LoadOrStore", "Swap", "CompareAndSwap"}, name) {
				return stored, false
			}
		case name == "Go" && fn.Signature().Recv() != nil && !t.check.joinsLater(at):
			return stored, false
		}
	}
	if far := t.parameter(fn, i); far == stored {
		return stored, false
	} else if far != stays {
		return far, true
	}
	if method, _ := t.lockMethod(call); method == nil && !t.usesOnly(call, fn, i, t.lock, map[*types.Var]bool{}) {
		t.given = append(t.given, at)
	}
	return stays, false
}

// parameter tells where the i-th argument of a function of this package goes.
func (t *trail) parameter(fn *types.Func, i int) place {
	if fn == nil {
		return stays
	}
	decl, ok := t.decls[fn.Origin()]
	params := fn.Origin().Signature().Params()
	if !ok || i >= params.Len() || t.vars[params.At(i)] == nil {
		return stays
	}
	callee := &trail{source: t.source, check: t.check, f: decl, lock: t.lock, seen: t.seen, bare: t.bare}
	return callee.of(params.At(i), inspector.Cursor{}, false)
}

// assign tells where a value goes that a statement assigns.
func (t *trail) assign(to ast.Expr, stmt inspector.Cursor, in bool) place {
	if dropped(to) {
		return stays
	}
	v, _ := t.root(to).(*types.Var)
	if v == nil || t.vars[v] == nil || len(t.vars[v].sets) == 0 {
		return stored
	}
	first := t.vars[v].sets[0]
	if f, ok := function(first.stmt); !ok || f != t.f {
		return stored // a variable of the function around this one
	}
	if t.localVar(to) == nil {
		if !t.ownValue(v) {
			return stored
		}
		in = true
	}
	if first.stmt.Parent().ParentEdgeKind() == edge.FuncType_Results {
		if in {
			return inside
		}
		return returned
	}
	return t.of(v, stmt, in)
}

// ownValue tells whether what is stored in a part of the variable is nowhere else: it is a struct, or what the function has made.
func (t *trail) ownValue(v *types.Var) bool {
	if _, ok := v.Type().Underlying().(*types.Struct); ok {
		return true
	}
	for _, a := range t.vars[v].sets {
		value := ast.Unparen(a.value)
		if addr, ok := value.(*ast.UnaryExpr); ok {
			value = ast.Unparen(addr.X)
		}
		switch value := value.(type) {
		case *ast.CompositeLit:
		case *ast.CallExpr:
			id, ok := ast.Unparen(value.Fun).(*ast.Ident)
			if !ok {
				return false
			}
			if _, ok := t.info.Uses[id].(*types.Builtin); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unreleased tells whether the function may return without an Unlock of its own for the acquire.
func (t *trail) unreleased(a *acquire) bool {
	ends := slices.Clone(t.given)
	for _, u := range t.unlocks {
		v, _ := t.root(u.ctx).(*types.Var)
		if v != nil && t.seen[v] || t.localVar(u.ctx) == nil && t.sameLock(u.lock, a.lock) {
			ends = append(ends, u.cur)
		}
	}
	use := &usage{names: map[*types.Var]bool{}}
	for _, end := range ends {
		f, ok := function(end)
		if late, isLate := deferred(end); ok && f != t.f && isLate {
			f, ok = function(late)
		}
		if ok && f == t.f {
			use.unlocks = append(use.unlocks, end)
		}
	}
	held := t.result(a, 0)
	if held != nil {
		use.names[held] = true
	}
	p := &path{source: t.source, a: a, held: held, use: use, seen: map[*cfg.Block]bool{}}
	return p.findUnlocks() && p.follow(t.graph(t.f)) != nil
}
