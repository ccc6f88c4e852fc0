package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A right is a command that is tried.
type right struct {
	line []any
	need string // what is missing without it
	on   string // the words of ACL SETUSER for its key or its channel
}

// attempt does what the right is about, and returns the error that the server has for it.
func (d *doctor) attempt(ctx context.Context, t *trial, r right) error {
	switch r.line[0] {
	case "SUBSCRIBE", "SSUBSCRIBE":
		return d.listen(ctx, t.sharded, true, r.line[1].(string))
	case "UNSUBSCRIBE", "SUNSUBSCRIBE":
		return d.listen(ctx, t.sharded, false, r.line[1].(string))
	}
	err := d.rdb.Do(ctx, r.line...).Err()
	if err != nil && r.line[0] == "PUBSUB" && !t.sharded && !redis.HasErrorPrefix(err, "NOPERM") {
		return nil // a server of before Redis 7, which has no sharded channels
	}
	return err
}

// word is what ACL SETUSER would need to allow what was refused with err.
func (r right) word(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "permissions to run"):
	case strings.Contains(text, " key"), strings.Contains(text, " channel"):
		return r.on
	}
	word := "+" + strings.ToLower(r.line[0].(string))
	if container := slices.Contains([]any{"PUBSUB", "CLUSTER", "CONFIG"}, r.line[0]); container {
		word += "|" + strings.ToLower(r.line[1].(string))
	}
	return word
}

// gaps are the words that are missing, for each need in the order in which it was found.
type gaps struct {
	needs []string
	words map[string][]string
	other error // the first error that was no refusal
}

// found notes what became of a right that was tried.
func (g *gaps) found(r right, err error) {
	switch {
	case err == nil || err == redis.Nil:
	case !redis.HasErrorPrefix(err, "NOPERM"):
		if g.other == nil {
			g.other = err
		}
	default:
		if g.words[r.need] == nil {
			g.needs = append(g.needs, r.need)
		}
		if word := r.word(err); !slices.Contains(g.words[r.need], word) {
			g.words[r.need] = append(g.words[r.need], word)
		}
	}
}

// examineRights tries what these kinds need, on names that nobody uses: base, and an ending. Where the user may do what a kind needs, it is
// done once.
func (d *doctor) examineRights(ctx context.Context, at *connection, kinds []kind, base string) {
	t := d.newTrial(ctx, at, base)
	missing := gaps{words: map[string][]string{}}
	tidy := func() { d.tidy(context.WithoutCancel(ctx), t) }
	defer tidy()
	for _, k := range kinds {
		for _, r := range k.rights(t) {
			missing.found(r, d.attempt(ctx, t, r))
		}
	}
	for _, need := range missing.needs {
		result := warning
		if slices.ContainsFunc(kinds, func(k kind) bool { return k.core == need && k.serious }) {
			result = wrong
		}
		d.note(result, "rights", "the user lacks %s, for %s", strings.Join(missing.words[need], " "), need)
	}
	if missing.other != nil {
		d.note(wrong, "commands", "%v", missing.other)
	}
	if len(missing.needs) == 0 && missing.other == nil {
		d.note(fine, "rights", "all commands that %s need", coresOf(kinds))
	}
	tidy()
	for _, k := range kinds {
		if k.try == nil || missing.words[k.core] != nil {
			continue
		}
		began := time.Now()
		said, err := k.try(ctx, d.rdb, t)
		if err != nil {
			d.note(wrong, k.name, "%v", err)
			continue
		}
		d.note(fine, k.name, "%s in %v", said, time.Since(began).Round(10*time.Microsecond))
	}
}

// tidy takes away what a trial leaves: by PEXPIRE, which locks need anyway, or by what else the user may do.
func (d *doctor) tidy(ctx context.Context, t *trial) {
	for _, key := range t.leaves() {
		for _, line := range [][]any{{"PEXPIRE", key, 0}, {"DEL", key}, {"HDEL", key, "f"}, {"SET", key, 0, "PX", 1, "XX"}} {
			if d.rdb.Do(ctx, line...).Err() == nil {
				break
			}
		}
	}
}

// listen subscribes to a channel, or with begin false leaves it, and returns the error that the server has for that.
func (d *doctor) listen(ctx context.Context, sharded, begin bool, channel string) error {
	subscribe, leave := d.rdb.Subscribe, (*redis.PubSub).Unsubscribe
	if sharded {
		subscribe, leave = d.rdb.SSubscribe, (*redis.PubSub).SUnsubscribe
	}
	heard := subscribe(ctx, channel)
	defer heard.Close()
	_, err := heard.ReceiveTimeout(ctx, answerTime)
	if begin {
		return err
	}
	if err := leave(heard, ctx, channel); err != nil {
		return err
	}
	_, err = heard.ReceiveTimeout(ctx, answerTime)
	return err
}

// answerTime bounds the wait for an answer on a connection for messages.
const answerTime = 5 * time.Second
