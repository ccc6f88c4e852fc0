package rlockvet

import "slices"

// DeferCancel finds holds that leave the function whose deferred cancel ends them.
var DeferCancel = newCheck("defercancel", "find holds that leave a function which cancels their context as it returns\n\n"+
	"The context of Lock, TryLock and their kin bounds the hold, not only the wait: with a deferred cancel the hold ends as the function\n"+
	"returns. The context of Acquire bounds the wait alone.", deferCancel)

func deferCancel(c *check) {
	for _, a := range slices.Concat(c.acquires, c.returned) {
		if b, ok := c.boundOf(a); ok && b.cancel != "" && c.goesTo(a, nil) >= returned {
			c.report(a.expr, nil, "the hold leaves the function, and ends with its context, by the deferred %s. Use Acquire, whose context bounds only the wait", b.cancel)
		}
	}
}
