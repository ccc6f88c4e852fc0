// Package plain shows text that others have written, such as names of locks, clients, hosts and programs, to people: it does nothing to a
// terminal, to columns or to the direction of a line, and hides nothing.
package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Name is a name as a person can read and type it: as it is, or quoted as a string in Go where it is empty, has something that nobody sees,
// begins or ends with a space, or begins with a quotation mark, so that no name looks like another one.
func Name(name string) string {
	if name == "" || name[0] == '"' || strings.TrimSpace(name) != name || Line(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// Brief is text with the middle left out where it has more letters than most, 10 or more.
func Brief(text string, most int) string {
	all := []rune(text)
	if len(all) <= most {
		return text
	}
	end := most / 5
	return string(all[:most-end-3]) + " … " + string(all[len(all)-end:])
}

// Line is text with an escape, as in a string in Go, in place of each character that nobody sees.
func Line(text string) string {
	var line strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if strconv.IsPrint(r) && !(r == utf8.RuneError && size == 1) {
			line.WriteRune(r)
		} else {
			quoted := strconv.Quote(rest[:size])
			line.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[size:]
	}
	return line.String()
}

// JSON is JSON with an escape in place of each character that nobody sees. Line breaks between its parts stay.
func JSON(text []byte) []byte {
	all := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || strconv.IsPrint(r) {
			all = utf8.AppendRune(all, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			all = fmt.Appendf(all, "\\u%04x", unit)
		}
	}
	return all
}
