package breaks

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// A word is a token of Go or of Lua, and where it is.
type word struct {
	text string
	span
}

// anything stands in a pattern for words whose brackets are pairs.
const anything = "…"

// match returns where the code is in the text, which is Go or Lua.
func match(file, text, code string) (found []span) {
	split := goWords
	if strings.HasSuffix(file, ".lua") {
		split = luaWords
	}
	words, pattern := split(text), split(code)
	for i := range words {
		if n := begins(words[i:], pattern); n > 0 {
			found = append(found, span{words[i].from, words[i+n-1].to})
		}
	}
	return found
}

// begins returns with how many words the pattern is there, 0 where it is not.
func begins(words, pattern []word) int {
	n := 0
	for i, p := range pattern {
		if p.text == anything {
			for depth := 0; n <= len(words); n++ {
				if rest := begins(words[n:], pattern[i+1:]); depth == 0 && rest > 0 {
					return n + rest
				}
				if n == len(words) {
					break
				}
				if depth += depthOf[words[n].text]; depth < 0 {
					break
				}
			}
			return 0
		}
		if n == len(words) || words[n].text != p.text {
			return 0
		}
		n++
	}
	return n
}

var depthOf = map[string]int{"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

func goWords(text string) (words []word) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	for {
		at, tok, literal := s.Scan()
		if tok == token.EOF {
			return words
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner has put it there
		}
		if literal == "" {
			literal = tok.String()
		}
		from := file.Offset(at)
		words = append(words, word{literal, span{from, from + len(literal)}})
	}
}

var luaWord = regexp.MustCompile(`--[^\n]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+|==|~=|<=|>=|\.{2,3}|…|\S`)

func luaWords(text string) (words []word) {
	for _, at := range luaWord.FindAllStringIndex(text, -1) {
		if w := text[at[0]:at[1]]; !strings.HasPrefix(w, "--") {
			words = append(words, word{w, span{at[0], at[1]}})
		}
	}
	return words
}
