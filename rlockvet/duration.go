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
		fn, _ := c.lockMethod(n)
		if fn == nil {
			continue
		}
		for i, arg := range n.Args {
			param := fn.Signature().Params().At(i)
			value := c.info.Types[arg].Value
			if !isDuration(param.Type()) || value == nil {
				continue
			}
			least := time.Millisecond
			if param.Name() == "lease" {
				least = 10 * time.Millisecond
			}
			d, ok := constant.Int64Val(constant.ToInt(value))
			switch d := time.Duration(d); {
			case !ok:
			case d < 0:
				c.report(arg, nil, "a negative %s is an error: what is -1 in Java is 0 here", param.Name())
			case d > 0 && d < least:
				c.report(arg, nil, "a %s of %v is an error, it is 0 or at least %v: a number without a unit is nanoseconds", param.Name(), d, least)
			}
		}
	}
}
