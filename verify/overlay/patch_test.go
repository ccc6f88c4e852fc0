package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	change  = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	added   = "diff --git a/d/new b/d/new\nnew file mode 100644\n--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+new\n"
	again   = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+new\n"
	missing = "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-one\n+1\n"
	deleted = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
	outside = "diff --git a/../x b/../x\n--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-one\n+1\n"
	broken  = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n one\n"
)

func TestPatch(t *testing.T) {
	for name, c := range map[string]struct {
		text, patch string
		want        map[string]string
		words       []string
	}{
		"a change and a new file": {"one\ntwo\nthree\n", change + added, map[string]string{"x": "one\n2\nthree\n", "d/new": "new\n"}, nil},
		"a message before it":     {"one\ntwo\nthree\n", "Why.\n\n" + change, map[string]string{"x": "one\n2\nthree\n"}, nil},
		"another text":            {"one\n2\nthree\n", change, nil, []string{"does not fit", "line 2", "make it anew for this version"}},
		"at another line":         {"zero\none\ntwo\nthree\n", change, nil, []string{"does not fit", "make it anew for this version"}},
		"a new file that is old":  {"one\n", again, nil, []string{"there already", "make it anew for this version"}},
		"a file that is gone":     {"one\n", missing, nil, []string{"no such file", "make it anew for this version"}},
		"a file less":             {"one\ntwo\nthree\n", deleted, nil, []string{"leave that out of it"}},
		"a file elsewhere":        {"one\n", outside, nil, []string{"leave that out of it"}},
		"part of a patch":         {"one\n", broken, nil, []string{"cannot be read", "make it anew with git diff"}},
		"no patch":                {"one\n", "nothing\n", nil, []string{"changes no file", "make it anew with git diff"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, map[string]string{"x": c.text})
			got, err := Patch(dir, []byte(c.patch))
			expect(t, dir, got, err, c.want, c.words...)
		})
	}
}

// The patch of miniredis fits the version that go.mod names.
func TestPatchOfMiniredis(t *testing.T) {
	dir, err := goSays(t.Context(), filepath.Join(Root(), "verify"), "list", "-m", "-f", "{{.Dir}}", Miniredis.Path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Patch(dir, Miniredis.Patch)
	if err == nil {
		err = files.Edit(dir, Miniredis.Edits...)
	}
	if err != nil || len(files) == 0 {
		t.Errorf("%d files; %v", len(files), err)
	}
}

// tree writes the files into a directory, which it returns.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// expect requires these texts, or an error with the words.
func expect(t *testing.T, root string, got Files, err error, want map[string]string, words ...string) {
	t.Helper()
	if len(words) > 0 {
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("the error is %q, without %q", err, w)
			}
		}
		return
	}
	if err != nil || len(got) != len(want) {
		t.Errorf("%d files, not %d; %v", len(got), len(want), err)
	}
	for name, text := range want {
		if got := string(got[filepath.Join(root, name)]); got != text {
			t.Errorf("%s: %q, not %q", name, got, text)
		}
	}
}
