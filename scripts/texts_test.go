package scripts

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// What tests take for the text of a script is the script's: otherwise a test that waits for a command, or changes what becomes of it, waits in
// vain and passes.
func TestTextsThatTestsKnow(t *testing.T) {
	for name, sc := range map[string]*script{
		"acquire": &acquire, "wait": &wait, "try": &tryFree, "level": &level, "unlock": &unlock, "release": &release, "leave": &leave, "waiting": &lineLen,
		"transfer": &transfer, "import": &imported, "renew": &renew, "inspect": &inspect,
		"vote_in_turn": &voteInTurn, "vote_outside": &voteOutside, "withdraw_in_line": &withdrawInLine,
		"vote": &vote, "extend": &extend, "raise": &raise, "withdraw": &withdraw, "look": &look, "recount": &recount, "renew_node": &renewNode,
		"permit": &permit, "permit_outside": &permitOutside, "permit_acquire": &permitUnlined, "permit_leave": &permitLeave, "vacate": &vacate, "vacate_outside": &vacateOutside,
		"readwrite": &readWriteAcquire, "readwrite_wait": &readWriteWait, "readwrite_try": &readWriteTry, "readwrite_unlock": &readWriteUnlock,
		"readwrite_release": &readWriteRelease, "readwrite_leave": &readWriteLeave, "readwrite_renew": &readRenew, "readwrite_inspect": &readWriteInspect,
	} {
		if locktest.ScriptText(name) != sc.text {
			t.Errorf("%s: tests take another text for its", name)
		}
	}
}
