package docs

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// .ci/modules names every module, and users can install those that it calls released: a go.mod with a replace or an exclude is refused
// by go install, and a version that is not the others' is of another release.
func TestReleasedModulesCanBeInstalled(t *testing.T) {
	kinds := moduleKinds(t)
	versions := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "go.mod" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		kind, named := kinds[dir]
		if !named {
			t.Errorf(".ci/modules does not name the module in %s", dir)
		}
		delete(kinds, dir)
		if kind != "released" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if line := installable.Find(text); line != nil {
			t.Errorf("users import the module in %s, whose go.mod has %q", dir, line)
		}
		for _, require := range ours.FindAllStringSubmatch(string(text), -1) {
			versions[require[2]] = dir + " requires " + require[1]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range kinds {
		t.Errorf(".ci/modules names %s, which is no module", dir)
	}
	if len(versions) != 1 {
		t.Errorf("released modules require several versions of each other, or none: %v", versions)
	}
}

var (
	installable = regexp.MustCompile(`(?m)^\s*(?:replace|exclude)\b.*$`)
	ours        = regexp.MustCompile(`(?m)^(?:require)?\s+(github\.com/fencelock/fencelock\S*) (v\S+)`)
)

func moduleKinds(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, ".ci", "modules"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kinds := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		kind, dir, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "#", "":
		case "released", "inner":
			kinds[dir] = kind
		default:
			t.Errorf(".ci/modules: %q", lines.Text())
		}
	}
	return kinds
}
