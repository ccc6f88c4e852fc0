package scripts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// permitMutants are scripts of permits with one thing wrong, each of which TestPermitSequences has to notice.
var permitMutants = []mutant{
	{"any slot is taken for free", &slotsText, "local taken = takenOf(base, from, to)", "local taken = 0", ""},
	{"the last slot is never found", &slotsText, "return base, tonumber(number) + 1", "return base, math.max(tonumber(number), 1)", ""},
	{"one slot more than there are", &slotsText, "return base, tonumber(number) + 1", "return base, tonumber(number) + 2", "Inv13"},
	{"the search takes a taken slot", &slotsText, "if taken <= middle - from then", "if taken >= middle - from then", ""},
	{"all slots have one counter", &slotsText, "string.match(counter, '^(.*:)') .. slot", "counter", "the counter"},
	{"the slot is another one than is said", &slotsText, "{token, slot} or token", "{token, (slot + 1) % n} or token", ""},
	{"it is closed while one is taken", &slotsText, "taken == n and 1 or 0", "taken", ""},
	{"no chain (P44)", &permitText, "call(line, publish, 0, '', 0)", "closed(last)", "Inv8"},
	{"vacate removes from one slot", &vacateText, "for i = 0, n - 1 do", "for i = 0, 0 do", "Inv9"},
	{"vacate calls nobody", &vacateText, "closed(last) == 0 and call(line, publish, 0, '', 0) or 0", "0", "Inv8"},
	{"a leave calls nobody", &leaveText, "if held == 0 then", "if false then", "Inv8"},
	{"newcomers do not look at the line", &permitOutsideText, "redis.pcall('EXISTS', last, line) == 0", "redis.pcall('EXISTS', last) == 0", "Inv14"},
	{"a release that is told to all calls nobody", &releaseText, "called or call(line, publish, math.max(told, 0), field, math.max(known, 0), named)", "called or 0", "Inv8"},
}

// composePermits makes the scripts of permits of their texts again.
func composePermits() {
	permitsText = barrierText + tokenText + holderText + lineText + acquireText + slotsText
	permit, permitOutside = alone("permit", permitsText+waitText+permitText), alone("permitOutside", permitsText+waitText+permitText+permitOutsideText)
	permitUnlined = alone("acquire", permitsText)
	vacate = alone("vacate", permitsText+unlockText+vacateText)
	vacateOutside = alone("vacateOutside", permitsText+unlockText+vacateText+vacateOutsideText)
	permitLeave = alone("leave", permitsText+unlockText+leaveText)
	permitBatch = newBatch(permitsText+waitText+permitText+permitOutsideText+unlockText+vacateText+vacateOutsideText+leaveText,
		branches(&permitsOutside, &permitsInTurn, &permits, &vacates, &vacatesOutside, &permitLeaves))
}

func TestPermitMutants_AreComposedAsTheScriptsAre(t *testing.T) {
	all := func() []string {
		return []string{permit.sha, permitOutside.sha, permitUnlined.sha, vacate.sha, vacateOutside.sha, permitLeave.sha, permitBatch.sha}
	}
	before := all()
	composePermits()
	if !slices.Equal(before, all()) {
		t.Error("semaphore.go composes the scripts in another way now: change composePermits")
	}
}

// TestMutants_OfPermits shows that TestPermitSequences can fail.
func TestMutants_OfPermits(t *testing.T) {
	rdb := redistest.Real(t).Client() // which runs the scripts many times faster than miniredis
	for n, m := range permitMutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			m.swap(t)
			composePermits()
			for seed := range uint64(600) {
				if err := runPermits(rdb, fmt.Sprintf("m%d-%d", n, seed), seed); err != nil {
					if !strings.Contains(lastLine(err), m.reason) {
						t.Fatalf("sequence %d failed, but not with %q: %v", seed, m.reason, err)
					}
					t.Logf("sequence %d: %s", seed, lastLine(err))
					return
				}
			}
			t.Fatal("not caught within 600 sequences")
		})
		composePermits()
	}
}
