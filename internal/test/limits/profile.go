package limits

import (
	"cmp"
	"slices"
	"strings"
)

// A Profile is the limits of one engine.
type Profile struct {
	Name   string
	Source string // of the limits that name no other
	Limits []Limit
}

// A Limit is what a server does not do, or does in another way.
type Limit struct {
	On     string // these commands, some with a word more, as CLIENT|SETINFO; with spaces between
	In     Where
	Words  string // in which they are refused, "" where Says is an answer, or the command is unknown; %s is the command
	Says   string // a bulk string in place of the server's answer
	Does   Quirk
	Source string
}

// Where is where a command is refused.
type Where int

// Where commands are refused.
const (
	Everywhere Where = iota
	InScripts
	Outside
)

// A Quirk is what a server does in another way; zero for none.
type Quirk int

// The quirks.
const (
	CountsNobody   Quirk = iota + 1 // PUBLISH in a script tells those who listen, and returns 0
	DeclaredKeys                    // a script may use the keys that it was called with, and no others
	OneSlot                         // the keys of a command are of one hash slot
	OneNode                         // CLUSTER SLOTS says that one node has all slots
	MixedChannels                   // sharded channels and others are the same
	HangsUp                         // a command that is refused ends the connection
	UnknownInWords                  // Words are of all that is refused without any
)

func (p Profile) does(q Quirk) bool {
	return slices.ContainsFunc(p.Limits, func(l Limit) bool { return l.Does == q })
}

// limit returns what limits a command here; nil for nothing.
func (p Profile) limit(here Where, command, word string) *Limit {
	for i, l := range p.Limits {
		if l.In != Everywhere && l.In != here {
			continue
		}
		for name := range strings.FieldsSeq(l.On) {
			if name == command || name == command+"|"+strings.ToUpper(word) {
				return &p.Limits[i]
			}
		}
	}
	return nil
}

// words are those in which the limit refuses a command; "" where it does not.
func (p Profile) words(l *Limit, command string) string {
	if l.Says != "" {
		return ""
	}
	words := cmp.Or(l.Words, p.unknown())
	return strings.ReplaceAll(words, "%s", command)
}

func (p Profile) unknown() string {
	for _, l := range p.Limits {
		if l.Does == UnknownInWords {
			return l.Words
		}
	}
	return "ERR unknown command '%s', with args beginning with: "
}
