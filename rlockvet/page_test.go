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
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	want    = regexp.MustCompile(`(?m) *// want .*$`)
)

// docs/vet.md has a section for each check, with the bad and the good example that testdata has.
func TestPage(t *testing.T) {
	page := "\n" + read(t, filepath.Join("..", "docs", "vet.md"))
	for _, a := range rlockvet.Analyzers {
		_, section, ok := strings.Cut(page, "\n## "+a.Name+"\n")
		if !ok {
			t.Errorf("no section %s", a.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(page, "\n| ["+a.Name+"](#"+a.Name+") |") {
			t.Errorf("%s is not in the table", a.Name)
		}
		examples := want.ReplaceAllString(read(t, filepath.Join("testdata", a.Name, a.Name+".go")), "")
		blocks := goBlock.FindAllStringSubmatch(section, -1)
		if len(blocks) != 2 || !strings.HasPrefix(blocks[0][1], "func bad(") || !strings.HasPrefix(blocks[1][1], "func good(") {
			t.Errorf("%s: %d blocks of Go: show func bad, and func good", a.Name, len(blocks))
			continue
		}
		for _, b := range blocks {
			if !strings.Contains(examples, "\n"+b[1]) {
				t.Errorf("%s: not in testdata:\n%s", a.Name, b[1])
			}
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
