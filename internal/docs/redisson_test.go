package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

var (
	documentedTest = regexp.MustCompile("`(?:([a-z]+)\\.)?(Test[A-Z]\\w*)`")
	listedTest     = regexp.MustCompile(`\b(?:[a-z]+\.)?Test[A-Z]\w*`)
	declaredTest   = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
)

// interopCases has a line for each case of Redisson's tests: "what: tests", or "what: no: why".
const interopCases = "verify/interop/cases.txt"

// Every test that docs/redisson.md and the list of cases name exists, in the package that they say, and every row and line names one or
// says why there is none.
func TestDocumentedTestsExist(t *testing.T) {
	declared := declaredTests(t, root)
	text, err := os.ReadFile(filepath.Join(root, "docs/redisson.md"))
	locktest.NoError(t, err)
	_, named := checkDocument(string(text), declared, func(line, what string) { t.Errorf("%s: %s", what, line) })
	cases, err := os.ReadFile(filepath.Join(root, interopCases))
	locktest.NoError(t, err)
	rows, listed := checkDocument(asTable(string(cases)), declared, func(line, what string) { t.Errorf("%s: %s: %s", interopCases, what, line) })
	if rows < 60 || listed < 100 || named == 0 {
		t.Errorf("%d rows, %d and %d tests: the list, or the page, was not read", rows, listed, named)
	}
}

// asTable writes the list of cases as the rows of a table of a document.
func asTable(cases string) string {
	var b strings.Builder
	for line := range strings.Lines(cases) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, tests, _ := strings.Cut(line, ": ")
		b.WriteString("| " + what + " | " + listedTest.ReplaceAllString(tests, "`$0`") + " |\n")
	}
	return b.String()
}

// The check sees what it is there to see.
func TestDocumentedTestsAreMissed(t *testing.T) {
	declared := map[string]bool{"interop.TestHere": true, "rlock.TestThere": true}
	for _, c := range []struct {
		line string
		bad  int
	}{
		{"| case | `TestHere`, `rlock.TestThere` |", 0},
		{"| case | no: a reason |", 0},
		{"| case | `TestNowhere` |", 1},
		{"| case | `fenced.TestThere`, `rlock.TestHere` |", 2},
		{"| case | |", 1},
		{"| case | later |", 1},
		{"`TestNowhere`", 1},
		{asTable("# class"), 0},
		{asTable("case: TestHere, rlock.TestThere"), 0},
		{asTable("case: no: a reason"), 0},
		{asTable("case: TestNowhere"), 1},
		{asTable("case"), 1},
	} {
		bad := 0
		checkDocument(c.line, declared, func(string, string) { bad++ })
		locktest.Equal(t, c.line, bad, c.bad)
	}
}

// checkDocument tells wrong of each row and each test that is not as it should be, and how many it has seen.
func checkDocument(text string, declared map[string]bool, wrong func(line, what string)) (rows, named int) {
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		tests := documentedTest.FindAllStringSubmatch(line, -1)
		named += len(tests)
		for _, m := range tests {
			name := m[1] + "." + m[2]
			if m[1] == "" {
				name = "interop." + m[2]
			}
			if !declared[name] {
				wrong(line, "there is no "+name)
			}
		}
		if !strings.HasPrefix(line, "|") {
			heading = ""
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case strings.HasPrefix(last, "---"):
		case heading == "" && len(tests) == 0 && strings.Contains(text, line+"\n|---"):
			heading = line
		default:
			rows++
			if len(tests) == 0 && !strings.HasPrefix(last, "no: ") {
				wrong(line, "a row without a test or a reason")
			}
		}
	}
	return rows, named
}

// declaredTests is the tests in the tree, each as directory.Name.
func declaredTests(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	locktest.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declaredTest.FindAllStringSubmatch(string(text), -1) {
			abs, _ := filepath.Abs(filepath.Dir(path))
			declared[filepath.Base(abs)+"."+m[1]] = true
		}
		return err
	}))
	return declared
}
