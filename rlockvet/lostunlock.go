package rlockvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// LostUnlock finds returns that a hold reaches without Unlock.
var LostUnlock = newCheck("lostunlock", "find returns that are reached without Unlock of a lock that the function has taken\n\n"+
	"A hold that nobody unlocks is renewed until the garbage collector finds its contexts dropped, and keeps others out meanwhile.", lostUnlock)

func lostUnlock(c *check) {
	for _, a := range c.acquires {
		v := c.result(a, 0)
		if v == nil || !c.localTo(v, a) || c.anyFor(a, c.forces) {
			continue
		}
		use := c.usageOf(v, a.stmt, a.lock)
		if use.escapes || len(use.unlocks) == 0 && c.expires(a) || c.unlocksWithout(a, use) || c.lent(a) {
			continue
		}
		p := &path{source: c.source, a: a, held: v, use: use, seen: map[*cfg.Block]bool{}}
		if !p.findUnlocks() {
			continue
		}
		f, ok := function(a.cur)
		if !ok {
			continue
		}
		missing, never := fmt.Sprintf("Unlock(%s)", v.Name()), v.Name()+" is never given to Unlock"
		if a.isHold() {
			missing, never = v.Name()+"."+a.release(), v.Name()+"."+a.release()+" is never called"
		}
		end := p.follow(c.graph(f))
		switch {
		case end == nil:
		case len(use.unlocks) == 0:
			c.report(a.expr, nil, "the lock is not unlocked: %s", never)
		case end == a.stmt.Node():
			c.report(a.expr, nil, "the lock is not unlocked on all paths: the loop takes it again without %s", missing)
		default:
			place := fmt.Sprintf("the return on line %d", c.pass.Fset.Position(end.Pos()).Line)
			if end.Pos() == body(f.Node()).Rbrace {
				place = "the end of the function"
			}
			c.report(a.expr, nil, "the lock is not unlocked on all paths: %s is reached without %s", place, missing)
		}
	}
}

// unlocksWithout tells whether the function has an Unlock of the lock with a context that may carry the holder, or is wrong, which is
// for another check to say.
func (s *source) unlocksWithout(a *acquire, use *usage) bool {
	return slices.ContainsFunc(s.unlocks, func(u call) bool {
		of, by := s.lockKey(a.lock), s.lockKey(u.lock)
		if u.lock == nil || !s.sameFunction(a.cur, u.cur) || of != "" && by != "" && of != by || use.names[s.localVar(u.ctx)] {
			return false
		}
		def, ok := s.definitionOf(u.ctx, u.cur)
		if !ok || def.value == nil {
			return true
		}
		other := s.acquireOf(def.value)
		return other == nil || !s.sameLock(other.lock, u.lock)
	})
}

// lent tells whether the function gives the lock to other code, which may unlock the hold when it gets only a context.
func (s *source) lent(a *acquire) bool {
	v := s.localVar(a.lock)
	return v != nil && slices.ContainsFunc(s.vars[v].uses, func(use inspector.Cursor) bool {
		switch use.ParentEdgeKind() {
		case edge.SelectorExpr_X, edge.AssignStmt_Lhs, edge.ValueSpec_Names, edge.Field_Names, edge.RangeStmt_Key, edge.RangeStmt_Value:
			return false
		}
		return true
	})
}

// localTo tells whether the acquire sets the variable for the rest of the block that it is declared in, so that the hold is in it
// whenever the code after it runs.
func (s *source) localTo(v *types.Var, a *acquire) bool {
	first := s.vars[v].sets[0]
	if isParam(first) {
		if first.stmt.Parent().ParentEdgeKind() == edge.FuncType_Results {
			return false
		}
		f, _ := function(first.stmt)
		return scopeOf(a.stmt).Node() == body(f.Node())
	}
	return scopeOf(first.stmt) == scopeOf(a.stmt)
}

// path follows a hold through a function.
type path struct {
	*source
	a    *acquire
	held *types.Var
	use  *usage
	seen map[*cfg.Block]bool
	done []ast.Node // where one of these begins, the hold is unlocked as far as this check can tell
}

