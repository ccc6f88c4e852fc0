package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

const (
	architecture = "docs/architecture.md"
	module       = "github.com/fencelock/fencelock/"
)

// A row is what the table of docs/architecture.md says of a package, or of all packages below a folder: `examples/...`.
type row struct {
	name    string
	imports []string
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| `([a-z/.]+)` \\|.*\\|(.*)\\|$")
	quoted   = regexp.MustCompile("`([a-z/]+)`")
)

// Each package of the root module imports what the table says, and the table's imports all go down: there is no way back up. Tests may
// import more.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, architecture))
	locktest.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []row
	for _, m := range tableRow.FindAllStringSubmatch(table, -1) {
		r := row{name: m[1]}
		for _, name := range quoted.FindAllStringSubmatch(m[2], -1) {
			r.imports = append(r.imports, name[1])
		}
		rows = append(rows, r)
	}
	unused := map[string]bool{} // what the table allows, as "a -> b"
	for i, r := range rows {
		for _, name := range r.imports {
			unused[r.name+" -> "+name] = true
			if at := slices.IndexFunc(rows, func(r row) bool { return r.name == name }); at <= i {
				t.Errorf("%s: the row of %s names %s, which stands above it or nowhere: put the row of %s below, or turn the import round", architecture, r.name, name, name)
			}
		}
	}
	for name, imports := range importsOfModule(t) {
		i := slices.IndexFunc(rows, func(r row) bool {
			folder, below := strings.CutSuffix(r.name, "/...")
			return r.name == name || below && (name == folder || strings.HasPrefix(name, folder+"/"))
		})
		if i < 0 {
			t.Errorf("%s: the table of packages has no row for %s: add one, with what it has and what it may import", architecture, name)
			continue
		}
		for _, imported := range imports {
			if slices.Contains(rows[i].imports, imported) {
				delete(unused, rows[i].name+" -> "+imported)
			} else {
				t.Errorf("%s imports %s, which its row in %s does not allow: do without the import, or say there that it may, if %s is to know %s",
					name, imported, architecture, name, imported)
			}
		}
	}
	for arrow := range unused {
		t.Errorf("%s allows %s, and nothing imports that: take it out of the row", architecture, arrow)
	}
}

// importsOfModule returns, for each package of the root module that has files other than tests, which packages of the project these import.
func importsOfModule(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	locktest.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if name := entry.Name(); file != root && (err == nil || name == "testdata" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		name := path.Dir(filepath.ToSlash(rel))
		all[name] = slices.Clip(all[name])
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if imported, own := strings.CutPrefix(imported, module); own && !slices.Contains(all[name], imported) {
				all[name] = append(all[name], imported)
			}
		}
		return err
	}))
	if len(all) < 20 {
		t.Fatalf("%d packages: the module was not read", len(all))
	}
	return all
}
