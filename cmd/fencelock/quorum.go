package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// quorumRow is what JSON has of a quorum's lock.
type quorumRow struct {
	Quorum  int       `json:"quorum,omitempty"`  // servers of the quorum that the hold is of
	Unknown string    `json:"unknown,omitempty"` // why nobody can say who has the lock
	Servers []partRow `json:"servers,omitempty"` // what each says, of those that were asked
}

// partRow is what one server says of a lock.
type partRow struct {
	Server  string  `json:"server"`
	Home    bool    `json:"home,omitempty"`
	Holder  string  `json:"holder,omitempty"`
	TTL     seconds `json:"ttl"`
	Token   int64   `json:"token"`
	Waiting int     `json:"waiting"`
	Other   string  `json:"not,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// inspector returns one on all these servers.
func (c *connection) inspector(all []redis.UniversalClient) (*inspect.Inspector, error) {
	if len(all) == 1 {
		return inspect.New(all[0])
	}
	return inspect.NewQuorum(all, inspect.WithMaxLease(time.Duration(c.maxLease)))
}

func quorumOf(l inspect.Lock) quorumRow {
	q := quorumRow{Quorum: l.Quorum, Unknown: l.Unknown}
	for _, p := range l.Servers {
		row := partRow{Server: p.Server, Home: p.Home, TTL: inSeconds(p.Lock.TTL), Token: p.Lock.Token, Waiting: p.Lock.Waiting, Other: p.Lock.Other}
		if p.Lock.Holder != nil {
			row.Holder = p.Lock.Holder.Field
		}
		if p.Err != nil {
			row.Error = plain.Reason(p.Err)
		}
		q.Servers = append(q.Servers, row)
	}
	return q
}

// leftOn is how many servers have a hold of a quorum's lock that nobody has a majority of.
func leftOn(l inspect.Lock) (n int) {
	for _, p := range l.Servers {
		if l.Holder == nil && p.Lock.Holder != nil && p.Lock.Quorum > 0 {
			n++
		}
	}
	return n
}

// byMajority is what is said of a lock, with how many servers of its quorum say so.
func byMajority(l inspect.Lock, text string) string {
	switch n := leftOn(l); {
	case l.Unknown != "":
		return "(unknown: " + plain.Name(l.Unknown) + ")"
	case l.IsPart():
		return fmt.Sprintf("%s (a part, of a quorum of %d servers)", text, l.Quorum)
	case l.Holder != nil && len(l.Servers) > 0:
		have := 0
		for _, p := range l.Servers {
			if p.Lock.Holder != nil && p.Lock.Holder.Field == l.Holder.Field {
				have++
			}
		}
		if have < len(l.Servers) {
			return fmt.Sprintf("%s (on %d of %d servers)", text, have, len(l.Servers))
		}
	case n > 0:
		return fmt.Sprintf("%s (a rest on %d of %d servers)", text, n, len(l.Servers))
	}
	return text
}

// onThese says on which servers, where they are a part of a quorum's.
func onThese(n int) string {
	if n > 1 {
		return fmt.Sprintf("on these %d servers", n)
	}
	return "on this server"
}

// isPart says why force-unlock releases nothing of a quorum that has more servers.
func (v *viewer) isPart(l inspect.Lock) string {
	state := "free"
	if l.Holder != nil {
		state = "held by " + holder(l.Holder)
	}
	return fmt.Sprintf("%s is %s %s, and of a quorum of %d: nothing was released, as the others keep the hold. Give the URLs of all, by --url or --urls-file; --this-server-only releases it here alone",
		plain.Name(l.Name), state, onThese(len(v.all)), l.Quorum)
}

// A jury is what is said of a quorum's servers: nothing for one Redis.
type jury struct {
	nobody string   // why nobody gets a lock, "" where somebody may
	notes  []string // of those that do not count, and of those of which nobody sees whether they do
	count  string   // how many count, where not all do
}

// judge asks the servers of a quorum whether they count.
func (v *viewer) judge(ctx context.Context) (j jury) {
	all, _ := v.Servers(ctx)
	n := 0
	for _, s := range all {
		switch {
		case !s.Counts:
			j.notes = append(j.notes, fmt.Sprintf("server %s does not count: %s", plain.Name(s.Name), plain.Line(s.Why)))
			continue
		case s.Why != "":
			j.notes = append(j.notes, fmt.Sprintf("server %s: %s", plain.Name(s.Name), plain.Line(s.Why)))
		}
		n++
	}
	j.nobody = plain.Nobody(n, len(all))
	if n < len(all) {
		j.count = fmt.Sprintf(", %d of them count", n)
	}
	return j
}

// noteServers says on the standard error which servers of a quorum do not count, and why. It returns the exit code where nobody gets a lock.
func (v *viewer) noteServers(cmd *cobra.Command) error {
	j := v.judge(cmd.Context())
	if j.nobody != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "fencelock: %s\n", j.nobody)
	}
	for _, note := range j.notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "fencelock: %s\n", note)
	}
	return j.exit()
}

// exit is the exit code where nobody gets a lock.
func (j *jury) exit() error {
	if j.nobody == "" {
		return nil
	}
	return &exitError{code: exitFailed}
}

// serverRows say what each server of a quorum says of the lock.
func (d *details) serverRows() (rows [][]string) {
	for i, p := range d.lock.Servers {
		var text string
		switch h := p.Lock.Holder; {
		case p.Err != nil:
			text = "says nothing: " + plain.Line(plain.Reason(p.Err))
		case p.Lock.Other != "":
			text = "no lock: " + plain.Name(p.Lock.Other)
		case h == nil:
			text = "free"
		case d.lock.Holder != nil && h.Field == d.lock.Holder.Field:
			text = "has it, lease ends in " + left(p.Lock.TTL)
		default:
			text = fmt.Sprintf("has a rest of %s, lease ends in %s", holder(h), left(p.Lock.TTL))
		}
		if p.Home {
			text += "; home of the line"
		}
		if i < len(d.Judged) && p.Err == nil && !d.Judged[i].Counts {
			text += "; does not count: " + plain.Line(d.Judged[i].Why)
		}
		rows = append(rows, []string{"Server " + plain.Name(p.Server), text})
	}
	return rows
}
