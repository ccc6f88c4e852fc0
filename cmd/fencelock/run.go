package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencelock/fencelock/internal/presence"
)

// runOptions is what the flags of run say.
type runOptions struct {
	acquireOptions
	grace       duration
	holdAtLeast duration
	script      string
	detachOK    bool
	strict      bool
	lasting     string
	printCodes  bool
}

const (
	defaultLease = 30 * time.Second
	defaultGrace = 10 * time.Second
)

func newRun(at *connection) *cobra.Command {
	o := &runOptions{acquireOptions: acquireOptions{lease: duration(defaultLease)}}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- COMMAND [ARG...]",
		Short: "Run a command while this lock is held",
		Long: `run takes the lock NAME, runs COMMAND, and releases the lock when the command and all that it started have ended.

The command is gone before the lock can be somebody else's. While the lease is renewed nothing happens. When it was not
renewed for too long the command gets SIGTERM, and after --grace SIGKILL, before the lease ends in Redis. When the lock is
taken away by force the command gets SIGTERM at once, and SIGKILL after --grace. The exit code is then 124.

The command finds in its environment
  FENCELOCK_NAME        the name of the lock
  FENCELOCK_TOKEN       the fencing token: storage that refuses a smaller one than it has seen is safe from late writes
  FENCELOCK_HOLDER      the holder, as "fencelock show" and force-unlock name it
  FENCELOCK_HTTP_FIELD  the token as a header, for curl -H "$FENCELOCK_HTTP_FIELD"
  FENCELOCK_SLOT        with --permits N: the number from 0 to N-1 that no other one has meanwhile; the name is then that of
                        the lock of this slot, such as {NAME}:3

With --permits N up to N commands run at a time. All who use the name say the same N.

Signals: INT, TERM, HUP and QUIT end the wait for the lock. While the command runs TERM, HUP, INT and QUIT go to it and all
that it started, USR1 and USR2 to it alone. On a terminal INT and QUIT come to the command from the keyboard, and are
not sent again. A second TERM (without a terminal also INT), a second or more after the first one, kills.

Exit codes:
` + exitCodes,
		Example: `  # a cron job on many machines, one of which runs it
  fencelock run -n --hold-at-least 30s nightly-report -- /usr/local/bin/report

  # wait ten minutes for the others
  fencelock run -w 10m deploy-production -- ./deploy.sh

  # the only active one of several workers; the others wait for their turn
  fencelock run --lasting leads leader -- ./worker

  # at most five imports at a time, each with a number of its own
  fencelock run --permits 5 imports -c './import --port $((9000 + FENCELOCK_SLOT))'

  # a line of shell; the service refuses the write if another holder has written meanwhile
  fencelock run account:42 -c 'curl -f -H "$FENCELOCK_HTTP_FIELD" -X POST https://bank/deposit/account:42'`,
		ValidArgsFunction: at.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.printCodes {
				_, err := fmt.Fprint(cmd.OutOrStdout(), exitCodes)
				return err
			}
			name, path, argv, err := o.command(cmd.Flags(), args)
			if err != nil {
				return err
			}
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			if err := checkName(name); err != nil {
				return err
			}
			j := &job{runOptions: o, name: name, path: path, argv: argv, log: newSpeech(cmd.ErrOrStderr())}
			return ended(j.run(at))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usage("%w (flags of the command go after --)", err)
	})
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVar(&o.lasting, "lasting", "", "the command is meant to last, and this says what it does, such as leads: it is not shown as stuck, and who waits stands by")
	f.Var(&o.lease, "lease", "how long the lock stays taken after this machine died; renewed every third of it")
	f.Var(&o.grace, "grace", "time between SIGTERM and SIGKILL when the lock is lost (default 10s, or a third of a shorter lease)")
	f.Var(&o.holdAtLeast, "hold-at-least", "keep the lock so long even if the command is faster: longer than clocks differ, for a cron job on many machines")
	f.StringVarP(&o.script, "command", "c", "", "run this text with $SHELL -c, instead of a command after --")
	f.BoolVar(&o.detachOK, "detach-ok", false, "release the lock when the command has ended, also if what it started still runs")
	f.BoolVar(&o.strict, "strict", false, "exit with 124 also if only the release of the lock was not confirmed")
	f.BoolVar(&o.printCodes, "print-exit-codes", false, "print the table of exit codes")
	return cmd
}

// command returns the lock's name, and the program with its arguments. What cannot be run is found before the lock is taken.
func (o *runOptions) command(flags *pflag.FlagSet, args []string) (name, path string, argv []string, err error) {
	dash := flags.ArgsLenAtDash()
	switch {
	case dash < 0 && o.script == "" && len(args) > 1:
		return "", "", nil, usage("write -- between the lock's name and the command: fencelock run %s -- %s", args[0], args[1])
	case dash == 0 || len(args) == 0:
		return "", "", nil, usage("name the lock: fencelock run NAME -- COMMAND")
	case dash > 1 || dash < 0 && len(args) > 1:
		return "", "", nil, usage("%q: one lock has one name", args[1])
	case o.script != "" && len(args) > 1:
		return "", "", nil, usage("give a command after -- or a script with -c, not both")
	case o.script != "":
		shell := os.Getenv("SHELL")
		if shell == "" {
			shell = "/bin/sh"
		}
		argv = []string{shell, "-c", o.script}
	case len(args) == 1:
		return "", "", nil, usage("there is no command: fencelock run %s -- COMMAND", args[0])
	default:
		argv = args[1:]
	}
	path, err = exec.LookPath(argv[0])
	switch {
	case errors.Is(err, exec.ErrDot): // PATH has the current folder: as a shell would
		path, err = filepath.Abs(path)
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return "", "", nil, &exitError{exitNotFound, fmt.Errorf("%s: command not found", argv[0])}
	}
	if err != nil {
		return "", "", nil, &exitError{exitCannotRun, err}
	}
	return args[0], path, argv, nil
}

func (o *runOptions) check(flags *pflag.FlagSet) error {
	if err := o.acquireOptions.check(flags); err != nil {
		return err
	}
	if flags.Changed("lasting") {
		if err := presence.CheckLasting(o.lasting); err != nil {
			return usage("--lasting: %w", err)
		}
	}
	lease := time.Duration(o.lease)
	if !flags.Changed("grace") {
		o.grace = duration(min(defaultGrace, lease/3))
	}
	if most := lease - lease/3 - killMargin(lease); time.Duration(o.grace) >= most {
		return usage("--grace %v with --lease %v: the lease is renewed every third of it, and the command must be gone before it ends: use a grace below %v, or a longer lease",
			time.Duration(o.grace), lease, most.Truncate(time.Millisecond))
	}
	return nil
}

// killMargin is how long before the end of the lease, as far as it can be trusted, the command is killed: for the kernel to
// do it.
func killMargin(lease time.Duration) time.Duration { return min(lease/20, time.Second) }
