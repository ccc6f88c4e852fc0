package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
)

// with runs do, of a command that shows or frees locks.
func (c *connection) with(do func(v *viewer) error) error {
	v, err := c.view()
	if err != nil {
		return err
	}
	defer v.close()
	err = do(v)
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	said := c.explained(context.Background(), err)
	if c.away(err) == "" && !strings.HasPrefix(said.Error(), c.host()+" ") {
		said = fmt.Errorf("%s: %w", c.shown(), said)
	}
	return &exitError{exitFailed, said}
}

// completeTimeout bounds the time that somebody waits for after the tab key.
const completeTimeout = 200 * time.Millisecond

// completeNames completes the names of locks, as far as clients with presence say them.
func (c *connection) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() != "ls" { // one name
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		var names []string
		defer func() { found <- names }()
		v, err := c.view()
		if err != nil {
			return
		}
		defer v.close()
		clients, err := v.Clients(ctx)
		if err != nil {
			return
		}
		for _, client := range clients {
			for _, h := range client.Holds {
				names = append(names, h.Lock)
				if h.Semaphore != "" {
					names = append(names, h.Semaphore)
				}
			}
			for _, w := range client.Waits {
				names = append(names, cmp.Or(w.Semaphore, w.Lock))
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool { return plain.Name(name) != name }) // nobody types them so
	}()
	select {
	case names := <-found:
		return names, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRun completes the lock's name, and leaves the command to the shell.
func (c *connection) completeRun(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return c.completeNames(cmd, args, begun)
}
