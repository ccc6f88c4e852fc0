package httpguard

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// format is the value of the field: the tokens by resource, ordered by name.
func format(tokens map[string]int64) string {
	var b strings.Builder
	for i, resource := range slices.Sorted(maps.Keys(tokens)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `"%d";resource=%s`, tokens[resource], quote(resource))
	}
	return b.String()
}

// quote is the name as a String, or as a Display String where it has what a String cannot have.
func quote(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	var b strings.Builder
	b.WriteString(`%"`)
	for i := range len(name) {
		if c := name[i]; !printable(c) || c == '%' || c == '"' {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func printable(c byte) bool { return c >= ' ' && c <= '~' }

// parse reads the lines of the field, which are one list.
func parse(lines []string) (map[string]int64, error) {
	p := parser{strings.Join(lines, ",")}
	tokens := map[string]int64{}
	p.skip(" ")
	for len(p.rest) > 0 {
		resource, token, err := p.member()
		if err == nil {
			if _, twice := tokens[resource]; twice {
				err = fmt.Errorf("two tokens of %.40q", resource)
			}
		}
		if err == nil {
			tokens[resource] = token
			err = p.next()
		}
		if err != nil {
			return nil, &fieldError{ErrMalformed, err.Error()}
		}
	}
	return tokens, nil
}

// parser takes the field apart from its beginning on.
type parser struct{ rest string }

func (p *parser) skip(chars string) { p.rest = strings.TrimLeft(p.rest, chars) }

func (p *parser) take(text string) bool {
	rest, found := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return found
}

// next goes on to the next member, or to the end.
func (p *parser) next() error {
	p.skip(" \t")
	if len(p.rest) == 0 {
		return nil
	}
	if !p.take(",") {
		return fmt.Errorf("a comma is missing before %.40q", p.rest)
	}
	p.skip(" \t")
	if len(p.rest) == 0 {
		return fmt.Errorf("nothing comes after the last comma")
	}
	return nil
}

// member reads "33";resource="account:42".
func (p *parser) member() (resource string, token int64, err error) {
	if !p.take(`"`) {
		return "", 0, fmt.Errorf(`write a token as "33";resource="account:42", with these quotes, not %.40q`, p.rest)
	}
	digits, err := p.text()
	if err != nil {
		return "", 0, err
	}
	token, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || token < 1 || strconv.FormatInt(token, 10) != digits {
		return "", 0, fmt.Errorf("%.40q is no token: it is a whole number from 1 to 2^63-1", digits)
	}
	if !p.take(";") {
		return "", 0, fmt.Errorf("the token %d has no resource", token)
	}
	p.skip(" ")
	if !p.take("resource=") {
		return "", 0, fmt.Errorf("%.40q is no parameter of a token: it has a resource, and no other", p.rest)
	}
	switch {
	case p.take(`"`):
		resource, err = p.text()
	case p.take(`%"`):
		resource, err = p.displayText()
	default:
		err = fmt.Errorf("the resource of token %d is neither a String nor a Display String", token)
	}
	return resource, token, err
}

// text reads a String behind its opening quote.
func (p *parser) text() (string, error) {
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), nil
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return "", fmt.Errorf(`in a String a backslash stands before " and \ only`)
			}
			c = p.rest[i]
		case !printable(c):
			return "", fmt.Errorf("the byte 0x%02x cannot be in a String: use a Display String", c)
		}
		b.WriteByte(c)
	}
	return "", fmt.Errorf("a String is not closed")
}

// displayText reads a Display String behind its opening quote.
func (p *parser) displayText() (string, error) {
	var b []byte
	for i := 0; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			if !utf8.Valid(b) {
				return "", fmt.Errorf("the Display String %.40q is not UTF-8", b)
			}
			return string(b), nil
		case c == '%':
			code := p.rest[i+1 : min(i+3, len(p.rest))]
			decoded, err := hex.DecodeString(code)
			if err != nil || len(decoded) != 1 || code != strings.ToLower(code) {
				return "", fmt.Errorf("in a Display String two lower-case hexadecimal digits follow %%, not %q", code)
			}
			b = append(b, decoded[0])
			i += 2
		case !printable(c):
			return "", fmt.Errorf("the byte 0x%02x cannot be in a Display String: write %%%02x", c, c)
		default:
			b = append(b, c)
		}
	}
	return "", fmt.Errorf("a Display String is not closed")
}
