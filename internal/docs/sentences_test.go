package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// inside are the pages for those who work on the code. All others are for users.
var inside = []string{"architecture.md", "protocol.md", "line.md", "model.md", "verification.md", "performance.md"}

const (
	// mostWanted is how many words a sentence on a user's page may have, and mostAllowed from how many on this test fails.
	mostWanted, mostAllowed = 35, 45
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
	linkTo    = regexp.MustCompile(`\]\([^)]*\)`)
	code      = regexp.MustCompile("`[^`]*`")
	end       = regexp.MustCompile(`[.!?;:][)"*]*\s|\n\s*\n|\n\s*[-*] |\n\s*\d+\. |\||\n#+ `)
)

// sentences returns the sentences of a page, without its code. A cell of a table is one at least, and what a semicolon or a colon separates are
// two.
func sentences(page string) []string {
	text := codeBlock.ReplaceAllString(page, "\n\n")
	text = linkTo.ReplaceAllString(text, "]")
	text = code.ReplaceAllString(text, "code")
	return end.Split(text, -1)
}

// A sentence on a page for users is short enough to be read once. The longest ten are listed with -v.
func TestSentencesAreShort(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	locktest.NoError(t, err)
	type sentence struct {
		page, text string
		words      int
	}
	var long []sentence
	for _, path := range append(pages, filepath.Join(root, "README.md")) {
		if slices.Contains(inside, filepath.Base(path)) {
			continue
		}
		page, err := os.ReadFile(path)
		locktest.NoError(t, err)
		for _, text := range sentences(string(page)) {
			if n := len(strings.Fields(text)); n > mostWanted {
				long = append(long, sentence{filepath.Base(path), strings.Join(strings.Fields(text), " "), n})
			}
		}
	}
	slices.SortFunc(long, func(a, b sentence) int { return b.words - a.words })
	t.Logf("%d sentences have more than %d words", len(long), mostWanted)
	for i, s := range long {
		if s.words > mostAllowed {
			t.Errorf("%s: a sentence of %d words, use %d at most: %s", s.page, s.words, mostWanted, s.text)
		} else if i < 10 {
			t.Logf("%s: %d words: %s", s.page, s.words, s.text)
		}
	}
}

// What the test above takes for a sentence.
func TestSentences(t *testing.T) {
	got := slices.DeleteFunc(sentences("# Title\n\nOne `a b c` two. Three [four](five.md): six\n\n```go\nx y z.\n```\n- seven eight\n| nine | ten. eleven |\n"),
		func(s string) bool { return strings.TrimSpace(s) == "" })
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	locktest.DeepEqual(t, "sentences", got, []string{"# Title", "One code two", "Three [four]", "six", "- seven eight", "nine", "ten", "eleven"})
}
