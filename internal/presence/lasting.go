package presence

import (
	"fmt"
	"strings"

	"github.com/fencelock/fencelock/internal/plain"
)

// maxLasting bounds the word of a hold that is meant to last, in bytes.
const maxLasting = 32

// CheckLasting is why this is no word of a hold that is meant to last; nil if it is one.
func CheckLasting(word string) error {
	switch {
	case strings.TrimSpace(word) == "":
		return fmt.Errorf("Lasting(%q): say in a word or two what the holder does, such as \"leads\", or leave the option out", word)
	case len(word) > maxLasting:
		return fmt.Errorf("Lasting with %d bytes: use %d or fewer", len(word), maxLasting)
	case plain.Name(word) != word:
		return fmt.Errorf("Lasting(%q): use letters, digits and signs that can be seen, and no space at the ends", word)
	}
	return nil
}

// bounded is a word that was read. One that is longer than any client writes is cut.
func bounded(word string) string {
	if len(word) > maxLasting {
		word = strings.ToValidUTF8(word[:maxLasting], "")
	}
	return word
}
