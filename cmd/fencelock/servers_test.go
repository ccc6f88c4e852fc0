package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Several URLs come from several --url, from one with commas, from the variable and from a file. A comma in a password is none between URLs.
func TestSeveralURLs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(file, []byte("# five of them\nredis://:pa,ss@a:1\n\n  rediss://b:2 \n#redis://c:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at       connection
		variable string
		want     []string
	}{
		{connection{urls: []string{"redis://a:1", "redis://b:2"}}, "redis://c:3", []string{"redis://a:1", "redis://b:2"}},
		{connection{urls: []string{"redis://a:1,rediss://b:2, unix:///c"}}, "", []string{"redis://a:1", "rediss://b:2", "unix:///c"}},
		{connection{}, "redis://:p,q@a:1,redis://:r@b:2\n", []string{"redis://:p,q@a:1", "redis://:r@b:2"}},
		{connection{}, "redis://:p,q@a:1", []string{"redis://:p,q@a:1"}},
		{connection{urlsFile: file}, "", []string{"redis://:pa,ss@a:1", "rediss://b:2"}},
		{connection{}, "", []string{defaultURL}},
	} {
		t.Setenv(urlVariable, c.variable)
		got, err := c.at.addresses()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.want, got, err)
		}
		equal(t, "several", c.at.several(), len(c.want) > 1)
		all, err := c.at.openAll()
		equal(t, "clients", len(all), len(c.want))
		if err != nil {
			t.Error(err)
		}
		closeAll(all)
		for _, shown := range append(c.at.shownAll(), c.at.shown()) {
			if strings.Contains(shown, "pa,ss") || strings.Contains(shown, "p,q") {
				t.Errorf("a password is shown: %s", shown)
			}
		}
		if _, err := c.at.open(); (err != nil) != (len(c.want) > 1) {
			t.Errorf("open of %d: %v", len(c.want), err)
		}
	}
}

// What is wrong with one of several URLs, or with how they are given, is said without a password.
func TestSeveralWrongURLs(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(empty, []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(urlVariable, "")
	for why, at := range map[string]connection{
		"exclude each other":        {urls: []string{"redis://a"}, urlsFile: empty},
		"has no URL":                {urlsFile: empty},
		"no such file":              {urlsFile: empty + "2"},
		"has a password":            {urls: []string{"redis://a,redis://:hunter2@b"}},
		"server 2 of 2: the URL of": {urls: []string{"redis://a", "redis://b/hunter2@"}},
		"are for one URL":           {urls: []string{"redis://a", "redis://b"}, cluster: true},
	} {
		if _, err := at.openAll(); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", why, err)
		}
	}
}
