package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/scripts"
)

func newForceUnlock(at *connection) *cobra.Command {
	var of string
	var yes, partOnly bool
	cmd := &cobra.Command{
		Use:   "force-unlock NAME",
		Short: "Release the hold of whoever has this lock",
		Long: `force-unlock shows who has a lock, asks, and releases that hold and no other. The former holder may be in the middle of its
work: its context ends, "fencelock run" stops its command, and guards refuse its writes as soon as the next holder has written. Of a
read-write lock it releases the one that writes, or all that it has shown reading.

Without a terminal it needs --holder, with what "ls -o wide" and "show" name, or --yes, for whoever has it now.
It says that the lock is released, or what it has found instead: the exit code is 1 where the lock was free, or another one's by then.

A quorum's hold is released on all servers, which --url or --urls-file name: it says on how many, and which did not answer, and the exit code is 1
where no majority has confirmed it. With a part of the servers it refuses, as the others keep the hold.`,
		Example: `  fencelock force-unlock account:42
  fencelock force-unlock account:42 --holder 7c53c7a2-3a7e-4c11-8d70-9d52b6f0a0c5:3
  fencelock force-unlock '{jobs}:3'     # the permit of slot 3 of the semaphore jobs`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := isTerminal(os.Stdin) && of == "" && !yes
			if !ask && of == "" && !yes {
				return usage("without a terminal say whose hold it is with --holder, or --yes for whoever has it now")
			}
			return at.with(func(v *viewer) error {
				v.partOnly = partOnly
				v.noteServers(cmd)
				locks, err := v.Look(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				l := locks[0]
				if err := v.mayFree(cmd.Context(), l); err != nil {
					return err
				}
				if of != "" {
					l.Readers = slices.DeleteFunc(l.Readers, func(h inspect.Holder) bool { return h.Field != of })
					if l.Mode == "read" && len(l.Readers) == 1 {
						l.Holder = &l.Readers[0]
					}
				}
				if of != "" && l.Holder.Field != of {
					return fails("%s is held by %s, and not by %s: nothing was released", plain.Name(l.Name), plain.Name(l.Holder.Field), plain.Name(of))
				}
				fmt.Fprintln(cmd.ErrOrStderr(), isHeld(l))
				if ask {
					fmt.Fprint(cmd.ErrOrStderr(), "Its holder may be in the middle of its work. Release it? [y/N] ")
					answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
					if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
						return fails("nothing was released")
					}
				}
				said, err := v.free(cmd.Context(), l)
				if err != nil {
					return err
				}
				if hint := v.semaphoreHint(cmd.Context(), l); hint != "" && l.Semaphore == "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "fencelock: of the semaphore nothing was released:", hint)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&of, "holder", "", "release only this holder's hold")
	cmd.Flags().BoolVar(&partOnly, "this-server-only", false, "of a quorum's lock release what is on this server, or these, although the others keep it")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// mayFree returns an error for what force-unlock has nothing to release, or must not.
func (v *viewer) mayFree(ctx context.Context, l inspect.Lock) error {
	switch {
	case scripts.SemaphoreOf(l.Name) != "":
		return fails("%s stands for all slots of a semaphore: release one of its permits, such as %s", plain.Name(l.Name), plain.Name(scripts.PermitsOf(l.Semaphore, 1).SlotName(0)))
	case l.Other != "":
		return fails("%s is %s: force-unlock does not release that", plain.Name(l.Name), plain.Name(l.Other))
	case l.Unknown != "":
		return fails("%s: %s: nothing was released", plain.Name(l.Name), plain.Name(l.Unknown))
	case l.IsPart() && !(v.partOnly && l.Holder != nil):
		return fails("%s", v.isPart(l))
	case l.Holder == nil:
		if hint := v.semaphoreHint(ctx, l); hint != "" {
			return fails("%s is free; semaphore: %s", plain.Name(l.Name), hint)
		}
		return fails("%s is %s", plain.Name(l.Name), byMajority(l, "free"))
	}
	if len(v.all) > 1 {
		return nil
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
	all, err := v.FreeEach(ctx, l)
	freed := all.Count() > 0
	switch {
	case err != nil:
		return "", err
	case freed && l.IsPart():
		return fmt.Sprintf("%s is released %s only: the others of its quorum keep it, and its holder may bring it back: %s", plain.Name(l.Name), onThese(len(v.all)), all), nil
	case !all.Over():
		return "", fails("%s is not released: %s", plain.Name(l.Name), all)
	case freed && len(v.all) > 1:
		return fmt.Sprintf("%s is %s", plain.Name(l.Name), all), nil
	case freed && l.Mode == "read":
		if locks, err := v.Look(ctx, l.Name); err == nil && locks[0].Mode == "read" {
			return fmt.Sprintf("what was shown of %s is released, and it is still read by %d", plain.Name(l.Name), locks[0].Reading), nil
		}
		fallthrough
	case freed:
		return plain.Name(l.Name) + " is released", nil
	}
	locks, err := v.Look(ctx, l.Name)
	switch {
	case err != nil:
		return "", fails("the hold of %s was over by then, and nothing was released: %w", plain.Name(l.Name), v.at.said(err))
	case locks[0].Holder == nil:
		return "", fails("%s is free by now: nothing was released", plain.Name(l.Name))
	}
	return "", fails("%s by now: nothing was released", isHeld(locks[0]))
}

// isHeld says who has a lock.
func isHeld(l inspect.Lock) string {
	if len(l.Readers) < 2 {
		return fmt.Sprintf("%s is held by %s", plain.Name(l.Name), holder(l.Holder))
	}
	text := fmt.Sprintf("%s is read by %d:", plain.Name(l.Name), l.Reading)
	for i := range l.Readers {
		text += "\n  " + holder(&l.Readers[i])
	}
	return text
}

// holder is who has a lock, as --holder takes it too.
func holder(h *inspect.Holder) string {
	return fmt.Sprintf("%s (%s)", process(h.By, h.Client), plain.Name(h.Field))
}

// fails is the error of a command that did not do what it was asked for.
func fails(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}
