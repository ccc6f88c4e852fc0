package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

func newForceUnlock(at *connection) *cobra.Command {
	var of string
	var yes bool
	cmd := &cobra.Command{
		Use:   "force-unlock NAME",
		Short: "Release the hold of whoever has this lock",
		Long: `force-unlock shows who has a lock, asks, and releases that hold and no other. The former holder may be in the middle of its
work: its context ends, "fencelock run" stops its command, and guards refuse its writes as soon as the next holder has written.

Without a terminal it needs --holder, with what "ls -o wide" and "show" name, or --yes, for whoever has it now.
It says that the lock is released, or what it has found instead: the exit code is 1 where the lock was free, or another one's by then.`,
		Example: `  fencelock force-unlock account:42
  fencelock force-unlock account:42 --holder 7c53c7a2-3a7e-4c11-8d70-9d52b6f0a0c5:3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := isTerminal(os.Stdin) && of == "" && !yes
			if !ask && of == "" && !yes {
				return usage("without a terminal say whose hold it is with --holder, or --yes for whoever has it now")
			}
			return at.with(func(v *viewer) error {
				locks, err := v.Look(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				l := locks[0]
				if err := v.mayFree(cmd.Context(), l); err != nil {
					return err
				}
				if of != "" && l.Holder.Field != of {
					return fails("%s is held by %s, and not by %s: nothing was released", plain.Name(l.Name), plain.Name(l.Holder.Field), plain.Name(of))
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is held by %s\n", plain.Name(l.Name), holder(l.Holder))
				if ask {
					fmt.Fprint(cmd.ErrOrStderr(), "Its holder may be in the middle of its work. Release it? [y/N] ")
					answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
					if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
						return fails("nothing was released")
					}
				}
				said, err := v.free(cmd.Context(), l)
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&of, "holder", "", "release only this holder's hold")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// mayFree returns an error for what force-unlock has nothing to release, or must not.
func (v *viewer) mayFree(ctx context.Context, l inspect.Lock) error {
	switch {
	case l.Other != "":
		return fails("%s is no lock of this kind, but %s: release it with the program that made it", plain.Name(l.Name), plain.Name(l.Other))
	case l.Holder == nil:
		return fails("%s is free", plain.Name(l.Name))
	}
	queue := "redisson_lock_queue:{" + l.Name + "}"
	if strings.Contains(l.Name, "{") {
		queue = "redisson_lock_queue:" + l.Name
	}
	if n, err := v.rdb.Exists(ctx, queue).Result(); err == nil && n > 0 {
		return fails("%s is a fair lock of Redisson's, whose waiters would not hear of it: release it with the program that made it", plain.Name(l.Name))
	}
	return nil
}

// free releases the hold that was shown, and says so, or returns as an error what it has found instead.
func (v *viewer) free(ctx context.Context, l inspect.Lock) (string, error) {
	freed, err := v.Free(ctx, l)
	if err != nil {
		return "", err
	}
	if freed {
		return plain.Name(l.Name) + " is released", nil
	}
	locks, err := v.Look(ctx, l.Name)
	switch {
	case err != nil:
		return "", fails("the hold of %s was over by then, and nothing was released: %w", plain.Name(l.Name), err)
	case locks[0].Holder == nil:
		return "", fails("%s is free by now: nothing was released", plain.Name(l.Name))
	}
	return "", fails("%s is held by %s by now: nothing was released", plain.Name(l.Name), holder(locks[0].Holder))
}

// holder is who has a lock, as --holder takes it too.
func holder(h *inspect.Holder) string {
	return fmt.Sprintf("%s (%s)", process(h.By, h.Client), plain.Name(h.Field))
}

// fails is the error of a command that did not do what it was asked for.
func fails(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}
