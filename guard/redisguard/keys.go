package redisguard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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

// keysOf returns the keys of a command. It asks the server once where commands have theirs, and about each use of a
// command that has them at changing places.
func (g *Guard) keysOf(ctx context.Context, command []any) ([]string, error) {
	commands, err := g.commandsOf(ctx)
	if err != nil {
		return nil, err
	}
	info := commands[strings.ToLower(text(command[0]))]
	if info == nil || len(command) == 1 {
		return nil, nil // the server says so if it does not know it
	}
	if slices.Contains(info.Flags, "movablekeys") || info.FirstKeyPos < 1 || info.StepCount < 1 {
		return g.askKeys(ctx, command)
	}
	first, last, step := int(info.FirstKeyPos), int(info.LastKeyPos), int(info.StepCount)
	if last < 0 {
		last += len(command)
	}
	var keys []string
	for i := first; i <= last && i < len(command); i += step {
		keys = append(keys, text(command[i]))
	}
	return keys, nil
}

func (g *Guard) commandsOf(ctx context.Context) (map[string]*redis.CommandInfo, error) {
	if commands := g.commands.Load(); commands != nil {
		return *commands, nil
	}
	commands, err := g.rdb.Command(ctx).Result() // more than one may ask: nobody waits beyond a context of its own
	if err != nil {
		return nil, fmt.Errorf("asking for the keys of commands: %w", err)
	}
	g.commands.Store(&commands)
	return commands, nil
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

// text is a command's name or key as go-redis sends it.
func text(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case []byte:
		return string(arg)
	}
	return fmt.Sprint(arg)
}
