package lockui

import (
	"fmt"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// shownQuorum is what is shown of a quorum's lock.
type shownQuorum struct {
	Quorum  int         `json:"quorum,omitempty"`  // servers of the quorum that the hold is of
	Part    bool        `json:"part,omitempty"`    // the page knows a part of these servers alone
	Unknown string      `json:"unknown,omitempty"` // why nobody can say who has the lock
	Servers []shownPart `json:"servers,omitempty"` // what each says
}

// shownPart is what one server says of a lock.
type shownPart struct {
	Server    string       `json:"server"`
	Home      bool         `json:"home,omitempty"` // clients wait there
	Holder    *shownHolder `json:"holder,omitempty"`
	Rest      bool         `json:"rest,omitempty"` // of a hold without a majority
	TTL       milliseconds `json:"ttl_ms"`
	NeverEnds bool         `json:"never_ends,omitempty"`
	Token     int64        `json:"token,omitempty"`
	Waiting   int          `json:"waiting_clients,omitempty"`
	Other     string       `json:"other,omitempty"`
	Error     string       `json:"error,omitempty"`
	Why       string       `json:"does_not_count,omitempty"`
}

func newQuorum(s *survey, l inspect.Lock) shownQuorum {
	q := shownQuorum{Quorum: l.Quorum, Part: l.IsPart(), Unknown: l.Unknown}
	for i, p := range l.Servers {
		shown := shownPart{
			Server: p.Server, Home: p.Home, TTL: milliseconds(max(p.Lock.TTL, 0)), NeverEnds: p.Lock.TTL == inspect.NoExpiry,
			Token: p.Lock.Token, Waiting: p.Lock.Waiting, Other: p.Lock.Other,
		}
		if p.Err != nil {
			shown.Error = plain.Reason(p.Err)
		}
		if h := p.Lock.Holder; h != nil {
			shown.Holder = newHolder(s, h)
			shown.Rest = l.Unknown == "" && (l.Holder == nil || l.Holder.Field != h.Field)
		}
		if i < len(s.servers) && !s.servers[i].Counts {
			shown.Why = s.servers[i].Why
		}
		q.Servers = append(q.Servers, shown)
	}
	return q
}

// OnText says on how many servers the hold is, where that is not all.
func (q shownQuorum) OnText() string {
	have := 0
	for _, p := range q.Servers {
		if p.Holder != nil && !p.Rest {
			have++
		}
	}
	switch {
	case q.Part:
		return fmt.Sprintf("a part, of a quorum of %d servers", q.Quorum)
	case have < len(q.Servers):
		return fmt.Sprintf("on %d of %d servers", have, len(q.Servers))
	}
	return ""
}

// PartText says what a page cannot do that knows a part of the servers.
func (q shownQuorum) PartText() string {
	return fmt.Sprintf("This is a part: the lock is of a quorum of %d servers, and this page knows %d of them. Who has it, the majority says, and to free it here would release nothing. Give the page all servers.",
		q.Quorum, max(len(q.Servers), 1))
}

// awayServers says which servers of a quorum do not count, and what that means where they are too many.
func (s *survey) awayServers() (nobody string, all []string) {
	n := len(s.servers)
	for _, server := range s.servers {
		switch {
		case server.Counts && server.Why != "":
			all = append(all, fmt.Sprintf("Server %s: %s.", plain.Name(server.Name), server.Why))
		case !server.Counts:
			n--
			all = append(all, fmt.Sprintf("Server %s does not count: %s.", plain.Name(server.Name), server.Why))
		}
	}
	return plain.Nobody(n, len(s.servers)), all
}
