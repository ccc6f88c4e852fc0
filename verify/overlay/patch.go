package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Patch returns the files of a module that a patch changes or adds, with the change. The patch is the output of git diff, and it has to
// fit exactly. The directory is that of the module.
func Patch(dir string, patch []byte) (Files, error) {
	changes, _, err := gitdiff.Parse(bytes.NewReader(patch))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the patch cannot be read: %w: make it anew with git diff", err)
	case len(changes) == 0:
		return nil, errors.New("the patch changes no file: make it anew with git diff")
	}
	files := make(Files)
	for _, c := range changes {
		if c.IsDelete || c.IsRename || c.IsCopy || c.IsBinary || !filepath.IsLocal(c.NewName) {
			return nil, fmt.Errorf("the patch does more to %s than change or add a text: leave that out of it", cmp.Or(c.NewName, c.OldName))
		}
		path := filepath.Join(dir, c.NewName)
		if files[path], err = patched(path, c); err != nil {
			return nil, fmt.Errorf("the patch does not fit %s: %w: make it anew for this version of the module", path, err)
		}
	}
	return files, nil
}

func patched(path string, c *gitdiff.File) ([]byte, error) {
	old, err := os.ReadFile(path)
	switch {
	case c.IsNew && err == nil:
		return nil, errors.New("the file is there already")
	case err != nil && !(c.IsNew && errors.Is(err, fs.ErrNotExist)):
		return nil, err
	}
	var text bytes.Buffer
	if err := gitdiff.Apply(&text, bytes.NewReader(old), c); err != nil {
		var at *gitdiff.ApplyError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("line %d: %w", at.Line, err)
		}
		return nil, err
	}
	return text.Bytes(), nil
}
