package limits

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:embed prelude.lua
var prelude string

// limited returns the text of a script that has the limits.
func (p Profile) limited(text string) string {
	var refused, said strings.Builder
	for _, l := range p.Limits {
		if l.In == Outside {
			continue
		}
		for name := range strings.FieldsSeq(l.On) {
			if words := p.words(&l, name); words != "" {
				fmt.Fprintf(&refused, "[%q] = %q, ", name, words)
			} else {
				fmt.Fprintf(&said, "[%q] = %q, ", name, l.Says)
			}
		}
	}
	return fmt.Sprintf("%slocal redis = limited(redis, {%s}, {%s}, %t, %t, %t)\n%s", prelude, refused.String(), said.String(),
		p.does(CountsNobody), p.does(MixedChannels), p.does(DeclaredKeys), text)
}

func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
