package quorums

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// A Change replaces servers of a quorum, one generation after the other, while its locks are in use.
type Change struct {
	Servers map[string]redis.UniversalClient // by the names that they have in the clients: those of now, as far as there are any, and the new ones
	Now, To []string                         // which of them clients have now, and which they are to have
	Longest time.Duration                    // the longest lease
	Tell    func(text string)                // is called before each step

	records map[string]string // that the servers have; only of those that are up
}

// errNoRecord says that the clients of a quorum are not ready for a change.
var errNoRecord = errors.New("no server has a record of the members: a client writes one when it has worked with all of them for some seconds; one of an older version does not, and would not notice a change")

// errChanged says that there is another generation than this change is about to write.
var errChanged = errors.New("somebody else has changed the members meanwhile: see what they are now")

// Read asks the servers for their records, and returns the newest one of those that clients have now. away has why servers do not answer.
func (c *Change) Read(ctx context.Context) (newest Members, away map[string]error, err error) {
	c.records, away = map[string]string{}, map[string]error{}
	for name, rdb := range c.Servers {
		text, err := rdb.Get(ctx, MembersKey).Result()
		if err != nil && err != redis.Nil {
			away[name] = err
			continue
		}
		c.records[name] = text
	}
	var told []string
	for _, name := range c.Now {
		if text := c.records[name]; text != "" {
			if _, err := ParseMembers(text); err != nil {
				return newest, away, fmt.Errorf("%s: %w", name, err)
			}
			told = append(told, text)
		}
	}
	switch newest = Newest(told...); {
	case len(c.records) == 0:
		return newest, away, fmt.Errorf("no server answers: %s: %w", c.Now[0], away[c.Now[0]])
	case newest.Generation == 0:
		return newest, away, errNoRecord
	}
	return newest, away, nil
}

