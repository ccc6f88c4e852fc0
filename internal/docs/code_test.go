package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A block is what stands between two fences.
type block struct {
	page, label, text string
}

// pages are the documents whose blocks are checked: all that people write, and none that a program does.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md"}
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	locktest.NoError(t, err)
	for _, path := range found {
		rel, err := filepath.Rel(root, path)
		locktest.NoError(t, err)
		all = append(all, filepath.ToSlash(rel))
	}
	return all
}

func blocks(page, text string) (all []block) {
	inside := false
	for line := range strings.Lines(text) {
		fence, is := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case is && !inside:
			all = append(all, block{page: page, label: fence})
			inside = true
		case is:
			inside = false
		case inside:
			all[len(all)-1].text += line
		}
	}
	return all
}

func allBlocks(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		locktest.NoError(t, err)
		all = append(all, blocks(page, string(text))...)
	}
	return all
}

// notCode says why a block of a language needs no program.
var notCode = map[string]string{
	"text": "a drawing, or what a program prints",
	"yaml": "golangci-lint's configuration: it builds the plugin from a release, and there is none yet",
	// Behind these words their tests look for the blocks of docs/operations.md.
	"acl":   "rights of a Redis user: TestRights tries them",
	"redis": "commands by hand: a test sends them",
	// The lines of these are checked by TestCommandsAreRun.
	"sh": "", "console": "", "crontab": "",
}

func isNotCode(label string) bool { _, is := notCode[label]; return is }

// Every block of Go stands, line by line, in a file that a test or the compiler reads; every other block says what it is.
func TestCodeIsCompiled(t *testing.T) {
	source := compiled(t)
	checked := 0
	for _, b := range allBlocks(t) {
		if b.label == "go" {
			checked++
			if !strings.Contains(source, "\n"+plain(b.text)) {
				t.Errorf("%s: in no file that is compiled:\n%s", b.page, b.text)
			}
		} else if word, _, _ := strings.Cut(b.label, " "); !isNotCode(word) {
			t.Errorf("%s: say what this block is, behind its fence (%q):\n%s", b.page, b.label, b.text)
		}
	}
	if checked < 10 {
		t.Errorf("%d blocks of Go: the pages were not read", checked)
	}
}

// A block that is nowhere, or with one line changed, is found.
func TestCodeThatIsNowhere(t *testing.T) {
	source := "\n" + plain("func f() {\n\n\tone()\n\ttwo()\n}\n")
	for text, want := range map[string]bool{
		"one()\ntwo()\n":     true,
		"  one()\n\n two()":  true,
		"two()\none()\n":     false,
		"one()\ntwo(1)\n":    false,
		"ne()\ntwo()\n":      false,
		"one()\ntwo()\n}\n}": false,
	} {
		locktest.Equal(t, text, strings.Contains(source, "\n"+plain(text)), want)
	}
}

// plain is the text without indentation and empty lines.
func plain(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// compiled is the text of all files of Go that a build, a test or go vet compiles: not what is in testdata.
func compiled(t *testing.T) string {
	t.Helper()
	all := "\n"
	locktest.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".go" {
			text, err := os.ReadFile(path)
			all += plain(string(text)) + "\f\n"
			return err
		}
		return nil
	}))
	return all
}
