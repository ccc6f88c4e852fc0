// Package docs has tests of what the project's documents say.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// Every file that a document links to, or names in backquotes or in a drawing, is there; and so is every heading.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			file, heading, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, link[1])
				continue
			}
			if heading != "" && !has(t, target, heading) {
				t.Errorf("%s links to %s, which has no such heading", path, link[1])
			}
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	}
}

var (
	links = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	named = regexp.MustCompile(`\b(?:rlock|fenced|scripts|watchdog|pubsub|quorum|guard|observe|internal|verify|bench|docs|examples)/[a-zA-Z0-9_./-]*\.(?:go|lua|md|sh)\b`)
)

func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 5 {
		t.Fatalf("%d documents, %v", len(all), err)
	}
	return all
}

// has tells whether the document has a heading of this name, as a link names it.
func has(t *testing.T, path, heading string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") && anchor(title) == heading {
			return true
		}
	}
	return false
}

var dropped = regexp.MustCompile("[^a-z0-9 _-]")

// anchor is how a link names the heading.
func anchor(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
}
