package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// holdVariable has the text of a hold where no argument says another.
const holdVariable = "FENCELOCK_HOLD"

// holdHelp is the end of the help of extend and release.
const holdHelp = `

The text is TEXT, or with - is read from the standard input, or is in the variable ` + holdVariable + `: all users of a machine see the arguments
of a command. Of several words the text is the first: what "acquire --token" prints will do.

Exit codes:
  0     it is done
  64    wrong usage, or the text is not one
  124   the hold is gone: it was released, imported or forced open, or its lease ran out. Nothing was done
  125   fencelock failed, for example because Redis did not answer
`

// holdPatience is for how long a silent Redis is asked again, as by a program (rlock.WithPatience).
const holdPatience = 10 * time.Second

// A leftHold is a hold that somebody has exported.
type leftHold struct {
	rdb   redis.UniversalClient
	keys  *scripts.Keys
	field string
}

func newExtend(at *connection) *cobra.Command {
	var lease duration
	cmd := &cobra.Command{
		Use:   "extend [TEXT] --lease DURATION",
		Short: "Make the lease of a hold that acquire has left last so long from now",
		Long: `extend makes the lease of the hold that "fencelock acquire" has left last so long from now. It never makes it shorter. The text stays
good, and so does the token.` + holdHelp,
		Example: `  fencelock acquire restore --lease 5m > hold
  for part in parts/*; do
    fencelock extend --lease 5m - < hold && ./restore "$part" || break
  done
  fencelock release - < hold`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLease(cmd.Flags(), lease); err != nil {
				return err
			}
			return at.withHold(cmd, args, func(ctx context.Context, h leftHold) (there bool, err error) {
				return h.extend(ctx, time.Duration(lease))
			})
		},
	}
	takesHold(cmd)
	cmd.Flags().Var(&lease, "lease", "how long the lock stays taken from now on")
	return cmd
}

func newRelease(at *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release [TEXT]",
		Short: "Release a hold that acquire has left",
		Long: `release releases the hold that "fencelock acquire" has left, and no other, and calls who waits for the lock. Where the text is of a program
that has the hold still, that program loses it at once.` + holdHelp,
		Example: `  fencelock release - < hold
  FENCELOCK_HOLD=$text fencelock release`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.withHold(cmd, args, func(ctx context.Context, h leftHold) (there bool, err error) { return h.release(ctx) })
		},
	}
	takesHold(cmd)
	return cmd
}

// takesHold says which arguments the command takes.
func takesHold(cmd *cobra.Command) {
	cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), cobra.NoFileCompletions
}

// withHold does something with the hold whose text the command was given. there: Redis has had the hold.
func (c *connection) withHold(cmd *cobra.Command, args []string, do func(ctx context.Context, h leftHold) (there bool, err error)) error {
	text, err := holdText(cmd.InOrStdin(), args)
	if err != nil {
		return err
	}
	exported, err := engine.ParseExported(text)
	if err != nil {
		return usage("%w", err)
	}
	rdb, err := c.open()
	if err != nil {
		return err
	}
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), holdPatience)
	defer cancel()
	name := plain.Name(exported.Lock)
	there, err := do(ctx, leftHold{rdb, exported.Keys(), exported.Field})
	switch {
	case err != nil && !scripts.OtherType(err):
		return &exitError{exitTrouble, fmt.Errorf("%s: %w", name, c.explained(cmd.Context(), err))}
	case !there:
		return &exitError{exitLost, fmt.Errorf("the hold of %s is gone: it was released, imported or forced open, or its lease ran out", name)}
	}
	return nil
}

// holdText is what the command was given as the text of a hold.
func holdText(stdin io.Reader, args []string) (string, error) {
	text := os.Getenv(holdVariable)
	if len(args) > 0 {
		text = args[0]
	}
	if text == "-" {
		all, err := io.ReadAll(io.LimitReader(stdin, 1<<20))
		if err != nil {
			return "", usage("the text cannot be read: %w", err)
		}
		text = string(all)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", usage("there is no text of a hold: give what fencelock acquire has printed, as an argument, in %s, or with - on the standard input", holdVariable)
	}
	return words[0], nil
}

func (h leftHold) extend(ctx context.Context, lease time.Duration) (there bool, err error) {
	s := scripts.New(h.rdb)
	there, _, err = command.Repeat(ctx, holdPatience/3, func(ctx context.Context) (bool, error) {
		renewals := []scripts.Renewal{{Keys: h.keys, Field: h.field, Lease: lease}}
		s.Renew(ctx, renewals)
		if err := renewals[0].Err; !errors.Is(err, scripts.ErrGone) {
			return true, err
		}
		return false, nil
	})
	return there && err == nil, err
}

func (h leftHold) release(ctx context.Context) (there bool, err error) {
	s, bus := scripts.New(h.rdb), pubsub.New(h.rdb, pubsub.Auto, slog.New(slog.DiscardHandler))
	defer bus.Close()
	answer, maybeExecuted, err := command.Repeat(ctx, holdPatience/3, func(ctx context.Context) (scripts.Answer, error) {
		return s.Do(ctx, scripts.Unlock(h.keys, h.field, bus.Sharded(ctx)).Calling("", scripts.NotTheHolder))
	})
	return answer.Held || maybeExecuted || answer.Copies > 0, err
}
