//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A worker that the story starts is this same program.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "-worker" {
		if err := work(context.Background(), os.Args[2], os.Args[3] == "-freezes=true", os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestStory(t *testing.T) {
	var out bytes.Buffer
	locktest.NoError(t, story(t.Context(), &out))
	for _, want := range []string{"a  is node 0, token 1", "b  is node 1, token 1", "c  is node 0, token 2", "refused, ", "ok: no id twice"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
}
