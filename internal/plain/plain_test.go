package plain_test

import (
	"encoding/json"
	"testing"

	"github.com/fencelock/fencelock/internal/plain"
)

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"account:42":     "account:42",
		`a"b\c d`:        `a"b\c d`,
		"Zürich 日本 🔒":    "Zürich 日本 🔒",
		"\ufffd":         "\ufffd",
		"":               `""`,
		" a":             `" a"`,
		"a\n":            `"a\n"`,
		`"a"`:            `"\"a\""`,
		"\x1b[2J":        `"\x1b[2J"`,
		"a\u009b2J":      `"a\u009b2J"`,
		"\u202eoj":       `"\u202eoj"`,
		"a\u2066b":       `"a\u2066b"`,
		"a\u00a0b":       `"a\u00a0b"`,
		"a\u200bb":       `"a\u200bb"`,
		"a\xffb":         `"a\xffb"`,
		"a\U000e0041":    `"a\U000e0041"`,
		"a\u2028b\u061c": `"a\u2028b\u061c"`,
	} {
		if got := plain.Name(name); got != want {
			t.Errorf("Name(%q): %s, want %s", name, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"0123456789", 10, "0123456789"}, {"0123456789a", 10, "01234 … 9a"}, {"日本日本日本日本日本日本", 10, "日本日本日 … 日本"}} {
		if got := plain.Brief(c.text, c.most); got != c.want {
			t.Errorf("Brief(%q, %d): %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		` "a" held by b `: ` "a" held by b `,
		"a\x1b[2J\nb\xff": `a\x1b[2J\nb\xff`,
		`a\x1b`:           `a\x1b`,
	} {
		if got := plain.Line(text); got != want {
			t.Errorf("Line(%q): %s, want %s", text, got, want)
		}
	}
}

// JSON says the same with the escapes.
func TestJSON(t *testing.T) {
	const name = "a\u202e\u009b\x7f\x1b\n日\U000e0041"
	text, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	escaped := plain.JSON(append(text, '\n'))
	if want := `"a\u202e\u009b\u007f\u001b\n日\udb40\udc41"` + "\n"; string(escaped) != want {
		t.Errorf("JSON: %s, want %s", escaped, want)
	}
	var back string
	if err := json.Unmarshal(escaped, &back); err != nil || back != name {
		t.Errorf("read again: %q, %v", back, err)
	}
}
