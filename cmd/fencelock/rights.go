package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/pubsub"
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
	if err != nil && r.line[0] == "PUBSUB" && strings.HasPrefix(r.line[1].(string), "SHARD") && !t.sharded && !redis.HasErrorPrefix(err, "NOPERM") {
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

// gaps are what is missing.
type gaps struct {
	denied, lacked words // to the user; by the server, or a proxy in front of it
	other          error // the first error that says neither
}

// words are what is missing for each need, in the order in which it was found.
type words struct {
	needs []string
	of    map[string][]string
}

func (w *words) add(need, word string) {
	if w.of == nil {
		w.of = map[string][]string{}
	}
	if w.of[need] == nil {
		w.needs = append(w.needs, need)
	}
	if !slices.Contains(w.of[need], word) {
		w.of[need] = append(w.of[need], word)
	}
}

func (g *gaps) has(need string) bool { return g.denied.of[need] != nil || g.lacked.of[need] != nil }

// found notes what became of a right that was tried.
func (g *gaps) found(r right, err error) {
	switch {
	case err == nil || err == redis.Nil:
	case redis.HasErrorPrefix(err, "NOPERM"):
		g.denied.add(r.need, r.word(err))
	case pubsub.Lacks(err):
		g.lacked.add(r.need, r.line[0].(string))
	case g.other == nil:
		g.other = err
	}
}

// examineRights tries what these kinds need, on names that nobody uses: base, and an ending. Where the user may do what a kind needs, it is
// done once.
func (d *doctor) examineRights(ctx context.Context, at *connection, kinds []kind, base string) {
	t := d.newTrial(ctx, at, base)
	var missing gaps
	tidy := func() { d.tidy(context.WithoutCancel(ctx), t) }
	defer tidy()
	for _, k := range kinds {
		for _, r := range k.rights(t) {
			missing.found(r, d.attempt(ctx, t, r))
		}
	}
	say := func(w words, check, who string) {
		for _, need := range w.needs {
			result := warning
			if slices.ContainsFunc(kinds, func(k kind) bool { return k.core == need && k.serious }) {
				result = wrong
			}
			d.note(result, check, "%s %s, for %s", who, strings.Join(w.of[need], " "), need)
		}
	}
	say(missing.denied, "rights", "the user lacks")
	say(missing.lacked, "commands", "the server, or a proxy in front of it, does not have")
	if missing.other != nil {
		d.note(wrong, "commands", "%v", missing.other)
	}
	if missing.denied.needs == nil && missing.lacked.needs == nil && missing.other == nil {
		d.note(fine, "rights", "all commands that %s need", coresOf(kinds))
	}
	tidy()
	for _, k := range kinds {
		if k.try == nil || missing.denied.of[k.core] != nil {
			continue
		}
		began := time.Now()
		said, err := k.try(ctx, d.rdb, t)
		if err != nil {
			d.note(wrong, k.name, "%v", err)
			continue
		}
		d.note(fine, k.name, "%s in %v", said, time.Since(began).Round(10*time.Microsecond))
		if k.core == needLock {
			d.examineHandoff(ctx, t, !missing.has(needLine) && !missing.has(needMessages))
		}
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
