package sqlguard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// checkSet looks at what is to stand between SET and the guard's own part of an UPDATE: it must end where it seems to, and
// have a placeholder for each of so many arguments, else the guard's own arguments would be taken in their place.
func (d Dialect) checkSet(set string, args int) error {
	largest, err := d.placeholders(set)
	switch {
	case err != nil:
		return err
	case largest != args:
		return fmt.Errorf("set has placeholders for %d arguments, and there are %d", largest, args)
	}
	return nil
}

// placeholders returns the number of the largest placeholder in set. The error says what is more than assignments. What is
// read in other ways in other modes of a database is an error too: comments, and backslashes in quotes.
func (d Dialect) placeholders(set string) (largest int, err error) {
	depth := 0
	for i := 0; i < len(set); {
		rest := set[i:]
		n := 1 // bytes of this part
		switch c := set[i]; {
		case c == 0 || c == ';':
			return 0, fmt.Errorf("set has a %q: write one statement's assignments", c)
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"), c == '#' && d == MySQL:
			return 0, errors.New("set has a comment: leave it out")
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return 0, errors.New("set closes a parenthesis that it has not opened")
		case c == ')':
			depth--
		case c == '\'' || c == '"' || c == '`' && d != PostgreSQL || c == '[' && d == SQLite:
			if n, err = quoted(rest); err != nil {
				return 0, err
			}
		case c == '?' && d != PostgreSQL, c == '$' && d == PostgreSQL:
			digits := rest[1 : 1+span(rest[1:], isDigit)]
			n += len(digits)
			number, err := strconv.Atoi(digits)
			switch {
			case digits == "" && c == '?':
				number = largest + 1
			case digits == "":
				return 0, fmt.Errorf("set has %.20q: make a text in dollar quotes an argument, and write the arguments as $1", rest)
			case err != nil || d == MySQL:
				return 0, fmt.Errorf("set has %.20q: write the arguments as %s", rest, d.mark(1))
			}
			largest = max(largest, number)
		case d == SQLite && strings.IndexByte(":@$", c) >= 0:
			return 0, fmt.Errorf("set has %.20q: write the arguments as ?", rest)
		case isDigit(c):
			n = span(rest, isNumber)
		case isWord(c):
			n = span(rest, isWord)
			if depth == 0 && strings.EqualFold(rest[:n], "WHERE") {
				return 0, errors.New("set has a WHERE: the key and the token are the condition")
			}
		}
		i += n
	}
	if depth > 0 {
		return 0, errors.New("set does not close a parenthesis")
	}
	return largest, nil
}

// quoted is the length of what is in quotes at the beginning of text. A quote in it is written twice: that is two of them.
func quoted(text string) (int, error) {
	end := text[0]
	if end == '[' {
		end = ']'
	}
	n := strings.IndexByte(text[1:], end)
	if n < 0 {
		return 0, fmt.Errorf("set does not close its %c", text[0])
	}
	if strings.IndexByte(text[1:n+1], '\\') >= 0 {
		return 0, errors.New("set has a backslash in quotes, which databases do not read alike: make it an argument")
	}
	return n + 2, nil
}

// span is how many bytes at the beginning of text are such.
func span(text string, is func(c byte) bool) int {
	n := 0
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isNumber(c byte) bool { return isDigit(c) || c == '.' || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}
