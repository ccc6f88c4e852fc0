package presence

import (
	"errors"
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
		return errors.New(`the word is empty: say in one or two what the holder does, such as "leads", or leave it out`)
	case len(word) > maxLasting:
		return fmt.Errorf("the word has %d bytes: use %d or fewer", len(word), maxLasting)
	case plain.Name(word) != word:
		return fmt.Errorf("the word %q: use what can be seen and typed, without a space at an end", word)
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
