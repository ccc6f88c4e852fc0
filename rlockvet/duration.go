package rlockvet

import (
	"go/ast"
	"go/constant"
	"time"
)

// Duration finds waits and leases that every call refuses.
var Duration = newCheck("duration", "find waits and leases that no lock takes, such as bare numbers\n\n"+
	"A number without a unit is nanoseconds: TryLock(ctx, 3, 10) was 3 and 10 seconds in Java. A wait is 0, or a millisecond or more;\n"+
	"a lease is 0, or 10 ms or more.", duration)

func duration(c *check) {
	for cur := range c.inspect.Root().Preorder((*ast.CallExpr)(nil)) {
		n := cur.Node().(*ast.CallExpr)
		for i, arg := range n.Args {
			name, value := c.durationName(n, i), c.info.Types[arg].Value
			if name == "" || value == nil {
				continue
			}
			least := time.Millisecond
			if name == "lease" {
				least = 10 * time.Millisecond
			}
			d, ok := constant.Int64Val(constant.ToInt(value))
			switch d := time.Duration(d); {
			case !ok:
			case d < 0:
				c.report(arg, nil, "a negative %s is an error: what is -1 in Java is 0 here", name)
			case d > 0 && d < least:
				c.report(arg, nil, "a %s of %v is an error, it is 0 or at least %v: a number without a unit is nanoseconds", name, d, least)
			}
		}
	}
}

// durationName returns what the i-th argument of a call is, "wait" or "lease"; "" for neither.
func (c *check) durationName(call *ast.CallExpr, i int) string {
	fn := c.callee(call)
	extend, _ := c.holdMethod(call)
	switch {
	case isFunc(fn, module+"/rlock", "Wait"):
		return "wait"
	case isFunc(fn, module+"/rlock", "Lease"), extend != nil && extend.Name() == "Extend" && i == 1:
		return "lease"
	}
	method, _ := c.lockMethod(call)
	if method == nil || method.Signature().Variadic() || !isDuration(method.Signature().Params().At(i).Type()) {
		return ""
	}
	return method.Signature().Params().At(i).Name()
}