// findUnlocks notes the statements that unlock. An Unlock under a condition counts for the whole of its statement where the code goes
// on behind it, since the condition may say whether there is anything to unlock. It is false where a function literal unlocks that may
// run at any time.
func (p *path) findUnlocks() bool {
	f, _ := function(p.a.cur)
	for _, use := range p.use.unlocks {
		if in, _ := function(use); in != f {
			late, ok := deferred(use)
			if !ok {
				return false
			}
			if outer, _ := function(late); outer != f {
				return false
			}
			use = late
		}
		p.done = append(p.done, use.Node())
		if stmt := p.condition(use); stmt != nil {
			p.done = append(p.done, stmt)
		}
	}
	return true
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

// condition returns the statement that decides whether the code at use runs, if the code after that statement runs in either case, and
// the acquire is not inside it.
func (p *path) condition(use inspector.Cursor) ast.Node {
	for list := range use.Enclosing((*ast.BlockStmt)(nil), (*ast.CaseClause)(nil), (*ast.CommClause)(nil)) {
		if list.Contains(p.a.stmt) {
			return nil
		}
		var stmts []ast.Stmt
		of := list.Parent()
		switch n := list.Node().(type) {
		case *ast.BlockStmt:
			stmts = n.List
		case *ast.CaseClause:
			stmts, of = n.Body, of.Parent()
		case *ast.CommClause:
			stmts, of = n.Body, of.Parent()
		}
		if of.Contains(p.a.stmt) {
			return nil
		}
		if _, plain := of.Node().(*ast.BlockStmt); plain {
			continue
		}
		if len(stmts) > 0 && p.leaves(stmts[len(stmts)-1]) {
			return nil
		}
		return of.Node()
	}
	return nil
}

// leaves tells whether nothing runs directly after the statement.
func (s *source) leaves(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, ok := ast.Unparen(stmt.X).(*ast.CallExpr)
		return ok && !s.returns(call)
	}
	return false
}

// follow returns the return that is reached with the hold, or the acquire where that is reached again; nil if there is none.
func (p *path) follow(graph *cfg.CFG) ast.Node {
	for _, b := range graph.Blocks {
		for i, n := range b.Nodes {
			if covers(n, p.a.expr) && b.Live {
				return p.block(b, i+1)
			}
		}
	}
	return nil
}

func covers(n, inner ast.Node) bool { return n.Pos() <= inner.Pos() && inner.End() <= n.End() }

// block goes on at the i-th node of a block.
func (p *path) block(b *cfg.Block, i int) ast.Node {
	for ; i < len(b.Nodes); i++ {
		n := b.Nodes[i]
		if covers(n, p.a.expr) {
			return p.a.stmt.Node()
		}
		if slices.ContainsFunc(p.done, func(done ast.Node) bool { return covers(n, done) || covers(done, n) }) || p.sets(n) || p.waitsForEnd(n) {
			return nil
		}
		if ret, ok := n.(*ast.ReturnStmt); ok {
			return ret
		}
		if branches := i == len(b.Nodes)-1 && len(b.Succs) == 2; !branches && p.passesOn(n) {
			return nil
		}
	}
	feasible := []bool{true, true}
	if n := len(b.Nodes); n > 0 && len(b.Succs) == 2 {
		if cond, ok := b.Nodes[n-1].(ast.Expr); ok {
			feasible[0], feasible[1] = p.branches(cond)
		}
	}
	for i, next := range b.Succs {
		if i < len(feasible) && !feasible[i] || p.seen[next] {
			continue
		}
		p.seen[next] = true
		if end := p.block(next, 0); end != nil {
			return end
		}
	}
	return nil
}

// sets tells whether the node puts something else into the variable of the hold.
func (p *path) sets(n ast.Node) bool {
	stmt, ok := n.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(stmt.Lhs, func(e ast.Expr) bool { return p.localVar(e) == p.held }) && !p.mentions(stmt, p.held)
}

// mentions tells whether the variable is used in the node, other than by an assignment to it.
func (p *path) mentions(n ast.Node, v *types.Var) bool {
	return v != nil && slices.ContainsFunc(p.vars[v].uses, func(use inspector.Cursor) bool {
		return covers(n, use.Node()) && use.ParentEdgeKind() != edge.AssignStmt_Lhs
	})
}

