package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync/atomic"
)

// Command matches commands by name, in any letter case.
func Command(name string) func([]string) bool {
	return func(args []string) bool { return strings.EqualFold(args[0], name) }
}

// Script matches calls of the script with this SHA-1 in hex: EVALSHA of it, and
// EVAL of a text that has it. On a server that does not know the script yet,
// the first call that matches is the EVALSHA which the server answers with
// NOSCRIPT; load the script first if the fault is meant for a call that runs.
func Script(sha string) func([]string) bool {
	return func(args []string) bool {
		if len(args) < 2 {
			return false
		}
		switch strings.ToUpper(args[0]) {
		case "EVALSHA":
			return strings.EqualFold(args[1], sha)
		case "EVAL":
			sum := sha1.Sum([]byte(args[1]))
			return strings.EqualFold(hex.EncodeToString(sum[:]), sha)
		}
		return false
	}
}

// And matches what all of the given functions match. They are asked in order,
// up to the first that does not match.
func And(matches ...func([]string) bool) func([]string) bool {
	return func(args []string) bool {
		for _, match := range matches {
			if !match(args) {
				return false
			}
		}
		return true
	}
}

// Nth matches only the n-th command, counted from 1, that match matches.
func Nth(n int, match func([]string) bool) func([]string) bool {
	var seen atomic.Int64
	return func(args []string) bool {
		return match(args) && seen.Add(1) == int64(n)
	}
}
