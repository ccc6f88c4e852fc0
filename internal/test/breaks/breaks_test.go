package breaks

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..")

// Each break is one of the code as it is: found out here in a second, not at the end of a long run.
func TestBreaksFitTheCode(t *testing.T) {
	name, short := map[string]bool{}, map[string]bool{}
	for _, b := range All {
		files, err := b.Files(root)
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
		for file, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil && strings.HasSuffix(file, ".go") {
				t.Errorf("%s: %v", b.Name, err)
			}
		}
		if name[b.Name] || b.Short != "" && short[b.Short] {
			t.Errorf("two breaks are called %s, or %s", b.Name, b.Short)
		}
		name[b.Name], short[b.Short] = true, true
		if b.Short == "" && b.Pkg == "" {
			t.Errorf("%s: nothing is to notice it", b.Name)
		}
	}
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// Each break names tests that its package has.
func TestBreaksHaveTests(t *testing.T) {
	declared := map[string][]string{}
	for _, b := range All {
		if b.Pkg == "" {
			continue
		}
		if declared[b.Pkg] == nil {
			files, err := filepath.Glob(filepath.Join(root, b.Pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range testName.FindAllStringSubmatch(string(text), -1) {
					declared[b.Pkg] = append(declared[b.Pkg], name[1])
				}
			}
		}
		top, _, _ := strings.Cut(b.Run, "/")
		run, err := regexp.Compile(top)
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
			continue
		}
		if !slices.ContainsFunc(declared[b.Pkg], run.MatchString) {
			t.Errorf("%s: no test of %s matches %s", b.Name, b.Pkg, b.Run)
		}
	}
}

// What an edit names is found whatever the spaces, line breaks and comments, and in brackets of any content.
func TestMatch(t *testing.T) {
	const goText = "if a.b(c, d) && !e { // why\n\tf(g(h), \"x\") // not g\n}\n"
	const luaText = "local there = redis.pcall('EXISTS', lock) -- 'f'\nif there == 0 and f(1) then\n  return 0\nend\n"
	for _, c := range []struct{ file, text, code, found string }{
		{"a.go", goText, "a.b(c,d)", "a.b(c, d)"},
		{"a.go", goText, "!e {\nf(…)", "!e { // why\n\tf(g(h), \"x\")"},
		{"a.go", goText, "f(…, \"x\")", "f(g(h), \"x\")"},
		{"a.go", goText, "f(…, \"y\")", ""},
		{"a.go", goText, "not g", ""},
		{"a.go", goText, "b", "b"},
		{"a.lua", luaText, "redis.pcall(…)", "redis.pcall('EXISTS', lock)"},
		{"a.lua", luaText, "lock) if there", "lock) -- 'f'\nif there"},
		{"a.lua", luaText, "'f'", ""},
		{"a.lua", luaText, "there = = 0", ""},
	} {
		found := match(c.file, c.text, c.code)
		switch {
		case c.found == "" && len(found) > 0, c.found != "" && len(found) != 1:
			t.Errorf("%q is there %d times", c.code, len(found))
		case c.found != "" && c.text[found[0].from:found[0].to] != c.found:
			t.Errorf("%q is %q, want %q", c.code, c.text[found[0].from:found[0].to], c.found)
		}
	}
}

// A break that does not fit, or fits twice, says so.
func TestApplyRefuses(t *testing.T) {
	for _, e := range []Edit{
		{"quorum node.young", "there is no such code", ""},
		{"quorum node.nothing", "return", ""},
		{"scripts/acquire.lua", "then", ""},
		{"scripts/acquire.lua nothing", "then", ""},
		{"scripts/nothing.lua", "then", ""},
		{"scripts/readwrite.lua reads", "client(ticket)", ""}, // in the next function
		{"quorum node.young", "", ""},
		{"quorum node.young", "// no code", ""},
		{"quorum node.young", "return …", ""},
	} {
		if _, err := Apply(root, e); err == nil {
			t.Errorf("%+v fits", e)
		}
	}
}