// waitsForEnd tells whether the code goes on only when the hold has ended.
func (p *path) waitsForEnd(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if recv, ok := n.(*ast.UnaryExpr); ok && recv.Op == token.ARROW && p.methodOfHeld(recv.X, "Done") {
			found = true
		}
		_, lit := n.(*ast.FuncLit)
		return !lit
	})
	return found
}

func (p *path) methodOfHeld(e ast.Expr, name string) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == name && p.use.names[p.localVar(sel.X)]
}

// passesOn tells whether the node gives the acquire's error to other code, so that what follows may depend on it.
func (p *path) passesOn(n ast.Node) bool {
	err := p.result(p.a, -1)
	if _, ok := n.(*ast.DeferStmt); ok || !p.mentions(n, err) {
		return false
	}
	if stmt, ok := n.(*ast.ExprStmt); ok {
		if call, ok := stmt.X.(*ast.CallExpr); ok {
			if fn := p.callee(call); fn != nil && (fn.Name() == "NoError" || fn.Name() == "NoErrorf") {
				return false // testify's, and its kin
			}
		}
	}
	for _, use := range p.vars[err].uses {
		if covers(n, use.Node()) && use.ParentEdgeKind() != edge.AssignStmt_Lhs {
			if def, ok := p.definition(use); !ok || ast.Unparen(def.value) == p.a.expr {
				return true
			}
		}
	}
	return false
}

// truth is what is known of a condition while the lock is held.
type truth int

const (
	either truth = iota
	yes
	no
	unclear // it depends on the acquire's error in a way that this check does not see through
)

// branches tells whether the condition can be true, and whether it can be false, while the lock is held.
func (p *path) branches(cond ast.Expr) (canBeTrue, canBeFalse bool) {
	switch p.truth(cond) {
	case yes:
		return true, false
	case no:
		return false, true
	case unclear:
		return false, false
	}
	return true, true
}

func (p *path) truth(cond ast.Expr) truth {
	switch e := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return []truth{either, no, yes, unclear}[p.truth(e.X)]
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			return both(p.truth(e.X), p.truth(e.Y), no, yes)
		case token.LOR:
			return both(p.truth(e.X), p.truth(e.Y), yes, no)
		case token.EQL, token.NEQ:
			x, y := e.X, e.Y
			if p.isNil(x) {
				x, y = y, x
			}
			if p.isNil(y) && p.nilWhileHeld(x) {
				return map[bool]truth{true: yes, false: no}[e.Op == token.EQL]
			}
		}
	case *ast.CallExpr:
		if fn := p.callee(e); (isFunc(fn, "errors", "Is") || isFunc(fn, "errors", "As")) && p.nilWhileHeld(e.Args[0]) {
			return no
		}
	}
	if p.passesOn(cond) {
		return unclear
	}
	return either
}

// both is the truth of two conditions joined: one of them that is decisive decides, both have to be other for other.
func both(x, y, decisive, other truth) truth {
	switch {
	case x == decisive || y == decisive:
		return decisive
	case x == unclear || y == unclear:
		return unclear
	case x == other && y == other:
		return other
	}
	return either
}

func (p *path) isNil(e ast.Expr) bool { return p.info.Types[e].IsNil() }

// nilWhileHeld tells whether the expression is an error that is nil while the lock is held: the acquire's, that of held.Err(),
// context.Cause(held), or of a method of a lock that looks at the hold.
func (p *path) nilWhileHeld(e ast.Expr) bool {
	if p.methodOfHeld(e, "Err") {
		return true
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		method, _ := p.lockMethod(call)
		return (method != nil || isFunc(p.callee(call), "context", "Cause")) && len(call.Args) == 1 && p.use.names[p.localVar(call.Args[0])]
	}
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	cur, ok := p.inspect.Root().FindNode(id)
	if !ok {
		return false
	}
	def, ok := p.definition(cur)
	if !ok || def.value == nil {
		return false
	}
	if ast.Unparen(def.value) == p.a.expr {
		return true
	}
	_, isIdent := ast.Unparen(def.value).(*ast.Ident)
	return !isIdent && p.nilWhileHeld(def.value)
}
