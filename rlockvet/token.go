package rlockvet

import "strings"

var tokenOn bool

// Token finds tokens that are asked for and dropped. It is a matter of style, and off without its flag.
var Token = newCheck("token", "find calls that return a token, which is dropped (off without -token.on)\n\n"+
	"The method without AndGetToken says what is meant.", unusedToken)

func init() {
	Token.Flags.BoolVar(&tokenOn, "on", false, "report tokens that are dropped")
}

func unusedToken(c *check) {
	if !tokenOn {
		return
	}
	for _, a := range c.acquires {
		if name, ok := strings.CutSuffix(a.fn.Name(), "AndGetToken"); ok && len(a.lhs) == 3 && dropped(a.lhs[1]) && !dropped(a.lhs[0]) {
			c.report(a.expr, nil, "the token is dropped: %s does the same", name)
		}
	}
}
