package rlockvet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/rlockvet"
)

var (
	instead = regexp.MustCompile("(?m)^Instead: `(.*)`$")
	good    = regexp.MustCompile(`(?ms)^func (?:good\b|\(\w+ \*good\)).*?^}$`)
)

// docs/vet.md has a section for each check, with a line of the good example that testdata has.
func TestPage(t *testing.T) {
	page := "\n" + read(t, filepath.Join("..", "docs", "vet.md"))
	for _, a := range rlockvet.Analyzers {
		_, section, ok := strings.Cut(page, "\n## "+a.Name+"\n")
		if !ok {
			t.Errorf("no section %s", a.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		line := instead.FindStringSubmatch(section)
		if line == nil {
			t.Errorf("%s: no line with what to write instead", a.Name)
			continue
		}
		if examples := read(t, filepath.Join("testdata", a.Name, a.Name+".go")); !strings.Contains(good.FindString(examples), "\t"+line[1]+"\n") {
			t.Errorf("%s: not in func good of testdata: %s", a.Name, line[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
