package main

import (
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/scripts"
)

// acquireOptions is what the flags say of how a lock is taken, of run and acquire.
type acquireOptions struct {
	noWait       bool
	wait         duration
	waitGiven    bool
	conflictCode int
	lease        duration
	unrenewed    bool // the lease is not renewed
	permits      int
	quiet        bool
	verbose      bool
}

// addFlags adds all flags but --lease.
func (o *acquireOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVarP(&o.noWait, "no-wait", "n", false, "do not wait for another holder: exit with 75")
	f.VarP(&o.wait, "wait", "w", "wait so long at most, then exit with 75 (default: for ever)")
	f.IntVar(&o.permits, "permits", 0, "let so many in at a time, each with a slot of its own: take a permit of the semaphore NAME, not the lock")
	f.IntVarP(&o.conflictCode, "conflict-exit-code", "E", exitNotAcquired, "exit code when another holder has the lock")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but what was wrong with the call (exit codes 64, 125, 126, 127)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say also when the lock was taken and released")
}

func (o *acquireOptions) check(flags *pflag.FlagSet) error {
	o.waitGiven = flags.Changed("wait")
	if o.noWait && o.waitGiven {
		return usage("-n and -w exclude each other")
	}
	if wait := time.Duration(o.wait); wait > 0 && wait < time.Millisecond {
		return usage("--wait %v: use 1ms or more, or 0 to try once", wait)
	}
	if o.quiet && o.verbose {
		return usage("-q and -v exclude each other")
	}
	if o.conflictCode < 0 || o.conflictCode > 255 {
		return usage("--conflict-exit-code %d: use 0 to 255", o.conflictCode)
	}
	if flags.Changed("permits") && (o.permits < 1 || o.permits > scripts.MostPermits) {
		return usage("--permits %d: use 1 to %d", o.permits, scripts.MostPermits)
	}
	return checkLease(flags, o.lease)
}

// checkLease refuses a lease that is too short, and one that was not given although no default fits what nobody renews.
func checkLease(flags *pflag.FlagSet, lease duration) error {
	switch d := time.Duration(lease); {
	case d == 0 && !flags.Changed("lease"):
		return usage("say with --lease for how long the lock stays taken, such as --lease 5m: nobody renews it")
	case d < time.Second:
		return usage("--lease %v: use a second or more", d)
	}
	return nil
}

// checkName refuses what is no name of a lock or a semaphore.
func checkName(name string) error {
	if name == "" {
		return usage("the lock's name is empty")
	}
	if of := scripts.SemaphoreOf(name); of != "" {
		return usage("%s stands for all slots of a semaphore: use --permits N %s", plain.Name(name), plain.Name(of))
	}
	return nil
}

func newAcquire(at *connection) *cobra.Command {
	o := &acquireOptions{unrenewed: true}
	var token bool
	cmd := &cobra.Command{
		Use:   "acquire [flags] NAME --lease DURATION",
		Short: "Take this lock, print a text that names the hold, and leave it taken",
		Long: `acquire takes the lock NAME, prints a text that names the hold, and ends. The lock stays taken until "fencelock release TEXT", or the
end of --lease, which nobody renews but "fencelock extend TEXT". A program takes the hold over by Import of the library.

Whoever has the text, and may use Redis, can release the lock: keep it as a password. Where it cannot be written, the lock is released.

With --token the line is TEXT TOKEN, with --permits TEXT TOKEN SLOT. Storage that refuses a smaller token than it has seen is safe from
late writes; of a permit the token is that of the lock {NAME}:SLOT.

Exit codes:
  0     the lock is taken, and the text is written
  64    wrong usage
  75    another holder had the lock for the whole wait (--conflict-exit-code changes the number)
  125   fencelock failed, for example because Redis did not answer; nothing is left taken
  128+n signal n ended the wait for the lock
`,
		Example: `  # one job takes the lock, and a later one gives it back
  fencelock acquire deploy-production --wait 10m --lease 1h > hold
  fencelock release - < hold

  # a script whose token goes with each write: the service refuses one that is smaller than it has seen
  fencelock acquire account:42 --lease 5m --token > hold && read -r _ token < hold
  curl -f -H "Fencing-Token: \"$token\";resource=\"account:42\"" -X POST https://bank/deposit/account:42
  fencelock release - < hold`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: at.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			if err := checkName(args[0]); err != nil {
				return err
			}
			if at.several() {
				return usage("a hold of a quorum cannot be exported or imported: give one URL, or use fencelock run")
			}
			j := &job{runOptions: &runOptions{acquireOptions: *o}, name: args[0], log: newSpeech(cmd.ErrOrStderr())}
			return ended(j.under(at, "acquire", func() (int, error) {
				signal.Stop(j.signals) // the text may be waited for
				text, err := j.hold.Export()
				if err == nil && token {
					text += fmt.Sprintf(" %d", j.hold.Token())
					if o.permits > 0 {
						text += fmt.Sprintf(" %d", j.hold.Slot())
					}
				}
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
				}
				if err != nil {
					_ = j.hold.Unlock(cmd.Context())
					return 0, fmt.Errorf("%s is not left taken: %w", plain.Name(j.hold.Name()), withoutCall(err))
				}
				return 0, nil
			}))
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().Var(&o.lease, "lease", "how long the lock stays taken, if nobody extends or releases the hold")
	cmd.Flags().BoolVar(&token, "token", false, "print the fencing token behind the text, and with --permits the slot")
	return cmd
}
