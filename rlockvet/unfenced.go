package rlockvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// Unfenced finds names that have locks of two kinds.
var Unfenced = newCheck("unfenced", "find an rlock.Lock and a fenced.Lock, or a lock and a read-write lock, of one name\n\n"+
	"An acquire of the rlock.Lock moves no token, so that the writes of a fenced holder that was paused are not refused after it. "+
	"A lock and a read-write lock have one key, and each refuses the other's hold with WRONGTYPE.", unfenced)

func unfenced(c *check) {
	var plain, tokens, sides []newLockCall
	for cur := range c.inspect.Root().Preorder((*ast.CallExpr)(nil)) {
		n, ok := c.newLock(cur.Node().(*ast.CallExpr))
		if !ok {
			n, ok = c.newRWLock(cur.Node().(*ast.CallExpr))
		}
		switch {
		case !ok || n.name == nil:
		case n.sides:
			sides = append(sides, n)
		case n.pkg == "rlock" && c.takes(cur):
			plain = append(plain, n)
		case n.pkg == "fenced":
			tokens = append(tokens, n)
		}
	}
	for _, p := range plain {
		for _, t := range tokens {
			if p.name.ExactString() == t.name.ExactString() && c.oneRedis(p, t) {
				c.report(p.call, nil, "%s is the name of a fenced lock too, on line %d: an acquire of this one moves no token. Use fenced.NewLock for both",
					p.name, c.pass.Fset.Position(t.call.Pos()).Line)
				break
			}
		}
	}
	for _, s := range sides {
		for _, l := range append(plain, tokens...) {
			if s.name.ExactString() == l.name.ExactString() && c.oneRedis(s, l) {
				c.report(s.call, nil, "%s is the name of a plain lock too, on line %d: each refuses the other's hold with WRONGTYPE. Use another name",
					s.name, c.pass.Fset.Position(l.call.Pos()).Line)
				break
			}
		}
	}
}

// takes tells whether a new lock may be one that is taken: not one that is only asked, or passed to a function that may only ask it.
func (c *check) takes(at inspector.Cursor) bool {
	switch at.ParentEdgeKind() {
	case edge.CallExpr_Args:
		return false
	case edge.SelectorExpr_X:
		call, ok := at.Parent().Parent().Node().(*ast.CallExpr)
		if !ok {
			return true
		}
		fn, _ := c.lockMethod(call)
		return fn == nil || acquires(fn) || strings.HasSuffix(fn.Name(), "Do")
	}
	return true
}

// oneRedis tells whether two locks of one name are on the same Redis: they have one client, or the program says the name in one place.
func (c *check) oneRedis(x, y newLockCall) bool {
	if key := c.lockKey(x.client); key != "" && key == c.lockKey(y.client) {
		return true
	}
	name := c.object(x.call.Args[1])
	_, ok := name.(*types.Const)
	return ok && name == c.object(y.call.Args[1])
}
