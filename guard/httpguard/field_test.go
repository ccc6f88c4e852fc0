package httpguard

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

func newRequest() *http.Request { return httptest.NewRequest("POST", "/", nil) }

// What goes over the wire, to the letter: other languages read and write it too.
func TestField(t *testing.T) {
	for _, c := range []struct {
		name  string
		token int64
		field string
	}{
		{"account:42", 33, `"33";resource="account:42"`},
		{"a", math.MaxInt64, `"9223372036854775807";resource="a"`},
		{`say "hi"\`, 1, `"1";resource="say \"hi\"\\"`},
		{`a",b;c=d%"`, 1, `"1";resource="a\",b;c=d%\""`},
		{" a ~", 1, `"1";resource=" a ~"`},
		{"café:7", 1, `"1";resource=%"caf%c3%a9:7"`},
		{"a\r\nb\x00\x7f", 1, `"1";resource=%"a%0d%0ab%00%7f"`},
		{"100%\"\\\n", 1, `"1";resource=%"100%25%22\%0a"`},
		{"\U0001F512\uFEFF\uFFFD", 1, `"1";resource=%"%f0%9f%94%92%ef%bb%bf%ef%bf%bd"`},
	} {
		r := newRequest()
		locktest.NoError(t, SetToken(r, c.name, c.token))
		locktest.Equal(t, "field", r.Header.Get(Header), c.field)
		token, err := Token(r, c.name)
		locktest.NoError(t, err)
		locktest.Equal(t, c.field, token, c.token)
		if _, err := Token(r, c.name+"x"); !errors.Is(err, ErrRequired) || !strings.Contains(err.Error(), Header) {
			t.Errorf("%v", err)
		}
	}
}

func TestSetToken(t *testing.T) {
	r := &http.Request{}
	locktest.NoError(t, SetToken(r, "b", 7))
	locktest.NoError(t, SetToken(r, "é", 9))
	locktest.NoError(t, SetToken(r, "a", 33))
	locktest.NoError(t, SetToken(r, "b", 8)) // in place of 7
	locktest.Equal(t, "field", r.Header.Get(Header), `"33";resource="a", "8";resource="b", "9";resource=%"%c3%a9"`)
	locktest.Equal(t, "lines", len(r.Header.Values(Header)), 1)

	before := r.Header.Get(Header)
	locktest.IsError(t, SetToken(r, "a", 0), guard.ErrToken)
	locktest.IsError(t, SetToken(r, "a", -1), guard.ErrToken)
	if err := SetToken(r, "a\xff", 1); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%v", err)
	}
	locktest.Equal(t, "field", r.Header.Get(Header), before)
	r.Header.Set(Header, "33")
	locktest.IsError(t, SetToken(r, "a", 1), ErrMalformed)
	locktest.Equal(t, "field", r.Header.Get(Header), "33")
}

// What others may write, and what is refused: nothing in between.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		want  string
		lines []string
	}{
		{"map[]", nil},
		{"map[]", []string{""}},
		{"map[a:1]", []string{`"1";resource="a"`}},
		{"map[a:1]", []string{`"1";resource=%"a"`}},
		{"map[a:1]", []string{`  "1";  resource="a"  `}},
		{"map[a:1 b:2]", []string{"\"2\";resource=\"b\" \t,\t \"1\";resource=\"a\""}},
		{"map[a:1 b:2]", []string{`"2";resource="b"`, `"1";resource="a"`}},
	} {
		r := newRequest()
		r.Header[Header] = c.lines
		tokens, err := Tokens(r)
		locktest.NoError(t, err)
		locktest.Equal(t, fmt.Sprintf("%q", c.lines), fmt.Sprint(tokens), c.want)
	}
	for _, c := range []struct{ say, field string }{
		{"with these quotes", `33`}, {"with these quotes", `33;resource="a"`}, {"with these quotes", `,"1";resource="a"`},
		{"with these quotes", `:MzM=:;resource="a"`}, {"with these quotes", `("1");resource="a"`},
		{"has no resource", `"1"`}, {"has no resource", `"1" ;resource="a"`}, {"has no resource", `"1", "2";resource="a"`},
		{"no parameter", `"1";name="a"`}, {"no parameter", `"1";`}, {"no parameter", "\"1\";\tresource=\"a\""},
		{"neither a String", `"1";resource=a`}, {"neither a String", `"1";resource=`}, {"no parameter", `"1";resource`}, {"neither a String", `"1";resource=1`},
		{"no token", `"0";resource="a"`}, {"no token", `"-1";resource="a"`}, {"no token", `"+1";resource="a"`}, {"no token", `"01";resource="a"`},
		{"no token", `"";resource="a"`}, {"no token", `"1.0";resource="a"`}, {"no token", `" 1";resource="a"`}, {"no token", `"9223372036854775808";resource="a"`},
		{"no token", `"0x1";resource="a"`}, {"no token", `"1_0";resource="a"`}, {"no token", `"` + strings.Repeat("9", 1000) + `";resource="a"`},
		{"not closed", `"1`}, {"not closed", `"1";resource="a`}, {"not closed", `"1";resource=%"a`}, {"comma is missing", `"1";resource="a,"2`},
		{"backslash", `"1";resource="a\b"`}, {"backslash", `"1";resource="a\`},
		{"byte 0xc3", "\"1\";resource=\"caf\xc3\xa9\""}, {"byte 0xc3", "\"1\";resource=%\"caf\xc3\xa9\""}, {"byte 0x09", "\"1\";resource=\"\t\""},
		{"two lower-case", `"1";resource=%"%C3%A9"`}, {"two lower-case", `"1";resource=%"%"`}, {"two lower-case", `"1";resource=%"%c"`}, {"two lower-case", `"1";resource=%"%zz"`},
		{"two lower-case", `"1";resource=%"%`}, {"two lower-case", `"1";resource=%"%c`},
		{"not UTF-8", `"1";resource=%"%c3"`}, {"not UTF-8", `"1";resource=%"%ed%a0%80"`}, {"not UTF-8", `"1";resource=%"%c0%80"`},
		{"comma is missing", `"1";resource="a";resource="b"`}, {"comma is missing", `"1";resource="a" "2";resource="b"`},
		{"comma is missing", `"1";resource="a"x`}, {"last comma", `"1";resource="a",`}, {"last comma", `"1";resource="a", `},
		{"two tokens", `"1";resource="a", "2";resource="a"`}, {"two tokens", `"1";resource="a","1";resource=%"a"`},
	} {
		r := newRequest()
		r.Header[Header] = []string{c.field}
		tokens, err := Tokens(r)
		if !errors.Is(err, ErrMalformed) || tokens != nil || !strings.Contains(err.Error(), c.say) || len(err.Error()) > 200 {
			t.Errorf("%s: %v, %v: want %q", c.field, tokens, err, c.say)
		}
		_, err = Token(r, "a")
		locktest.IsError(t, err, ErrMalformed)
	}
}

// Whatever is read can be written and read again, and means the same; a name that was written is read as it was.
func FuzzField(f *testing.F) {
	for _, seed := range []string{`"33";resource="a"`, `"1";resource=%"%c3%a9" , "2";resource="\"\\"`, `x`, "\x00é%\"\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tokens, err := parse([]string{text}); err == nil {
			again, err := parse([]string{format(tokens)})
			if err != nil || !maps.Equal(tokens, again) {
				t.Errorf("%q is %v, and then %v, %v", text, tokens, again, err)
			}
		}
		r := newRequest()
		if SetToken(r, text, 5) != nil {
			return
		}
		for i := range len(r.Header.Get(Header)) {
			if c := r.Header.Get(Header)[i]; !printable(c) {
				t.Fatalf("%q: the byte 0x%02x is in the header", text, c)
			}
		}
		if token, err := Token(r, text); token != 5 || err != nil {
			t.Errorf("%q: %d, %v", text, token, err)
		}
	})
}