// Run changes the servers. Where it ends with an error, or its process dies, it is run again: what it has done holds. Before each generation but the first one
// after the clients' own, all holds have run out that rest on a majority of two generations before. So there are never two majorities without a server
// in common.
func (c *Change) Run(ctx context.Context) error {
	at, away, err := c.Read(ctx)
	if err != nil {
		return err
	}
	if err := c.check(ctx, at); err != nil {
		return err
	}
	up := slices.DeleteFunc(slices.Clone(c.Now), func(name string) bool { return away[name] != nil })
	way, err := at.Way(up, c.To)
	if err != nil {
		return err
	}
	first := max(at.Generation+1, int(time.Now().Unix())) // later than what an earlier change has left on a server that is away, or in a client's memory
	for i := range way {
		way[i].Generation = first + i
	}
	if err := c.meet(ctx, at); err != nil {
		return err
	}
	if at.Generation > 1 { // it may have been written a moment ago, and not to all
		if err := c.write(ctx, at, at); err != nil {
			return err
		}
	}
	for _, next := range way {
		if at.Generation > 1 {
			c.Tell(fmt.Sprintf("waiting %v, until no hold rests on the members before", Delay(c.Longest)))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(Delay(c.Longest)):
			}
		}
		if err := c.write(ctx, at, next); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// check returns an error where two names are one server, or where one is of another quorum.
func (c *Change) check(ctx context.Context, at Members) error {
	runs := map[string]string{}
	for _, name := range slices.Concat(c.Now, c.To) {
		info, err := c.Servers[name].Info(ctx, "server").Result()
		if err != nil {
			continue // it is away, which write finds out
		}
		_, run, _ := strings.Cut(info, "run_id:")
		run, _, _ = strings.Cut(run, "\r\n")
		if other := runs[run]; other != "" && other != name && run != "" {
			return fmt.Errorf("%s and %s are one server", other, name)
		}
		runs[run] = name
	}
	for _, name := range c.Now {
		if has, err := ParseMembers(c.records[name]); err == nil && !has.Out && has.common(at.Names) == 0 {
			return fmt.Errorf("%s is of another quorum, of %s, than of %s: one of the servers of now is a wrong one", name, strings.Join(has.Names, ", "), strings.Join(at.Names, ", "))
		}
	}
	for _, name := range c.To {
		has, err := ParseMembers(c.records[name])
		if err == nil && !at.Has(name) && !has.Out && has.common(at.Names) < at.Majority() {
			return fmt.Errorf("%s is a server of another quorum, of %s: where that is gone, DEL %s there", name, strings.Join(has.Names, ", "), MembersKey)
		}
	}
	return nil
}

// meet tells the servers that come who the members are, so that clients which have them know it, and ends where one of them does not take that.
func (c *Change) meet(ctx context.Context, at Members) error {
	at.Out = true
	for _, name := range c.To {
		if at.Has(name) {
			continue
		}
		if err := c.writeOn(ctx, name, at, at); err != nil {
			return fmt.Errorf("%s: %w: all servers that come have to be up for a change, which has not begun", name, err)
		}
	}
	return nil
}

// write writes the generation m, which follows at, on all its members, and, as far as they are up, on the others. Those that stay come first: of two changes
// that write the same generation at once one ends with an error there, and a change that fails there has told no new server of a generation that may never be.
func (c *Change) write(ctx context.Context, at, m Members) error {
	c.Tell(fmt.Sprintf("generation %d: a majority of %d, of %s", m.Generation, m.Size, strings.Join(m.Names, ", ")))
	order := slices.Clone(m.Names)
	slices.SortStableFunc(order, func(a, b string) int {
		switch {
		case at.Has(a) == at.Has(b):
			return 0
		case at.Has(a):
			return -1
		}
		return 1
	})
	left := m
	left.Out = true
	steps := make([]step, 0, len(order))
	for _, name := range order {
		steps = append(steps, step{name, m})
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(at.Names, c.Now)))) {
		if has, _ := ParseMembers(c.records[name]); !m.Has(name) && (at.Has(name) || has.common(at.Names) > 0) { // others were no members
			steps = append(steps, step{name, left})
		}
	}
	for _, s := range steps { // before anything is written
		if _, err := c.before(ctx, s.name, at, s.record); err != nil && (slices.Contains(c.To, s.name) || errors.Is(err, errChanged)) {
			return cmp.Or(ctx.Err(), failed(s.name, err))
		}
	}
	for _, s := range steps {
		switch err := c.writeOn(ctx, s.name, at, s.record); {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case slices.Contains(c.To, s.name), errors.Is(err, errChanged):
			return failed(s.name, err)
		default:
			c.Tell(fmt.Sprintf("%s is away, and does not know that it is a member no more: let it not come back (%v)", s.name, err))
		}
	}
	return nil
}

// A step writes a record on one server.
type step struct {
	name   string
	record Members
}

// failed is the error of a change that one of the servers has ended.
func failed(name string, err error) error {
	if errors.Is(err, errChanged) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %w: all servers that stay or come have to be up for a change. Run it again when it is: what is done holds", name, err)
}

// before returns the record that one server has. It is an error where that is newer than at, and not m.
func (c *Change) before(ctx context.Context, name string, at, m Members) (string, error) {
	rdb := c.Servers[name]
	if rdb == nil {
		return "", errors.New("its URL was not given")
	}
	text, err := rdb.Get(ctx, MembersKey).Result()
	if err != nil && err != redis.Nil {
		return "", err
	}
	has, wrong := ParseMembers(text)
	if wrong == nil && has.Generation > 1 && has.Compare(at) > 0 && has.Compare(m) != 0 && has.common(m.Names) > 0 { // first generations are of clients, and give way
		return "", fmt.Errorf("%w: %s", errChanged, text)
	}
	return text, nil
}

// writeOn writes a record on one server, unless the server has got it from a client by now.
func (c *Change) writeOn(ctx context.Context, name string, at, m Members) error {
	for {
		before, err := c.before(ctx, name, at, m)
		if err != nil || before == m.String() {
			return err
		}
		if done, err := scripts.New(c.Servers[name]).SetMembers(ctx, MembersKey, before, m.String()); done || err != nil {
			return err
		}
	}
}

// Record is what a server has said to Read; "" for nothing.
func (c *Change) Record(name string) string { return c.records[name] }
