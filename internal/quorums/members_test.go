package quorums

import (
	"slices"
	"strings"
	"testing"
)

func names(text string) []string { return strings.Split(text, "") }

func TestWay(t *testing.T) {
	for _, c := range []struct{ from, up, to, want string }{
		{"abcde", "abcde", "abcdf", "2 5 a b c d, 3 5 a b c d f"},
		{"abcde", "abcde", "abcfg", "2 6 a b c e f, 3 5 a b c f g"},
		{"abcde", "abc", "abcfg", "2 5 a b c e, 3 5 a b c f, 4 5 a b c f g"},
		{"abcde", "ab", "abcfg", ""},
		{"abcde", "abcde", "fghij", ""},
		{"abcde", "abcde", "abfgh", ""},
		{"abc", "abc", "abcde", "2 4 a b c d, 3 5 a b c d e"},
		{"abcde", "abcde", "abc", "2 4 a b c e, 3 3 a b c"},
		{"abc", "abc", "abd", "2 3 a b, 3 3 a b d"},
		{"abcd", "abcd", "abce", "2 4 a b c e"},
		{"a", "a", "abc", ""},
		{"abc", "abc", "abc", "nothing"},
	} {
		m, err := NewMembers(names(c.from))
		if err != nil {
			t.Fatal(err)
		}
		way, err := m.Way(names(c.up), names(c.to))
		got := make([]string, len(way))
		for i, s := range way {
			got[i] = s.String()
		}
		if text := strings.Join(got, ", "); text != strings.TrimPrefix(c.want, "nothing") || (err != nil) != (c.want == "") {
			t.Errorf("from %s to %s: %q, %v, want %q", c.from, c.to, text, err, c.want)
		}
	}
}

func TestParseMembers(t *testing.T) {
	m, err := NewMembers([]string{"b:1", "a:1", "c:1"})
	if err != nil || m.String() != "1 3 a:1 b:1 c:1" {
		t.Fatal(m, err)
	}
	m.Out = true
	for _, text := range []string{m.String(), "1 3 a:1 b:1 c:1", "7 5 a b c"} {
		if got, err := ParseMembers(text); err != nil || got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "1 3", "x 3 a b c", "1 3 a", "1 1 a b", "0 1 a", "1 3 b a", "1 3 out"} {
		if got, err := ParseMembers(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, wrong := range [][]string{{"a", "a"}, {""}, {"a b"}, {"out"}} {
		if _, err := NewMembers(wrong); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	older, newer := Members{Generation: 1, Size: 1, Names: []string{"z"}}, Members{Generation: 2, Size: 1, Names: []string{"a"}, Out: true}
	if older.Compare(newer) >= 0 || newer.Compare(older) <= 0 || newer.Compare(newer) != 0 || !slices.Equal(newer.Names, []string{"a"}) {
		t.Error("the order of the generations")
	}
}
