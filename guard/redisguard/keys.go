package redisguard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tagged is the resource as a part of a key, so that the key has the resource's hash tag.
func tagged(resource string) string {
	if strings.Contains(resource, "{") {
		return resource
	}
	return "{" + resource + "}"
}

func markerOf(resource string) string { return "fencelock_guard:" + tagged(resource) }

// onceOf is where the reply to an operation is remembered. The length tells where the resource ends and the id begins.
func onceOf(resource, id string) string {
	name := tagged(resource) // the same for the names of one marker
	return "fencelock_once:" + strconv.Itoa(len(name)) + ":" + name + ":" + id
}

// hashTag is the part of a key that decides its slot (Redis Cluster specification, "Hash tags").
func hashTag(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}

// checkSlot tells whether the keys are in the slot of the resource's marker, by their hash tags: two tags can have one
// slot, but by chance only.
func checkSlot(resource string, keys []string) error {
	marker := markerOf(resource)
	tag := hashTag(marker)
	if tag != hashTag(resource) || tag == marker {
		return fmt.Errorf("no other key can be in the slot of the marker %q: name the resource without braces, or with one pair around a part that is not empty", marker)
	}
	for _, key := range keys {
		if hashTag(key) != tag {
			return fmt.Errorf("key %q is not in the slot of the marker %q: put {%s} into the key's name", key, marker, tag)
		}
	}
	return nil
}

// A place is where a command, or one of its subcommands, has its keys.
type place struct {
	first, last, step int64 // as COMMAND says it; no first: there are none
	movable           bool
	sub               map[string]place
}

// keysOf returns the keys of a command. It asks the server once where commands have theirs, and about each use of a
// command that has them at changing places.
func (g *Guard) keysOf(ctx context.Context, command []any) ([]string, error) {
	places, err := g.placesOf(ctx)
	if err != nil {
		return nil, err
	}
	p := places[strings.ToLower(text(command[0]))] // none: the server says that it does not know the command
	if len(p.sub) > 0 && len(command) > 1 {
		p = p.sub[strings.ToLower(text(command[1]))]
	}
	if p.movable {
		return g.askKeys(ctx, command)
	}
	if p.first < 1 || p.step < 1 {
		return nil, nil
	}
	if p.last < 0 {
		p.last += int64(len(command))
	}
	var keys []string
	for i := p.first; i <= p.last && i < int64(len(command)); i += p.step {
		keys = append(keys, text(command[i]))
	}
	return keys, nil
}

func (g *Guard) placesOf(ctx context.Context) (map[string]place, error) {
	if places := g.places.Load(); places != nil {
		return *places, nil
	}
	reply, err := g.rdb.Do(ctx, "command").Slice() // more than one may ask: nobody waits beyond a context of its own
	if err != nil {
		return nil, fmt.Errorf("asking for the keys of commands: %w", err)
	}
	places := map[string]place{}
	if err := addPlaces(places, reply); err != nil {
		return nil, fmt.Errorf("asking for the keys of commands: %w", err)
	}
	g.places.Store(&places)
	return places, nil
}

// addPlaces reads what COMMAND says of commands: name, arity, flags, first, last, step, and from Redis 7 on, as the tenth, a
// list of subcommands, whose names have that of the command before them.
func addPlaces(places map[string]place, commands []any) error {
	for _, c := range commands {
		entry, ok := c.([]any)
		if !ok || len(entry) < 6 {
			return fmt.Errorf("%w: %v", errReply, c)
		}
		name, _ := entry[0].(string)
		flags, _ := entry[2].([]any)
		p := place{movable: slices.Contains(flags, any("movablekeys")), sub: map[string]place{}}
		var given [3]bool
		p.first, given[0] = entry[3].(int64)
		p.last, given[1] = entry[4].(int64)
		p.step, given[2] = entry[5].(int64)
		if name == "" || given != [3]bool{true, true, true} {
			return fmt.Errorf("%w: %v", errReply, c)
		}
		if len(entry) > 9 {
			subcommands, _ := entry[9].([]any)
			if err := addPlaces(p.sub, subcommands); err != nil {
				return err
			}
		}
		_, own, found := strings.Cut(strings.ToLower(name), "|")
		if !found {
			own = strings.ToLower(name)
		}
		places[own] = p
	}
	return nil
}

// askKeys asks the server for the keys of this command.
func (g *Guard) askKeys(ctx context.Context, command []any) ([]string, error) {
	keys, err := g.rdb.CommandGetKeys(ctx, command...).Result()
	if err != nil && strings.Contains(err.Error(), "no key arguments") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the keys of %v: %w", command[0], err)
	}
	return keys, nil
}

// name is a command's name. Other types than these could be sent as another text than the one that is looked at here.
func name(arg any) (string, error) {
	switch arg := arg.(type) {
	case string:
		return arg, nil
	case []byte:
		return string(arg), nil
	}
	return "", fmt.Errorf("the command's name is a %T: pass a string", arg)
}

// text is an argument as go-redis sends it, if that is a key.
func text(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case *string:
		if arg != nil {
			return *arg
		}
		return ""
	case []byte:
		return string(arg)
	}
	return fmt.Sprint(arg)
}
