package scripts

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// What tests take for the text of a script is the script's: otherwise a test that waits for a command, or changes what becomes of it, waits in
// vain and passes.
func TestTextsThatTestsKnow(t *testing.T) {
	for name, sc := range map[string]*script{
		"acquire": &acquire, "wait": &wait, "try": &tryFree, "level": &level, "unlock": &unlock, "release": &release, "leave": &leave,
		"transfer": &transfer, "renew": &renew, "inspect": &inspect,
		"vote": &vote, "extend": &extend, "raise": &raise, "withdraw": &withdraw, "look": &look, "recount": &recount,
	} {
		if locktest.ScriptText(name) != sc.text {
			t.Errorf("%s: tests take another text for its", name)
		}
	}
}
