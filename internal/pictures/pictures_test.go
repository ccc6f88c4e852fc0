package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// The pictures of docs/pictures are those that the program draws, and are well-formed.
func TestPicturesAreDrawn(t *testing.T) {
	for name, draw := range pictures {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", "pictures", name))
		locktest.NoError(t, err)
		if string(got) != draw() {
			t.Errorf("docs/pictures/%s is not what the program draws: go run ./internal/pictures", name)
		}
		for decoder := xml.NewDecoder(strings.NewReader(string(got))); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
